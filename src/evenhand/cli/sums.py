"""``evenhand sums``: a round in which owners add their own noise, and only a sum is read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli import accounts, options
from evenhand.cli.aggregate import DELTA, keys_in
from evenhand.cli.command import Options, command_of
from evenhand.cli.console import emit, show
from evenhand.cli.output import require_place, whole_file
from evenhand.cli.tables import read

sums = typer.Typer(
    help="Votes that the aggregator never sees: plan a round, and add up what owners send.",
    no_args_is_help=True,
)


@dataclass(frozen=True, kw_only=True)
class PlanOptions(Options):
    """What ``evenhand sums plan`` was asked to do."""

    public: Annotated[
        Path, typer.Argument(metavar="PUBLIC", help="The public rows, as everybody has them.")
    ]
    owners: Annotated[int, typer.Option(min=1, help="Owners that will be asked.")]
    classes: Annotated[str, typer.Option(metavar="A,B,...", help="All classes.")]
    epsilon: options.Epsilon
    out: Annotated[Path, typer.Option(metavar="FILE", help="New file of the plan, in JSON.")]
    delta: options.Delta = DELTA
    teachers: Annotated[int, typer.Option(min=1, help="Teachers of each owner.")] = 1
    colluding: Annotated[
        int,
        typer.Option(
            min=0,
            help="Owners that may side with the aggregator. Each knows its own share of the noise: "
            "at least 1 where owners get the model.",
        ),
    ] = 0
    dropouts: Annotated[int, typer.Option(min=0, help="Owners that may not answer.")] = 0
    unit: Annotated[str, options.choice(("owner", "record"), help="Whom the claim protects.")] = (
        "owner"
    )
    may_abstain: Annotated[bool, typer.Option("--may-abstain", help="Votes may be withheld.")] = (
        False
    )
    ledger: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|URL",
            help="Where the account of these owners is kept, over all rounds: each is charged.",
        ),
    ] = None
    account_epsilon: Annotated[
        float | None, typer.Option(help="What all rounds may spend together.")
    ] = None
    json: options.Json = False


@sums.command()
@command_of(PlanOptions)
def plan(given: PlanOptions) -> None:
    """Plan a round and pay for it, before anybody is asked: each plan is charged."""
    from evenhand._numerals import natural_order
    from evenhand.owners.digests import PublicRows
    from evenhand.owners.noisy_sums import plan_round
    from evenhand.owners.sum_files import RoundFile
    from evenhand.privacy import Budget

    require_place(given.out)
    accounts.require_whole(given.ledger, given.account_epsilon)
    names = natural_order(options.names("--classes", given.classes))
    account = accounts.opened(given, accounts.OF_OWNERS, account="owners", unit=given.unit)
    planned, _ = plan_round(
        Budget(epsilon=given.epsilon, delta=given.delta),
        n_owners=given.owners,
        public=PublicRows.of(read(given.public).frame),
        classes=names,
        n_teachers=given.teachers,
        n_colluding=given.colluding,
        n_dropouts=given.dropouts,
        unit=given.unit,
        may_abstain=given.may_abstain,
        account=account,
    )
    told = RoundFile(plan=planned)
    with whole_file(given.out) as made:
        told.write(made)
    if given.json:
        emit({"file": str(given.out), "round": told.digest, "sigma": planned.sigma})
        return
    show(
        f"{given.out} is the plan of one round: give it to {planned.n_owners} owners. At least "
        f"{planned.least_answers} must answer; noise of {planned.sigma / planned.scale:.3g} votes "
        f"is charged for."
    )


@sums.command()
def add(
    shares: Annotated[
        list[Path], typer.Argument(metavar="SHARES...", help="What the owners sent.")
    ],
    round: Annotated[Path, typer.Option(metavar="ROUND.json", help="The plan, of sums plan.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="New file of the sum.")],
    keys: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER",
            help="Public keys of the owners, NAME.pub.pem, from a source other than their files: a "
            "share that somebody made up has no noise.",
        ),
    ],
    json: options.Json = False,
) -> None:
    """Add up the owners' noisy shares: for a party that is not the aggregator.

    Every bad share is named at once. The aggregator is given the sum alone.
    """
    from evenhand.owners.sum_files import RoundFile, add_up, write_sums

    require_place(out)
    told = RoundFile.read(round)
    found = add_up(shares, told, keys_in(keys))
    with whole_file(out) as made:
        write_sums(found, told, made)
    if json:
        emit({"file": str(out), "round": told.digest, "answered": found.n_answered})
        return
    show(
        f"{out} is the sum of {found.n_answered} owners: give it to the aggregator, and keep from "
        f"it the shares and any other sum of this round, which would tell one share by the "
        f"difference."
    )

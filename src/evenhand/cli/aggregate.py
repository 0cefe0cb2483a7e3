"""``evenhand aggregate``: a model folder from the votes of several owners on public rows."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from evenhand._roles import Roles
from evenhand.cli import accounts, options, results
from evenhand.cli.command import Options, command_of
from evenhand.cli.console import progress_bars, table
from evenhand.cli.options import ACCOUNT, FAIRNESS, PRIVACY, choice
from evenhand.cli.output import Training, require_free, write_model_folder
from evenhand.cli.tables import group_columns, read, sensitive_features

if TYPE_CHECKING:
    from evenhand._signing import PublicKey
    from evenhand.owners.collection import OwnerVotes
    from evenhand.owners.noisy_sums import NoisySums
    from evenhand.privacy import Ledger

METHODS: Final = ("fair-shares", "fairpate", "pate")
DELTA: Final = 1e-5


@dataclass(frozen=True, kw_only=True)
class AggregateOptions(Options):
    """What ``evenhand aggregate`` was asked to do."""

    votes: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="VOTES...", help="Files of votes, one of each owner; or --sums instead."
        ),
    ] = None
    public: Annotated[
        Path, typer.Option(metavar="FILE", help="The public rows that the owners voted on.")
    ]
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="New folder for the model and its report.")
    ]
    epsilon: Annotated[
        float | None,
        typer.Option(
            help="What the model may cost each unit, at --delta. With --sums the round says it.",
            show_default=False,
        ),
    ] = None
    delta: options.Delta = DELTA
    sums: Annotated[
        Path | None,
        typer.Option(
            metavar="SUMS.json",
            help="Instead of votes: their sum with the owners' own noise, of sums add.",
        ),
    ] = None
    round: Annotated[
        Path | None,
        typer.Option(metavar="ROUND.json", help="With --sums: the plan, of sums plan."),
    ] = None
    groups: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN", help="Sensitive column of the public rows; may be repeated."
        ),
    ] = None
    margin: Annotated[
        float | None, typer.Option(help="How far apart the groups' rates may be.")
    ] = None
    method: Annotated[
        str, choice(METHODS, help="What is released of the votes: shares, or labels past a gate.")
    ] = "fair-shares"
    unit: Annotated[
        str | None,
        typer.Option(
            metavar="NOUN",
            help="Refuse votes that protect another: owner, or record.",
            show_default="whom the files protect, all of them the same",
        ),
    ] = None
    keys: options.OwnersKeys = None
    label: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of the classes in --test. In the public rows it is not read.",
        ),
    ] = None
    drop: options.Drop = None
    test: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Labelled rows to measure the model on.")
    ] = None
    positive: Annotated[
        str | None,
        typer.Option(metavar="CLASS", help="The favourable class.", rich_help_panel=FAIRNESS),
    ] = None
    reference: options.Reference = "rest"
    noise: Annotated[
        str, choice(options.NOISES, help="Kind of noise.", rich_help_panel=PRIVACY)
    ] = "exact"
    ledger: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|URL",
            help="Where the account of these owners is kept, over all rounds.",
            rich_help_panel=ACCOUNT,
        ),
    ] = None
    account: Annotated[str, typer.Option(help="Its name.", rich_help_panel=ACCOUNT)] = "owners"
    account_epsilon: Annotated[
        float | None,
        typer.Option(help="What all rounds may spend together.", rich_help_panel=ACCOUNT),
    ] = None
    sign: options.Sign = None
    seed: options.Seed = None
    json: options.Json = False


@command_of(AggregateOptions)
def aggregate(given: AggregateOptions) -> None:
    """Make a private model within a margin of the votes of owners that do not pool their data.

    All files of votes are checked before anything is spent: signatures, the public rows, classes,
    units, and whether an owner votes twice. Every bad file is named at once.
    """
    started = time.perf_counter()
    _check(given)
    require_free(given.out)
    key = options.private_key(given.sign)
    roles = Roles(
        label=given.label or "vote",
        sensitive=tuple(given.groups or ()),
        drop=tuple(given.drop or ()),
    )
    with progress_bars() as bars:
        bars.begin("reading the votes")
        from evenhand.fairness.groups import encode_groups
        from evenhand.owners.collection import OwnerVotes
        from evenhand.report import write_report

        table_of = read(given.public)
        table_of.require(roles.drop, "which --drop names")
        collected = _collected(given, table_of)
        names = [name for name in table_of if name not in roles.not_features]
        rows = table_of.select(names).frame
        settings = _settings(given)
        budget = None
        if isinstance(collected, OwnerVotes):
            budget = _account(given, collected)
        if budget is not None:
            settings.pop("noise")
        more: dict[str, Any] = {}
        if roles.sensitive and given.method != "pate":
            found = sensitive_features(group_columns(table_of, roles.sensitive, option="--groups"))
            more["sensitive_features_public"] = found
        trial = None if given.test is None else results.read_trial(given.test, roles)
        if trial is not None:
            of = more.get("sensitive_features_public")
            known = () if of is None else encode_groups(of).names
            trial.check(rows, collected.classes, known)
        model = _estimator(given.method).from_votes(
            collected, rows, ledger=budget, progress=bars, **more, **settings
        )
        measured, failed = results.measure_if_asked(model, trial, positive=given.positive)
        bars.begin("writing")
        write_model_folder(
            model,
            given.out,
            training=Training.of(
                "aggregate",
                roles,
                reference=given.reference,
                margin=given.margin,
                positive=given.positive,
            ),
            write_report=lambda path: write_report(
                model, path, dataset=_facts(collected, given.public, roles), measured=measured
            ),
            key=key,
        )
    summary = results.of_run(model, measured, given.reference) | {
        "model": str(given.out),
        "owners": _owners(collected),
        "account": None if budget is None else accounts.state_of(budget),
        "wall_s": time.perf_counter() - started,
    }
    results.show_run(
        model,
        summary,
        measured,
        given.reference,
        *_fingerprints(collected),
        f"The model, its claim and report.html are in {given.out}.",
        json=given.json,
    )
    results.raise_unmeasured(failed, given.test, given.out)


def _check(given: AggregateOptions) -> None:
    """Refuse what does not go together, before any file is read."""
    _check_source(given)
    if given.method != "pate" and (not given.groups or given.margin is None):
        absent = " and ".join(
            name
            for name, value in (("--groups", given.groups), ("--margin", given.margin))
            if not value
        )
        raise ValueError(
            f"--method {given.method} keeps a margin between groups of the public rows: {absent} "
            f"is missing. Give both, or use --method pate, which keeps none."
        )
    if given.method == "pate" and given.margin is not None:
        raise ValueError("--method pate keeps no margin. Leave --margin out, or use fair-shares.")
    if given.test is not None and given.label is None:
        raise ValueError("--test needs --label, the column of its classes.")
    accounts.require_whole(given.ledger, given.account_epsilon)


def _check_source(given: AggregateOptions) -> None:
    """Refuse votes beside sums, neither of them, and what only one of them has."""
    if bool(given.votes) == (given.sums is not None):
        raise ValueError(
            f"Name the owners' files of votes, or --sums SUMS.json with --round ROUND.json; got "
            f"{'both' if given.votes else 'neither'}."
        )
    if given.sums is None:
        if given.round is not None:
            raise ValueError("--round goes with --sums. Leave it out.")
        if given.epsilon is None:
            raise ValueError("--epsilon is missing: what the model may cost each unit.")
        return
    if given.round is None:
        raise ValueError("--sums needs --round ROUND.json, the plan that the owners were told.")
    names = ("epsilon", "delta", "noise", "ledger", "account", "account_epsilon", "unit", "keys")
    also = [f"--{name.replace('_', '-')}" for name in names if name in given.given]
    if also:
        raise ValueError(
            f"--sums come of a round that was planned and paid for: {', '.join(also)} "
            f"{'was' if len(also) == 1 else 'were'} settled then. Leave them out."
        )


def _collected(given: AggregateOptions, public: Any) -> OwnerVotes | NoisySums:
    """Check the votes of all owners, or read their sum."""
    from evenhand.owners.collection import OwnerVotes
    from evenhand.owners.digests import PublicRows
    from evenhand.owners.sum_files import RoundFile, read_sums

    if given.sums is not None and given.round is not None:
        return read_sums(given.sums, RoundFile.read(given.round))
    known = None if given.keys is None else keys_in(given.keys)
    rows = PublicRows.of(public.frame)
    return OwnerVotes.of(given.votes or [], X_public=rows, unit=given.unit, keys=known)


def keys_in(folder: Path) -> dict[str, PublicKey]:
    """Return the public keys in a folder, by the names of their owners."""
    from evenhand._signing import PublicKey

    ending = ".pub.pem"
    files = sorted(folder.glob(f"*{ending}"))
    if not files:
        raise FileNotFoundError(
            f"{folder} has no file NAME{ending}. Put the public key of each owner there, which "
            f"evenhand owner keys made."
        )
    return {file.name.removesuffix(ending): PublicKey.read(file) for file in files}


def _settings(given: AggregateOptions) -> dict[str, Any]:
    from evenhand.fairness import DemographicParity
    from evenhand.privacy import Budget

    found: dict[str, Any] = {"random_state": given.seed}
    if given.epsilon is not None:  # sums bring their budget and their noise
        found["budget"] = Budget(epsilon=given.epsilon, delta=given.delta)
        found["noise"] = options.noise(given.noise)
    if given.method != "pate":
        assert given.margin is not None
        found["fairness"] = DemographicParity(margin=given.margin, reference=given.reference)
    return found


def _estimator(method: str) -> Any:
    from evenhand.methods import method_named

    return method_named("--method", method).estimator


def _account(given: AggregateOptions, votes: OwnerVotes) -> Ledger | None:
    """Open the account of the owners: a round that is run twice is charged twice."""
    noise = options.noise(given.noise)
    return accounts.opened(
        given, accounts.OF_OWNERS, noise=noise, unit=votes.unit, neighbors=votes.neighbors
    )


def _facts(votes: OwnerVotes | NoisySums, public: Path, roles: Roles) -> dict[str, str]:
    """Return what the report may say about the data."""
    from evenhand.owners.collection import OwnerVotes

    n, largest = _size(votes)
    lies = (
        "if it lies, it moves a share by that much at most"
        if isinstance(votes, OwnerVotes)
        else "if it lies, about its votes or its noise, it moves a share by more"
    )
    return {
        "Public rows": public.name,
        "Owners": f"{n}, with {votes.n_teachers} teachers",
        "Protected": f"each {votes.unit}, who moves at most {votes.moved} votes on a row",
        "Largest owner": f"{largest:.1%} of the votes: {lies}",
        "Sensitive attribute": ", ".join(roles.sensitive) or "none",
    }


def _size(votes: OwnerVotes | NoisySums) -> tuple[int, float]:
    """Return how many owners voted, and the largest one's part of the votes."""
    from evenhand.owners.collection import OwnerVotes

    if isinstance(votes, OwnerVotes):
        return len(votes.owners), votes.largest_share
    return votes.n_answered, 1 / votes.n_answered


def _owners(votes: OwnerVotes | NoisySums) -> dict[str, Any]:
    from evenhand.owners.collection import OwnerVotes

    n, largest = _size(votes)
    found: dict[str, Any] = {
        "unit": votes.unit,
        "moved": votes.moved,
        "largest_share": largest,
        "n_owners": n,
    }
    if isinstance(votes, OwnerVotes):
        found["keys_known"] = votes.keys_known
        found["owners"] = [
            {"owner": name, "teachers": teachers, "fingerprint": fingerprint}
            for name, teachers, fingerprint in zip(
                votes.owners, votes.teachers, votes.fingerprints, strict=True
            )
        ]
    return found


def _fingerprints(votes: OwnerVotes | NoisySums) -> list[Any]:
    """Return the owners, and the keys that signed; of sums nobody knows them."""
    from evenhand.owners.collection import OwnerVotes

    if not isinstance(votes, OwnerVotes):
        return []
    rows = [
        (name, f"{n}", fingerprint[:16])
        for name, n, fingerprint in zip(
            votes.owners, votes.teachers, votes.fingerprints, strict=True
        )
    ]
    shown = table(("owner", "teachers", "key, SHA-256"), rows[:20])
    left = len(rows) - 20
    said = f"and {left} owner{'s' * (left > 1)} more: --json lists all, with whole fingerprints."
    return [shown, said] if left > 0 else [shown]

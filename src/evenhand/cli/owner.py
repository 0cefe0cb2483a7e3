"""``evenhand owner``: what an owner of data does that will not pool it: keys, a model, votes."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from evenhand.cli import options
from evenhand.cli.command import Options, command_of
from evenhand.cli.console import emit, show
from evenhand.cli.options import choice
from evenhand.cli.output import require_free, whole_file

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.datasets.columns import TypedTable
    from evenhand.owners.models import Voter
    from evenhand.owners.training import Trained

KINDS: Final = ("logistic", "trees", "network")
TREE: Final = "sklearn.tree._tree.Tree"
"""A tree in a file is read by compiled code that follows its indices: only one of your own is."""

owner = typer.Typer(
    help="Vote on public rows with a model of your own: neither it nor a record leaves.",
    no_args_is_help=True,
)


@owner.command()
def keys(
    owner: options.Owner,
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where to put the two files.")
    ] = Path(),
    json: options.Json = False,
) -> None:
    """Make a pair of keys: NAME.key.pem signs your votes, NAME.pub.pem goes to the aggregator."""
    from evenhand._signing import PrivateKey

    if not owner.strip() or not owner.isprintable() or Path(owner).name != owner:
        raise ValueError(
            f"--owner must be a name that a file may have, on one line and without /, got "
            f"{owner!r}. Choose another."
        )
    key = PrivateKey.make()
    private, public = out / f"{owner}.key.pem", out / f"{owner}.pub.pem"
    if not out.is_dir():
        raise FileNotFoundError(f"The folder {out} does not exist. Make it first.")
    for file in (private, public):
        if file.exists():
            raise FileExistsError(
                f"{file} exists. A new key would make the votes of the old one worthless: name "
                f"another folder with --out."
            )
    with whole_file(private) as made:
        made.touch(mode=0o600)
        made.write_bytes(key.pem)
    with whole_file(public) as made:
        made.write_bytes(key.public.pem)
    fingerprint = key.public.fingerprint
    if json:
        emit({"private": str(private), "public": str(public), "fingerprint": fingerprint})
        return
    show(
        f"{private} signs, and stays with you. Give {public} to the aggregator, and compare over "
        f"another line: SHA-256 {fingerprint}."
    )


@owner.command()
def train(
    private: Annotated[Path, typer.Argument(metavar="PRIVATE", help="Your records, with labels.")],
    label: Annotated[str, typer.Option(metavar="COLUMN", help="Column of the classes.")],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="New folder for the teachers.")],
    kind: Annotated[str, choice(KINDS, help="What is trained.")] = "logistic",
    teachers: Annotated[
        int,
        typer.Option(
            min=1,
            help="Teachers, each on a part of the records that no other sees. One is the best "
            "model; several let one record move one vote of many.",
        ),
    ] = 1,
    unit: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column that says whose record each is."),
    ] = None,
    drop: options.Drop = None,
    seed: options.Seed = None,
    show_values: options.ShowValues = False,
    json: options.Json = False,
) -> None:
    """Train a model, or several on disjoint parts. It has no privacy, and stays with you."""
    from evenhand.cli.failures import as_bad_input
    from evenhand.cli.tables import labels, read
    from evenhand.owners.training import train_teachers, write_teachers

    require_free(out)
    table = read(private)
    table.require([label], "which --label names")
    table.require(drop or [], "which --drop names")
    table.require([unit] if unit else [], "which --unit names")
    y = labels(table, label)
    units = None
    if unit is not None:
        table[unit].refuse_missing("unit", "Give each of these rows an id of its own.")
        units = table[unit].values
    X = _without(table, [label, *(drop or []), *([unit] if unit else [])])
    with as_bad_input(TypeError):
        models, about = train_teachers(
            X, y, kind=kind, n_teachers=teachers, units=units, unit=unit or "record", seed=seed
        )
    out.absolute().parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.absolute().parent) as scratch:
        made = Path(scratch) / "teachers"
        made.mkdir(mode=0o700)
        write_teachers(models, about, made)
        require_free(out)
        os.replace(made, out)
    if json:
        emit({"folder": str(out), "teachers": about.n_teachers, "classes": list(about.classes)})
        return
    trust = f" --trust {TREE}" if kind == "trees" else ""
    show(
        f"{about.n_teachers} of {kind} in {out}: no privacy protects what they learned, so they "
        f"stay with you. Vote with: evenhand owner vote PUBLIC.csv --model {out}{trust} --owner "
        f"NAME --out votes.json"
    )


@dataclass(frozen=True, kw_only=True)
class VoteOptions(Options):
    """What ``evenhand owner vote`` was asked to do."""

    public: Annotated[
        Path, typer.Argument(metavar="PUBLIC", help="The public rows, as everybody has them.")
    ]
    owner: options.Owner
    out: Annotated[Path, typer.Option(metavar="FILE", help="New file of votes, in JSON.")]
    model: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE|FOLDER",
            help="Model in skops' format, or a folder of evenhand owner train. Repeated: teachers "
            "of disjoint parts of your records.",
        ),
    ] = None
    onnx: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Model in ONNX, whose first output labels rows."),
    ] = None
    command: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="Program of your own: rows as CSV on its stdin, a label for each on its stdout.",
        ),
    ] = None
    key: options.OwnKey = None
    unit: Annotated[
        str | None,
        typer.Option(
            metavar="NOUN",
            help="Whom the claim shall protect: owner, with all records; or record, where one "
            "record reached one of the models alone.",
            show_default="owner",
        ),
    ] = None
    classes: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,...", help="All classes.", show_default="those that the model knows"
        ),
    ] = None
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Vote with probabilities instead of labels.")
    ] = False
    clip: Annotated[
        float, typer.Option(help="Least probability of a class, with --probabilities.")
    ] = 0.0
    may_abstain: Annotated[
        bool, typer.Option("--may-abstain", help="A missing label is a vote that is withheld.")
    ] = False
    drop: options.Drop = None
    trust: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TYPE",
            help="Type in a file of skops that may run code, as the error names it. Only for a "
            "file whose maker you trust.",
        ),
    ] = None
    json: options.Json = False


@owner.command()
@command_of(VoteOptions)
def vote(given: VoteOptions) -> None:
    """Vote on the public rows with models of your own, and sign the votes."""
    from evenhand._signing import PrivateKey
    from evenhand.cli.output import require_place
    from evenhand.cli.tables import read
    from evenhand.owners.models import cast
    from evenhand.owners.vote_file import OWNER, VoteFile

    require_place(given.out)
    signer = PrivateKey.read(_key_of(given.owner, given.key))
    table = read(given.public)
    table.require(given.drop or [], "which --drop names")
    named = None if given.classes is None else options.names("--classes", given.classes)
    voters, about = _voters(
        given.model or [], given.onnx or [], given.command, named, given.trust or []
    )
    known = _classes(voters, about, named)
    whom = given.unit or OWNER
    neighbors = _neighbors(whom, about, len(voters))
    rows = _without(table, given.drop or [])
    said = cast(voters, rows, known, probabilities=given.probabilities)
    file = VoteFile.cast(
        given.owner,
        said,
        table.frame,
        classes=known,
        unit=whom,
        neighbors=neighbors,
        may_abstain=given.may_abstain,
        clip=given.clip,
        key=signer,
    )
    with whole_file(given.out) as made:
        made.touch(mode=0o600)  # no noise protects it
        file.write(made)
    if given.json:
        emit(
            {
                "file": str(given.out),
                "owner": given.owner,
                "unit": whom,
                "teachers": file.n_teachers,
                "rows": file.public.n_rows,
                "classes": list(file.classes),
                "fingerprint": file.fingerprint,
            }
        )
        return
    show(
        f"{given.out} holds what {file.n_teachers} of {given.owner} say about "
        f"{file.public.n_rows:,} public rows. It is private: send it to the aggregator "
        f"alone. The claim will protect each {whom}."
    )


@owner.command()
def noise(
    votes: Annotated[Path, typer.Argument(metavar="VOTES", help="Your votes, of owner vote.")],
    round: Annotated[
        Path, typer.Option(metavar="ROUND.json", help="The plan of the round, of sums plan.")
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="New file of your noisy share.")],
    ledger: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|URL",
            help="Where your own account of rounds is kept: one that was asked before is charged "
            "again.",
            show_default="NAME.rounds.db",
        ),
    ] = None,
    account_epsilon: Annotated[
        float | None,
        typer.Option(help="What all rounds may cost you.", show_default="what this round costs"),
    ] = None,
    key: options.OwnKey = None,
    json: options.Json = False,
) -> None:
    """Add your own share of the noise to your votes, and pay for it: for a sum that nobody undoes.

    Send the file to the party that adds up, which is not the aggregator.
    """
    from evenhand._signing import PrivateKey
    from evenhand.cli.accounts import in_words
    from evenhand.cli.output import require_place
    from evenhand.owners.noisy_sums import noisy_share
    from evenhand.owners.sum_files import RoundFile, ShareFile
    from evenhand.owners.vote_file import VoteFile
    from evenhand.privacy import Budget, BudgetExceeded, DatabaseStore, Ledger
    from evenhand.privacy.shared_noise import OneShare

    require_place(out)
    file, told = VoteFile.read(votes), RoundFile.read(round)
    plan = told.plan
    signer = PrivateKey.read(_key_of(file.owner, key))
    if file.key and not (file.key == signer.public.raw and file.signed()):
        raise ValueError(
            f"{votes} was changed after it was signed, or is signed by another key than that of "
            f"{file.owner!r}. Nothing was charged. Make it anew with: evenhand owner vote."
        )
    epsilon = plan.epsilon if account_epsilon is None else account_epsilon
    account = Ledger(
        Budget(epsilon=epsilon, delta=plan.delta),
        store=DatabaseStore(f"{file.owner}.rounds.db" if ledger is None else ledger),
        account=f"rounds of {file.owner}",
        unit=plan.unit,
        neighbors=plan.neighbors,
    )
    own = account.run(
        Budget(epsilon=plan.epsilon, delta=plan.delta),
        purpose="a round of noisy sums",
        noise=plan.noise(OneShare),
    )
    try:
        counts = noisy_share(file, plan, own)
    except BudgetExceeded:
        raise BudgetExceeded(
            f"{in_words(account)} A share of this round takes epsilon={plan.epsilon:g}, and does "
            f"not fit: nothing was charged or drawn. If you have one of before, send that file: "
            f"two shares of the same votes would halve the noise. Of several rounds say with "
            f"--account-epsilon what they may cost together, in a new file of --ledger."
        ) from None
    with whole_file(out) as made:
        made.touch(mode=0o600)
        ShareFile.signed(file.owner, told, counts, signer).write(made)
    if json:
        cost = {"epsilon": plan.epsilon, "delta": plan.delta}
        emit({"file": str(out), "owner": file.owner, "round": told.digest} | cost)
        return
    show(
        f"{out} holds the counts of {file.owner} with its share of the noise, for a sum of at "
        f"least {plan.least_answers} of {plan.n_owners} owners. That sum costs each {plan.unit} "
        f"epsilon={plan.epsilon:g} at delta={plan.delta:g}; the share alone costs more: send it to "
        f"the party that adds up, and to nobody else."
    )


def _key_of(name: str, given: Path | None) -> Path:
    file = Path(f"{name}.key.pem") if given is None else given
    if not file.is_file():
        raise FileNotFoundError(
            f"There is no key at {file}. Make one with: evenhand owner keys --owner {name!r}; or "
            f"name one with --key."
        )
    return file


def _voters(
    models: list[Path],
    onnx: list[Path],
    command: str | None,
    classes: list[str] | None,
    trust: list[str],
) -> tuple[list[Voter], Trained | None]:
    """Return the models that vote, and what is known of them if they are a folder of teachers."""
    from evenhand.owners.models import CommandModel, OnnxModel, ScikitModel
    from evenhand.owners.training import Trained, readable

    if bool(models) + bool(onnx) + (command is not None) != 1:
        raise ValueError(
            "Name what votes, in one way: --model for a file of skops or a folder of teachers, "
            "--onnx for a file of ONNX, or --command for a program."
        )
    absent = [str(path) for path in (*models, *onnx) if not path.exists()]
    if absent:
        raise FileNotFoundError(f"There is no model at {', '.join(absent)}.")
    if len({path.resolve() for path in (*models, *onnx)}) < len(models) + len(onnx):
        raise ValueError(
            "One model is named twice: its vote would count as those of two teachers. Name each "
            "once."
        )
    if (onnx or command is not None) and classes is None:
        raise ValueError(
            "--classes is missing: a file of ONNX and a command do not say which classes there "
            "are beside those that they vote for. Name all: --classes no,yes."
        )
    if command is not None:
        return [CommandModel(command, tuple(classes or ()))], None
    if onnx:
        return [OnnxModel.read(path, classes) for path in onnx], None
    folders = [path for path in models if path.is_dir()]
    if not folders:
        return [ScikitModel.read(path, trust) for path in models], None
    if len(models) > 1:
        raise ValueError("A folder of teachers is all that an owner votes with: name it alone.")
    about = Trained.read(folders[0])
    files = zip(about.files(folders[0]), about.numeric, strict=True)
    return [
        ScikitModel.read(file, trust, partial(readable, numeric=own)) for file, own in files
    ], about


def _classes(voters: list[Voter], about: Trained | None, named: list[str] | None) -> list[Any]:
    """Return all classes; those that are named must hold those that the models know."""
    from evenhand._numerals import natural_order, text_of

    known = list(
        natural_order(text_of(name) for voter in voters for name in (voter.classes or ()))
        if about is None
        else about.classes
    )
    if named is None:
        return known
    strange = [name for name in known if name not in named]
    if strange:
        raise ValueError(
            f"--classes names {', '.join(map(repr, named))}, and the model also knows "
            f"{', '.join(map(repr, strange))}. Name all classes."
        )
    return named


def _neighbors(unit: str, about: Trained | None, n_teachers: int) -> Any:
    """Return the change of the data that the votes are safe for."""
    from evenhand.owners.vote_file import OWNER

    if unit == OWNER or about is None or n_teachers == 1:
        return "replace one"
    if unit != about.unit:
        raise ValueError(
            f"--unit {unit} does not go with these teachers: one {about.unit} reached one of them "
            f"alone. Use --unit {about.unit} or --unit owner, or train them again."
        )
    return about.neighbors


def _without(table: TypedTable, columns: list[str]) -> pd.DataFrame:
    left = [name for name in table if name not in columns]
    if not left:
        raise ValueError(f"{table.where} has no column left for the features.")
    return table.frame[left]

"""``evenhand serve`` and ``evenhand tokens``: decisions over HTTP, and who may ask for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from evenhand._extras import MissingExtra, installed
from evenhand.cli.command import command_of
from evenhand.cli.console import emit, note, show, table
from evenhand.cli.options import Json, ReadsModel
from evenhand.cli.output import Training

if TYPE_CHECKING:
    from evenhand.serve.store import DecisionStore

STORE: Final = "decisions.db"

Store = Annotated[
    str,
    typer.Option(
        "--store",
        metavar="FILE|URL",
        envvar="EVENHAND_STORE",
        help="Where decisions and counts are kept: a file for SQLite, or a URL of PostgreSQL.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class ServeOptions(ReadsModel):
    """What a run of ``evenhand serve`` was asked to do."""

    margin: Annotated[
        float | None,
        typer.Option(
            help="How far apart the groups' rates may be among all labels that are given. "
            "In [0, 1].",
            show_default="that of training",
        ),
    ] = None
    store: Store = STORE
    sensitive: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of the groups, in every row; may be repeated.",
            show_default="those of training",
        ),
    ] = None
    groups: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,...",
            help="Every group that may come; another is refused, and counted as unknown.",
            show_default="those of training",
        ),
    ] = None
    cold_start: Annotated[
        int | None,
        typer.Option(
            help="Labels of a late group that are withheld before a block of them is given.",
            show_default="50, or 2 / margin",
        ),
    ] = None
    threshold: Annotated[
        float | None,
        typer.Option(
            help="Refuse a label as well when the largest probability is below this.",
            show_default="none",
        ),
    ] = None
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1"
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")
    ] = 8000


@command_of(ServeOptions)
def serve(given: ServeOptions) -> None:
    """Answer requests for decisions over HTTP, within a margin over all given labels.

    A label leaves only when it is kept and counted. What is refused waits for people, on the page
    of reviewers. Who asks needs a token: evenhand tokens add NAME --role decider.

    TLS is the business of a proxy in front.
    """
    _require()
    from evenhand.methods import load
    from evenhand.serve.cases import Reader
    from evenhand.serve.desk import Desk
    from evenhand.serve.server import run

    model = load(given.model, trusted=given.trust or ())
    option = _option(model, given)
    known = Training.read(given.model)
    same = known is not None and _sensitive(known, given) == known.sensitive
    reader = Reader.of(
        option, _sensitive(known, given), known.grouping if known is not None and same else None
    )
    desk = Desk(option, _opened(given.store), reader)
    if not desk.store.callers():
        note(f"nobody may ask yet: evenhand tokens add NAME --role decider --store {given.store}")

    def listening(host: str, port: int) -> None:
        shown = f"[{host}]" if ":" in host else host
        note(f"answering on http://{shown}:{port}, margin {option.margin:g}, store {desk.store}")
        if given.json:
            emit({"host": host, "port": port, "margin": option.margin, "store": str(desk.store)})

    run(
        desk,
        claim=str(option.fitted_.core.guarantee),
        host=given.host,
        port=given.port,
        listening=listening,
    )


def _option(model: Any, given: ServeOptions) -> Any:
    """Return the reject option around the model."""
    from evenhand.estimators import RejectOptionClassifier

    known = Training.read(given.model)
    margin = given.margin
    if margin is None:
        margin = model.fitted_.margin
    if margin is None:
        raise ValueError(
            "--margin is missing, and this model was trained without one. Name how far apart the "
            "groups' rates may be among the given labels, for example --margin 0.05."
        )
    groups = None if given.groups is None else [name.strip() for name in given.groups.split(",")]
    if groups is None and (known is None or _sensitive(known, given) == known.sensitive):
        groups = model.groups_
    if not groups:
        raise ValueError(
            "--groups is missing, and this model knows none: a margin is kept between groups that "
            "are known before. Name every group that may come, for example --groups F,M."
        )
    return RejectOptionClassifier(
        model,
        margin,
        groups=groups,
        cold_start=given.cold_start,
        threshold=given.threshold,
    )


def _sensitive(known: Training | None, given: ServeOptions) -> tuple[str, ...]:
    """Return the columns of the groups."""
    found = tuple(given.sensitive or ()) or (() if known is None else known.sensitive)
    if not found:
        raise ValueError(
            "--sensitive is missing: a margin is kept between groups, and training named no "
            "column of them. Name the column of the groups."
        )
    return found


def _require() -> None:
    for package, name in (
        ("fastapi", "FastAPI"),
        ("uvicorn", "uvicorn"),
        ("prometheus_client", "prometheus-client"),
    ):
        if not installed(package):
            raise MissingExtra.of("evenhand serve", name, "serve")


def _opened(where: str) -> DecisionStore:
    from evenhand.serve.store import DecisionStore

    return DecisionStore(where)


tokens = typer.Typer(
    help="Make, list and revoke the tokens of those who may use a server.", no_args_is_help=True
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Who it is; reviews are signed with it.")]


@tokens.command()
def add(
    name: Name,
    role: Annotated[
        str,
        typer.Option(
            help="reader (counts), decider (asks for decisions) or reviewer (decides the queue)."
        ),
    ],
    store: Store = STORE,
    json: Json = False,
) -> None:
    """Make a token and print it once; the store keeps its digest alone."""
    from evenhand.serve.tokens import checked_name, checked_role

    known, who = checked_role(role), checked_name(name)
    token = _opened(store).add_token(who, known)
    note(f"the token of {name}, a {known}; it cannot be shown again:")
    if json:
        emit({"name": name, "role": str(known), "token": token})
    else:
        print(token)


@tokens.command("list")
def list_(store: Store = STORE, json: Json = False) -> None:
    """List who may use a server, and as what."""
    found = [(who.name, str(who.role)) for who in _opened(store).callers().values()]
    if json:
        emit({"tokens": [{"name": name, "role": role} for name, role in found]})
    else:
        show(table(("name", "role"), found, text=2))


@tokens.command()
def revoke(name: Name, store: Store = STORE, json: Json = False) -> None:
    """Take a token out of use; servers that run refuse it within seconds."""
    _opened(store).revoke_token(name)
    note(f"the token of {name} is revoked")
    if json:
        emit({"revoked": name})

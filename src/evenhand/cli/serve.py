"""``evenhand serve`` and ``evenhand tokens``: decisions over HTTP, and who may ask for them."""

from __future__ import annotations

import socket
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from evenhand._extras import MissingExtra, installed
from evenhand.cli import margins
from evenhand.cli.command import command_of
from evenhand.cli.console import emit, note, show, table
from evenhand.cli.margins import DEMOGRAPHIC_PARITY, KeepsMargins
from evenhand.cli.options import Json, names
from evenhand.cli.output import Training
from evenhand.cli.tables import features_of

if TYPE_CHECKING:
    from evenhand.fairness import Grouping
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
class ServeOptions(KeepsMargins):
    """What a run of ``evenhand serve`` was asked to do."""

    margin: Annotated[
        float | None,
        typer.Option(
            help="How far apart the groups' rates may be among all labels that are given. "
            "In [0, 1]. The same as --within demographic-parity=MARGIN.",
            show_default="the notion and the margin of training",
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
            show_default="50, or 2 / margin; a block has 1 / (2 margin) or more",
        ),
    ] = None
    threshold: Annotated[
        float | None,
        typer.Option(
            help="Refuse a label as well when the largest probability is below this.",
            show_default="none",
        ),
    ] = None
    keys_kept: Annotated[
        float,
        typer.Option(
            metavar="DAYS",
            min=0.001,
            help="So long an Idempotency-Key stands for its answer; then it may stand for another "
            "request.",
        ),
    ] = 7.0
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1"
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")
    ] = 8000


@command_of(ServeOptions)
def serve(given: ServeOptions) -> None:
    """Answer requests for decisions over HTTP, within margins over all given labels.

    A label leaves only when it is kept and counted. What is refused waits for people, on the page
    of reviewers. Who asks needs a token: evenhand tokens add NAME --role decider.

    TLS is the business of a proxy in front.
    """
    _require()
    from evenhand.methods import load
    from evenhand.serve.cases import Reader
    from evenhand.serve.desk import Desk
    from evenhand.serve.server import run

    _require_address(given.host, given.port)
    model = load(given.model, trusted=given.trust or ())
    option = _option(model, given)
    known = Training.read(given.model)
    reader = Reader.of(option, _sensitive(known, given), _grouping(known, given))
    store = _opened(given.store)
    desk = Desk(option, store, reader, keys_kept_s=86_400 * given.keys_kept)
    if not desk.store.callers():
        note(f"nobody may ask yet: evenhand tokens add NAME --role decider --store {given.store}")

    def listening(host: str, port: int) -> None:
        shown = f"[{host}]" if ":" in host else host
        margins.say_calibrated(option, given)
        kept = option.reject_option_.kept
        said = ", ".join(f"{one.notion.title} within {one.notion.margin:g}" for one in kept)
        note(f"answering on http://{shown}:{port}, {said}, store {desk.store}")
        if given.json:
            where = {"host": host, "port": port, "store": str(desk.store)}
            emit(where | {"margin": option.margin, "margins": [one.to_dict() for one in kept]})

    run(
        desk,
        claim=str(option.fitted_.guarantee),
        host=given.host,
        port=given.port,
        listening=listening,
    )


def _option(model: Any, given: ServeOptions) -> Any:
    """Return the reject option around the model."""
    known = Training.read(given.model)
    kept = margins.margins_of(given, given.margin, "--margin") or _of_training(model)
    margins.check(given, kept)
    groups = None if given.groups is None else names("--groups", given.groups)
    theirs = "none"
    if groups is None and (known is None or _sensitive(known, given) == known.sensitive):
        groups = model.groups_
    elif groups is None and known is not None and model.groups_:
        theirs = (
            f"those of {', '.join(map(repr, known.sensitive))} (leave --sensitive out for these)"
        )
    if not groups:
        raise ValueError(
            f"--groups is missing, and this model knows {theirs}: a margin is kept between groups "
            f"that are known before. Name every group that may come, for example --groups F,M."
        )
    trained = model.groups_ or () if known and _sensitive(known, given) == known.sensitive else ()
    if left := [name for name in trained if name not in groups]:
        note(
            f"--groups leaves out {', '.join(map(repr, left))} of training: rows of theirs get no "
            f"label, and the reason unknown_group"
        )
    return margins.reject_option(
        model,
        given,
        kept,
        groups=groups,
        columns=_sensitive(known, given),
        grouping=_grouping(known, given),
        rows_of=lambda rows: features_of(model, rows),
        cold_start=given.cold_start,
        threshold=given.threshold,
    )


def _of_training(model: Any) -> dict[str, float]:
    """Return the margin that a model was trained under."""
    from evenhand.fairness.notion import RateNotion

    fitted = model.fitted_
    if fitted.margin is None:
        raise ValueError(
            "--margin is missing, and this model was trained without one. Name how far apart the "
            "groups' rates may be among the given labels, for example --margin 0.05; or another "
            "notion, such as --within error-parity=0.1."
        )
    own = fitted.fairness
    name = own.name if isinstance(own, RateNotion) else DEMOGRAPHIC_PARITY
    return {name: float(fitted.margin)}


def _sensitive(known: Training | None, given: ServeOptions) -> tuple[str, ...]:
    """Return the columns of the groups."""
    found = tuple(given.sensitive or ()) or (() if known is None else known.sensitive)
    if not found:
        raise ValueError(
            "--sensitive is missing: a margin is kept between groups, and training named no "
            "column of them. Name the column of the groups."
        )
    return found


def _grouping(known: Training | None, given: ServeOptions) -> Grouping | None:
    """Return what makes groups of the columns of training, where these are the ones."""
    same = known is not None and _sensitive(known, given) == known.sensitive
    return known.grouping if known is not None and same else None


def _require_address(host: str, port: int) -> None:
    """Refuse an address that is taken or no address, before a model is read or a store is made."""
    try:
        known = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, kind, protocol, _, address in known:
            if family == socket.AF_INET6 and not socket.has_dualstack_ipv6():
                continue
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server does
                probe.bind(address)
    except OSError as error:
        raise ValueError(
            f"Nothing can listen on {host}, port {port}: {error.strerror}. Choose another --port, "
            f"or another --host."
        ) from None


def _require() -> None:
    for package, name in (
        ("fastapi", "FastAPI"),
        ("uvicorn", "uvicorn"),
        ("prometheus_client", "prometheus-client"),
    ):
        if not installed(package):
            raise MissingExtra.of("evenhand serve", name, "serve")


def _opened(where: str, *, new: bool = True) -> DecisionStore:
    """Open a store; one that must be there is not made where a name is mistyped."""
    from evenhand.serve.store import DecisionStore

    if not new and "://" not in where and not Path(where).exists():
        raise ValueError(f"There is no store {where}. Name that of the server with --store.")
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
    with closing(_opened(store)) as kept:
        token = kept.add_token(who, known)
    note(f"the token of {name}, a {known}; it cannot be shown again:")
    if json:
        emit({"name": name, "role": str(known), "token": token})
    else:
        print(token)


@tokens.command("list")
def list_(store: Store = STORE, json: Json = False) -> None:
    """List who may use a server, and as what."""
    with closing(_opened(store, new=False)) as kept:
        found = [(who.name, str(who.role)) for who in kept.callers().values()]
    if json:
        emit({"tokens": [{"name": name, "role": role} for name, role in found]})
    else:
        show(table(("name", "role"), found, text=2))


@tokens.command()
def revoke(name: Name, store: Store = STORE, json: Json = False) -> None:
    """Take a token out of use; servers that run refuse it within seconds."""
    with closing(_opened(store, new=False)) as kept:
        kept.revoke_token(name)
    note(f"the token of {name} is revoked")
    if json:
        emit({"revoked": name})

"""``evenhand assess``: decisions assessed with every record private, on a budget of its own."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenhand._roles import one_role_each
from evenhand.cli import accounts, options
from evenhand.cli.command import command_of
from evenhand.cli.console import emit, group_table, note, show, table
from evenhand.cli.options import EPSILON, ReadsTables
from evenhand.cli.output import require_place, whole_file

if TYPE_CHECKING:
    from rich.table import Table

    from evenhand.estimators.assessment import Assessment, View
    from evenhand.fairness.intervals import Estimate


@dataclass(frozen=True, kw_only=True)
class AssessOptions(ReadsTables):
    """What a run of ``evenhand assess`` was asked to do."""

    decisions: Annotated[
        Path,
        typer.Argument(
            metavar="DECISIONS", help="One row per person: what was decided, and their groups."
        ),
    ]
    groups_private: Annotated[
        list[str],
        typer.Option(metavar="COLUMN", help="Sensitive column; may be repeated. It stays private."),
    ]
    epsilon: Annotated[float, typer.Option(help=EPSILON)]
    prediction: Annotated[str, typer.Option(metavar="COLUMN", help="Column of the decisions.")] = (
        "prediction"
    )
    label: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of what would have been right.",
            show_default="not known: how often each class is decided is compared alone",
        ),
    ] = None
    classes: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,...",
            help="All classes, of which some may have been decided for nobody. Of two the last is "
            "the positive one.",
            show_default="those that occur, which are then taken as public",
        ),
    ] = None
    reference: Annotated[str, options.reference()] = "pairwise"
    ledger: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|URL",
            help="Where the account of these people is kept, over all assessments of them: a "
            "SQLite file, or a PostgreSQL URL.",
        ),
    ] = None
    account: Annotated[str, typer.Option(metavar="NAME", help="Its name.")] = "assessments"
    account_epsilon: Annotated[
        float | None,
        typer.Option(
            help="What all assessments may spend together, at --account-delta; the same in each.",
            show_default=False,
        ),
    ] = None
    account_delta: Annotated[float, typer.Option(help="Delta of the account.")] = 1e-5
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE.json", help="Write the assessment to this file as well."),
    ] = None
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the file of --out if it is there.")
    ] = False


@command_of(AssessOptions)
def assess(given: AssessOptions) -> None:
    """Assess decisions with every record private; what is printed may be published.

    One table of group, label and decision is released with noise and charged to a budget of its
    own, or to an account that several share (--ledger). Gaps, rates and intervals are computed from
    it: each interval holds for the noise and for the sample together. Every further run is another
    release, and their epsilons add up.
    """
    from evenhand._numerals import text_of
    from evenhand.cli import tables
    from evenhand.estimators.assessment import assess as assessed
    from evenhand.estimators.group_shares import cost_of_table
    from evenhand.privacy import Budget, BudgetExceeded

    one_role_each(
        (
            ("--prediction", given.prediction),
            ("--label", given.label),
            *(("--groups-private", name) for name in given.groups_private),
        )
    )
    accounts.require_whole(given.ledger, given.account_epsilon)
    if given.out is not None:  # before anything is spent
        require_place(given.out, overwrite=given.overwrite)
    named = None if given.classes is None else options.names("--classes", given.classes)
    read = tables.read(given.decisions)
    read.require([given.prediction], "which --prediction names")
    groups = tables.group_columns(read, given.groups_private, option="--groups-private")
    decisions = tables.labels(read, given.prediction, "decision", _UNDECIDED)
    decided = [text_of(v) for v in decisions.tolist()]
    truth = None
    if given.label is not None:
        read.require([given.label], "which --label names")
        truth = [text_of(v) for v in tables.labels(read, given.label, "label", _UNKNOWN).tolist()]
    account = accounts.opened(
        given,
        {"asked": "assessments of decisions"},
        delta=given.account_delta,
        neighbors="add or remove one",
    )
    try:
        found = assessed(
            decided,
            {str(name): groups[name].tolist() for name in groups},
            epsilon=given.epsilon,
            truth=truth,
            classes=named,
            reference=given.reference,
            account=account,
        )
    except BudgetExceeded:
        assert account is not None
        asked = Budget(epsilon=given.epsilon, delta=given.account_delta)
        cost = cost_of_table(asked, account)
        raise BudgetExceeded(
            f"{accounts.in_words(account)} A table at --epsilon {given.epsilon:g} takes what "
            f"epsilon {cost.epsilon:.3g} takes there, and does not fit: nothing was charged or "
            f"released. Ask for a smaller --epsilon."
        ) from None
    state = {} if account is None else {"account": accounts.state_of(account)}
    try:
        if given.out is not None:
            with whole_file(given.out, overwrite=given.overwrite) as made:
                text = json.dumps(
                    found.to_dict() | state, indent=2, ensure_ascii=False, allow_nan=False
                )
                made.write_text(text + "\n", encoding="utf-8")
            note(f"the assessment is in {given.out}")
    finally:  # it is paid for, whatever became of the file
        if given.json:
            emit(found.to_dict() | state)
        else:
            show(*_parts(found), *([] if account is None else [accounts.in_words(account)]))


def _parts(found: Assessment) -> list[str | Table]:
    """Return an assessment for people."""
    shown: list[str | Table] = [str(found.guarantee_)]
    for view in found.views:
        rows = [(gap.name.replace("_", " "), *_cells(gap)) for gap in view.gaps]
        shown += [
            table((f"gaps by {view.by}", "value", "95 % interval"), rows),
            _groups(found, view),
        ]
    note = _NOTE.format(scale=found.scale)
    if len(found.classes) == 2 and found.views[0].counts.knows_truth:
        note += f" Positive is {found.classes[1]!r}, the last class; --classes names them in order."
    return [*shown, note]


_UNDECIDED = (
    "Where nothing was decided, as by a model that may refuse, write a word such as undecided, "
    "which is then compared as a decision of its own; or leave these rows out: the assessment is "
    "of the others then. If another column has the decisions, name it with --prediction."
)

_UNKNOWN = (
    "Leave these rows out; or leave --label out, and how often each class is decided is compared "
    "for all rows."
)

_NOTE = (
    "Every count carries noise of scale {scale:.3g} records; each interval holds for the noise and "
    "for the sample together. These numbers may be published."
)


def _groups(found: Assessment, view: View) -> Table:
    shown = found.classes[1:] if len(found.classes) == 2 else found.classes
    rows = []
    for z, group in enumerate(view.groups):
        rates = [" ".join(_cells(of_class[z])) for of_class in view.selection]
        error = [" ".join(_cells(view.errors[z]))] if view.errors else []
        rows.append((group, int(view.counts.counts[z].sum()), rates, error))
    return group_table("decided", shown, rows)


def _cells(estimate: Estimate) -> tuple[str, str]:
    value = "no rows" if estimate.value != estimate.value else f"{estimate.value:.4f}"
    return value, f"[{estimate.low:.4f}, {estimate.high:.4f}]"

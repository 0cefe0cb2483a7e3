"""Margins over given labels: which ``predict`` and ``serve`` keep, and what tells of the truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from evenhand import _words
from evenhand._checks import closed_unit, one_of, open_unit
from evenhand._notions import OF_DECISIONS
from evenhand.cli import options
from evenhand.cli.console import note
from evenhand.cli.failures import as_bad_input
from evenhand.cli.options import ReadsModel
from evenhand.cli.output import Training
from evenhand.cli.tables import class_codes, group_columns, labels, read, sensitive_features

if TYPE_CHECKING:
    from evenhand.datasets.columns import TypedTable
    from evenhand.estimators import RejectOptionClassifier
    from evenhand.fairness import Grouping
    from evenhand.fairness.notion import RateNotion

REJECT: Final = "Reject option"
DEMOGRAPHIC_PARITY: Final = "demographic-parity"
OF_TRUTH: Final = ("calibration", "label", "admit_by", "gate_level")
"""Options that are read for a margin about true classes alone."""


@dataclass(frozen=True, kw_only=True)
class KeepsMargins(ReadsModel):
    """Options of every command that gives labels within margins over all given ones."""

    within: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NOTION=MARGIN",
            autocompletion=lambda: [f"{name}=" for name in OF_DECISIONS],
            help="Keep the given labels within this margin, such as error-parity=0.1; name several "
            f"by repeating the option, and all are kept. Notions: {', '.join(OF_DECISIONS)}, or a "
            "class of your own as MODULE:CLASS (its module is imported, which runs its code).",
            rich_help_panel=REJECT,
        ),
    ] = None
    calibration: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Labelled rows of the population that will be asked about, which the model was "
            "not trained on: features, label and sensitive columns. Needed by a margin about true "
            "classes; they cost no budget, and are taken as public: refusals and gaps tell of "
            "their labels.",
            rich_help_panel=REJECT,
        ),
    ] = None
    label: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of the classes in the labelled rows.",
            show_default="that of training",
            rich_help_panel=REJECT,
        ),
    ] = None
    reference: Annotated[
        str | None, options.reference(show_default="that of training", rich_help_panel=REJECT)
    ] = None
    admit_by: Annotated[str, options.admit_by(REJECT)] = _words.ADMIT_BY[0]
    gate_level: Annotated[float, options.gate_level(REJECT)] = 0.95


def margins_of(given: KeepsMargins, parity: float | None, option: str) -> dict[str, float]:
    """Return the margins that were asked for, by the names of their notions.

    ``parity`` is the value of ``option``, which names that of demographic parity alone.

    Raises
    ------
    ValueError
        For all that is no notion, no margin, or named twice.
    """
    found: dict[str, float] = {}
    wrong: list[str] = []
    if parity is not None:
        found[DEMOGRAPHIC_PARITY] = closed_unit(option, parity)
    for text in given.within or ():
        name, _, number = (part.strip() for part in text.rpartition("="))
        try:
            if not name:
                raise ValueError(f"{text!r} must be NOTION=MARGIN, such as error-parity=0.1.")
            if ":" not in name:
                one_of("the notion", name, OF_DECISIONS)
            if name in found:
                raise ValueError(f"{name} has two margins: name each notion once.")
            found[name] = closed_unit(f"the margin of {name}", _number(number))
        except ValueError as error:
            wrong.append(str(error))
    if wrong:
        raise ValueError(f"--within: {' '.join(wrong)}")
    return found


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is no number: write it as 0.1.") from None


def check(given: KeepsMargins, margins: Mapping[str, float]) -> None:
    """Refuse a margin about true classes that nothing tells of, and rows that nothing would read.

    Raises
    ------
    ValueError
    """
    from evenhand.fairness.notions import notion_named

    open_unit("--gate-level", given.gate_level)
    about = [name for name in margins if notion_named(name).needs_labels]
    if about and given.calibration is None:
        raise ValueError(
            f"{' and '.join(about)} {'is' if len(about) == 1 else 'are'} about true classes, and "
            f"nothing tells of them. Give --calibration FILE: labelled rows of the population that "
            f"will be asked about, with features, label and sensitive columns, hundreds of each "
            f"group, which the model was not trained on; or keep --within demographic-parity=0.05, "
            f"which needs none."
        )
    useless = [name for name in OF_TRUTH if name in given.given]
    if useless and not about:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in useless)
        raise ValueError(
            f"{options} {'is' if len(useless) == 1 else 'are'} of use only for a margin about true "
            f"classes, and {' and '.join(margins)} is about predictions alone. Leave it out, or "
            f"add such a margin, for example --within error-parity=0.1."
        )


def reject_option(
    model: Any,
    given: KeepsMargins,
    margins: Mapping[str, float],
    *,
    groups: Any,
    columns: tuple[str, ...],
    grouping: Grouping | None,
    rows_of: Callable[[TypedTable], Any],
    **more: Any,
) -> RejectOptionClassifier:
    """Return the reject option around a model, calibrated where the margins need it.

    ``columns`` are those of the groups, ``rows_of`` reads the model's rows of a table, and ``more``
    are further arguments of ``RejectOptionClassifier``.
    """
    from evenhand.estimators import RejectOptionClassifier

    labelled = {}
    if given.calibration is not None:
        labelled = _labelled(model, given, groups, columns, grouping, rows_of)
    return RejectOptionClassifier(
        model,
        fairness=[_notion(model, given, name, margin) for name, margin in margins.items()],
        groups=groups,
        level=given.gate_level,
        admit_by=given.admit_by,
        **labelled,
        **more,
    )


def _notion(model: Any, given: KeepsMargins, name: str, margin: float) -> RateNotion:
    """Return a notion as the model was trained under it, where it was."""
    from evenhand.fairness.notions import notion_named, require_notion

    own = model.fitted_.fairness
    reference = given.reference or ("rest" if own is None else own.reference)
    kind = notion_named(name)
    positive = getattr(own, "positive", None) if isinstance(own, kind) else None
    found = kind.of(margin=margin, reference=reference, positive=positive)
    return require_notion(found, f"Such as --within {DEMOGRAPHIC_PARITY}=0.05.")


def _labelled(
    model: Any,
    given: KeepsMargins,
    groups: Any,
    columns: tuple[str, ...],
    grouping: Grouping | None,
    rows_of: Callable[[TypedTable], Any],
) -> dict[str, Any]:
    """Read the calibration rows, as the arguments of ``RejectOptionClassifier`` that they are."""
    from evenhand._numerals import text_of
    from evenhand.estimators.spec import CALIBRATION
    from evenhand.fairness.groups import encode_groups

    assert given.calibration is not None
    known, where = Training.read(given.model), str(given.calibration)
    label = given.label or (None if known is None else known.label)
    if label is None:
        raise ValueError(
            "--label is missing, and this model was not trained at the command line, so nothing is "
            "known of its label column. Name the column of the classes in --calibration."
        )
    table = read(given.calibration)
    table.require([label], "which --label names")
    names = [text_of(name) for name in model.classes_.tolist()]
    truth = model.classes_[class_codes(labels(table, label), names, where=where)]
    features = sensitive_features(group_columns(table, columns), grouping, given.calibration)
    with as_bad_input(ValueError, where=where):
        encode_groups(features, names=groups)
    return dict(zip(CALIBRATION, (rows_of(table), truth, features), strict=True))


def say_calibrated(option: RejectOptionClassifier, given: KeepsMargins) -> None:
    """Tell the person at the terminal what is known of true classes, if anything has to be."""
    known = option.reject_option_.calibration
    if known is not None:
        n = int(known.labelled.counts.sum())
        note(f"what is true is read from the {n:,} labelled rows of {given.calibration}")

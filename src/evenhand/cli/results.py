"""What a run and a measurement are told as: plain values for machines, tables for people."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rich.table import Table

from evenhand import _values
from evenhand._checks import did_you_mean
from evenhand.cli.console import table

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.cli.tables import Roles
    from evenhand.fairness import Estimate, FairnessReport, Grouping
    from evenhand.typing import IntArray

NOT_COVERED: Final = (
    "Measured on the test rows, without noise: these numbers are not covered by the guarantee."
)
GAPS: Final = {
    "demographic_parity": "how often a class is predicted",
    "equalized_odds": "the same, among rows of one true class",
    "error_parity": "how often a prediction is wrong",
    "false_positive_parity": "how often a class is predicted to rows that are not of it",
    "generalized_demographic_parity": "the law of the score (Wasserstein distance)",
}
"""The gaps that are shown, and what each compares between groups."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Trial:
    """Labelled rows to measure a model on."""

    X: pd.DataFrame
    y: pd.Series[Any]
    groups: Any
    path: Path


def read_trial(path: Path, roles: Roles, grouping: Grouping | None = None) -> Trial:
    """Read a test table: its labels and, if sensitive columns are named, its groups."""
    from evenhand.cli import tables
    from evenhand.datasets import read_table

    frame = read_table(path)
    tables.require(frame, path, "--label", roles.label)
    groups = None
    if roles.sensitive:
        columns = tables.group_columns(frame, path, roles.sensitive)
        groups = tables.sensitive_features(columns, grouping, path)
    return Trial(X=frame, y=tables.labels(frame, path, roles.label), groups=groups, path=path)


def measure(
    model: Any, trial: Trial, *, positive: str | None, same_groups: bool = True
) -> FairnessReport:
    """Measure the model on the trial; nothing of this is covered by the guarantee.

    Parameters
    ----------
    positive : str, optional
        The favourable class; the last of two if not given.
    same_groups : bool
        The sensitive columns are those of training, so the groups must be known.
    """
    import numpy as np

    from evenhand.cli.tables import features_of
    from evenhand.datasets.columns import text_of
    from evenhand.fairness import encode_groups, fairness_report

    names = [text_of(name) for name in model.classes_.tolist()]
    truth = class_codes(trial.y, names, where=str(trial.path))
    known = model.groups_ if same_groups else None
    groups = np.full(len(truth), "everybody") if trial.groups is None else trial.groups
    if trial.groups is not None:
        try:
            groups = encode_groups(trial.groups, names=known)
        except ValueError as error:
            raise ValueError(f"{trial.path}: {error}") from None
    X = features_of(model, trial.X, trial.path)
    predicted = predictions(model, X, trial.groups if same_groups else None).tolist()
    place = {text_of(name): code for code, name in enumerate(model.classes_.tolist())}
    free = _without_margin(model, X)

    def coded(labels: list[Any]) -> IntArray:
        return np.array([place[text_of(label)] for label in labels], dtype=np.int64)

    return fairness_report(
        truth,
        coded(predicted),
        groups,
        classes=names,
        positive=_positive(positive, names),
        probabilities=model.predict_proba(X) if _of_scores(model) else None,
        without_margin=None if free is None else coded(free.tolist()),
    )


def _without_margin(model: Any, X: Any) -> Any:
    """Predict with the same model without its margin, where that is free; else None."""
    if hasattr(model, "model_"):  # thresholds stand around the model that they cut
        return model.model_.predict(X)
    if model.student_without_margin_ is None:
        return None
    return model.without_margin().predict(X)


def _of_scores(model: Any) -> bool:
    """Tell whether the model was trained for laws of scores that are alike."""
    notion = getattr(model, "notion", None)
    return "generalized_demographic_parity" in (notion, getattr(notion, "name", None))


def predictions(model: Any, X: Any, groups: Any) -> Any:
    """Predict, with the groups where the model needs them; the same rows get the same labels."""
    if not model.needs_group_at_prediction_:
        return model.predict(X)
    if groups is None:
        raise ValueError(
            "This model decides by the group as well, and needs the sensitive columns of its "
            "training. Name them with --sensitive, and have them in the table."
        )
    # Probability decides a score that equals its threshold, and decisions that are derived from the
    # group; from a fixed seed, it is repeatable.
    return model.predict(X, sensitive_features=groups, random_state=0)


def probabilities(model: Any, X: Any, groups: Any) -> Any:
    """Return the probability of each class: of a decision, where that is derived from the group."""
    from evenhand.fairness import FairnessKind

    if model.fairness_kind_ is FairnessKind.DERIVED:
        return model.predict_proba(X, sensitive_features=groups)
    return model.predict_proba(X)


def class_codes(y: pd.Series[Any], names: Sequence[str], *, where: str) -> IntArray:
    """Return the position of each label among the model's classes; 1, 1.0 and "1" are one class."""
    import numpy as np

    from evenhand.datasets.columns import text_of

    place = {name: code for code, name in enumerate(names)}
    texts = [text_of(value) for value in y.tolist()]
    for row, text in enumerate(texts):
        if text not in place:
            raise ValueError(
                f"{where}: the label in {_values.row(row)}, {_values.quoted(text)}, is not a class "
                f"of the model: {', '.join(map(repr, names))}."
                f"{_values.if_shown(did_you_mean(text, names))}"
            )
    return np.array([place[text] for text in texts], dtype=np.int64)


def check_positive(positive: str | None, y: pd.Series[Any]) -> None:
    """Refuse a favourable class that is no class, before anything is trained."""
    from evenhand.datasets.columns import natural_order, text_of

    names = natural_order(text_of(value) for value in y.unique().tolist())
    if positive is not None and positive not in names:
        raise ValueError(
            f"--positive must be one of the classes of the label, {_values.listed(names, 20)}, got "
            f"{positive!r}.{_values.if_shown(did_you_mean(positive, names))}"
        )


def of_run(model: Any, measured: FairnessReport | None, reference: str) -> dict[str, Any]:
    """Return what is to be told about a trained model."""
    from evenhand.estimators import small_groups
    from evenhand.report import ModelReport

    inner = getattr(model, "model_", model)  # thresholds stand around the model that they cut
    guarantee, answers = model.guarantee_, getattr(inner, "answers_", None)
    fairness = getattr(model, "fairness", None)
    told = getattr(model, "notion", None)  # in words, where a method was told in words
    return {
        "method": type(model).__name__,
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "unit": guarantee.unit,
        "neighbors": guarantee.neighbors,
        "noise": guarantee.noise,
        "guarantee": str(guarantee),
        "public": list(guarantee.public),
        "holds": guarantee.holds,
        "warnings": list(ModelReport.of(model, measured=measured).warnings),
        "epsilon_spent": (
            None
            if model.ledger_ is None
            # A promise with delta 0 has its books at the delta of the budget.
            else model.ledger_.spent_epsilon(guarantee.delta or model.budget.delta)
        ),
        "fairness_kind": str(model.fairness_kind_),
        "needs_group_at_prediction": model.needs_group_at_prediction_,
        "notion": told.replace("_", "-") if told else getattr(fairness, "name", None),
        "margin": _margin_of(model),
        "noisy_violation": _finite(getattr(inner, "noisy_violation_", None)),
        "within_alpha": getattr(inner, "within_alpha_", None),
        "bounds": [asdict(bound) for bound in getattr(inner, "bounds_", ())],
        "fairness_weight": getattr(inner, "fairness_weight", None),
        "table_gap": getattr(inner, "table_gap_", None),
        "margin_source": getattr(inner, "margin_source_", None),
        "answered_gap": None if (gate := getattr(inner, "gate_", None)) is None else gate.gap,
        "bound": getattr(inner, "bound_", False),
        "public_gap": inner.public_gap_ if getattr(inner, "bound_", False) else None,
        "calibration_gap": (
            None if (known := getattr(inner, "calibration_gap_", None)) is None else known.to_dict()
        ),
        "within_margin": getattr(inner, "within_margin_", None),
        "held": (
            None
            if (held := getattr(inner, "held_", None)) is None
            else small_groups.to_dict(held, model.groups_)
        ),
        "n_teachers": getattr(inner, "n_teachers_", None),
        "choices": list(getattr(inner, "choices_", ())),
        "n_queries": None if answers is None else len(answers),
        **{
            name: None if answers is None else getattr(answers, name)
            for name in ("n_asked", "n_answered", "n_rejected", "coverage")
        },
        "yardstick": (
            None
            if (yardstick := getattr(inner, "public_yardstick_", None)) is None
            else yardstick.to_dict() | {"majority": str(model.classes_[yardstick.majority])}
        ),
        "mechanism": repr(inner.mechanism_) if hasattr(inner, "mechanism_") else None,
        "measured": None if measured is None else of_measured(measured, reference),
    }


def _margin_of(model: Any) -> float | None:
    """Return the margin that was asked for, by whatever name the method has it."""
    fairness = getattr(model, "fairness", None)
    if fairness is not None:
        return float(fairness.margin)
    asked: float | None = getattr(model, "margin", getattr(model, "alpha", None))
    return asked


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value


def of_measured(measured: FairnessReport, reference: str) -> dict[str, Any]:
    """Return what was measured on test rows."""
    error = measured["error_rate"]
    gap = measured[f"demographic_parity_{reference}"]
    return {
        "covered": False,
        "n_rows": int(measured.coverage.offered.sum()),
        "error": error.value,
        "error_interval": [error.low, error.high],
        "demographic_parity_gap": gap.value,
        "gap_interval": [gap.low, gap.high],
        "reference": reference,
        **measured.to_dict(),
        "warnings": _warnings(measured),
    }


def _warnings(measured: FairnessReport) -> list[str]:
    """Return what must be known of the measurements first."""
    found = measured.yardstick
    return [words] if found is not None and (words := found.warning(measured.classes)) else []


def run_parts(summary: Mapping[str, Any]) -> list[str | Table]:
    """Return a trained model's results for people."""
    from evenhand.estimators.fitted import WHERE
    from evenhand.report.claim import (
        MARGIN_BINDS,
        MARGIN_BINDS_ANSWERS,
        STUDENT_BOUND_ON,
    )

    kind = f"Where the margin sits: {summary['fairness_kind']}."
    if summary["table_gap"] is not None:
        kept = _against_margin(summary, "table_gap")
        return [summary["guarantee"], kind, f"Gap of the decisions by the noisy table: {kept}."]
    if summary["n_queries"] is None:
        return [summary["guarantee"], kind]
    source = summary["margin_source"] or "public rows"
    rows = [
        ("teachers", f"{summary['n_teachers']:,}"),
        ("public rows", f"{summary['n_queries']:,}"),
        ("asked", f"{summary['n_asked']:,}{_again(summary)}"),
        ("answered", f"{summary['n_answered']:,}"),
        ("coverage", f"{summary['coverage']:.1%} of the rows that were considered"),
    ]
    for whose, gap in (
        ("answers", "answered_gap"),
        (f"model {WHERE[source].replace('the ', '', 1)}", "public_gap"),
    ):
        if summary[gap] is not None:
            rows.append((f"gap of the {whose}", _against_margin(summary, gap)))
    rows += [
        (
            f"gap of {group['name']}, {group['n_rows']:,} public rows",
            f"{group['gap']:.4f}, held to {group['limit']:.4f}",
        )
        for group in (summary["held"] or {"groups": []})["groups"]
    ]
    rows += _by_answers(summary["yardstick"])
    if summary["noisy_violation"] is not None:
        rows.append(("violation by the noisy groups", _against_margin(summary, "noisy_violation")))
    shown: list[str | Table] = [
        summary["guarantee"],
        table(("what the model learned from", ""), rows),
        kind,
    ]
    if summary["answered_gap"] is not None:
        shown.append(MARGIN_BINDS_ANSWERS if summary["bound"] else MARGIN_BINDS)
    return [*shown, STUDENT_BOUND_ON[source]] if summary["bound"] else shown


def _against_margin(summary: Mapping[str, Any], gap: str) -> str:
    notion = summary["notion"].replace("-", " ")
    return f"{summary[gap]:.4f}, margin {summary['margin']:g} of {notion}"


def _by_answers(found: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Return the errors by the released answers: what is known without test rows."""
    if found is None:
        return []
    free = found["without_margin"]
    beside = f"; always predicting {found['majority']!r}: {found['majority_error']['value']:.4f}"
    beside += "" if free is None else f"; without the margin: {free['value']:.4f}"
    return [("error by the released answers", f"{found['error']['value']:.4f}{beside}")]


def _again(summary: Mapping[str, Any]) -> str:
    again = summary["n_asked"] - summary["n_queries"]
    return f", {again:,} of them a row again" if again > 0 else ""


def measured_parts(measured: FairnessReport, reference: str) -> list[str | Table]:
    """Return measurements for people: the error, the gaps, and a row per group."""
    error = measured["error_rate"]
    rows = [("error", _number(error), _interval(error))]
    if (yardstick := measured.yardstick) is not None:
        beside = yardstick.rows(measured.classes)
        rows += [(f"error of {words}", _number(e), _interval(e)) for words, e in beside]
    there = {estimate.name for estimate in measured.estimates}
    for name, words in GAPS.items():
        if f"{name}_{reference}" not in there:
            continue  # laws of scores are compared where these are what shall be alike
        gap = measured[f"{name}_{reference}"]
        rows.append((f"{name.replace('_', ' ')} gap: {words}", _number(gap), _interval(gap)))
    shown: list[str | Table] = [
        table(("measured on the test rows", "value", "95 % interval"), rows)
    ]
    if len(measured.groups) > 1:
        shown.append(_groups(measured))
    return [*shown, NOT_COVERED]


def _groups(measured: FairnessReport) -> Table:
    """One row per group; with a favourable class its rate, else the rate of each class."""
    sizes = measured.coverage.offered.sum(axis=1)
    if measured.positive is None:
        columns = [f"predicted {name}" for name in measured.classes]
    else:
        columns = [f"predicted {measured.classes[measured.positive]}"]
    rows = []
    for z, group in enumerate(measured.groups):
        rates = (
            [f"{rate:.4f}" for rate in measured.rates[z]]
            if measured.positive is None
            else [f"{_number(measured.selection[z])} {_interval(measured.selection[z])}"]
        )
        error = measured.errors[z]
        rows.append((group, f"{sizes[z]:,}", *rates, f"{_number(error)} {_interval(error)}"))
    return table(("group", "rows", *columns, "error"), rows)


def _positive(positive: str | None, names: Sequence[str]) -> int | None:
    """Return the code of the favourable class; the last of two if none is named."""
    if positive is None:
        return 1 if len(names) == 2 else None
    if positive not in names:
        raise ValueError(
            f"--positive must be one of the classes {', '.join(map(repr, names))}, got "
            f"{positive!r}.{did_you_mean(positive, names)}"
        )
    return list(names).index(positive)


def _number(estimate: Estimate) -> str:
    return "no rows" if estimate.value != estimate.value else f"{estimate.value:.4f}"


def _interval(estimate: Estimate) -> str:
    return f"[{estimate.low:.4f}, {estimate.high:.4f}]"

"""The first page of a model's report, for people who have never heard of epsilon."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from evenhand.fairness.intervals import Estimate
from evenhand.report import claim
from evenhand.report.measured import Measured, known
from evenhand.report.settings import listed

if TYPE_CHECKING:
    from evenhand.report.content import ModelReport

_SHOWN: Final = 8
"""Groups, classes or columns that the first page names."""


def opening(report: ModelReport) -> tuple[tuple[str, str], ...]:
    """Return what the first page says: terms and sentences, in the order in which they are read."""
    return (
        ("What it decides", _decides(report)),
        ("Who is protected, and against what", _protected(report)),
        ("How good it is", _good(report)),
        ("How differently groups are treated", _groups(report)),
        ("What is not promised", _not_promised(report)),
    )


def _decides(report: ModelReport) -> str:
    about = dict(report.facts).get("Data set")
    of = f" It was trained on {about}." if about else ""
    columns = listed(report.columns, _SHOWN) or f"{report.n_columns} columns of an array"
    group = " It needs the group of the person, too." if report.kind.needs_group else ""
    return (
        f"One of {listed(report.classes, _SHOWN)} for each person, or whatever a row is about, "
        f"from {columns}.{group}{of}"
    )


def _protected(report: ModelReport) -> str:
    claimed = report.guarantee
    if not claimed.holds:
        return "Nobody."
    return (
        f"{claim.protected(claimed)}, against anybody who sees this model and what it decides, "
        f"whatever else they know. The numbers measured on test rows below are not protected."
    )


def _good(report: ModelReport) -> str:
    found, beside = report.measured, report.yardstick
    if found is not None and found.error is not None:
        said = f"Of 100 test rows it is wrong for {_of_hundred(found.error)}"
    elif beside is not None:
        said = "Of 100 rows, by the noisy answers that it learned from, it is wrong for "
        said += _of_hundred(beside.error)
    else:
        return "Not measured: no labelled test rows were given."
    if beside is None:
        return f"{said}."
    others = [
        f"{words} is wrong for {_of_hundred(error)}" for words, error in beside.rows(report.classes)
    ]
    return f"{said}. To compare: {'; '.join(others)}."


def _groups(report: ModelReport) -> str:
    found, bound = report.measured, report.student
    said = []
    if found is not None and len(found.groups) > 1:
        said += [_rates(found, code) for code in found.shown[:_SHOWN]]
    if bound is not None:
        said.append(f"{bound.where[:1].upper()}{bound.where[1:]} its gap is {bound.gap:.3f}")
    if report.notion is not None:
        said.append(
            f"The margin of training is {report.notion.margin:g} of "
            f"{report.notion.name.replace('-', ' ')}"
        )
    if not said:
        return "Not measured, and no margin between groups was asked for."
    return ". ".join(said) + "."


def _rates(found: Measured, code: int) -> str:
    rates = [
        f"{_hundredths(found.rates[z][code])} of {group}" + _of_few(found.sizes[z])
        for z, group in enumerate(found.groups[:_SHOWN])
    ]
    more = len(found.groups) - _SHOWN
    rest = f" and {more} further groups, see below" if more > 0 else ""
    return f"Of 100 test rows each, {found.classes[code]} is decided for {', '.join(rates)}{rest}"


def _not_promised(report: ModelReport) -> str:
    claimed = report.guarantee
    if not claimed.holds:
        return "Anything about the privacy of the data."
    return (
        "That it is right, or treats groups alike, on rows of other people: that can be measured "
        f"and not promised. Nor is anything promised about {'; '.join(claimed.not_covered)}."
    )


def _of_hundred(estimate: Estimate) -> str:
    if not known(estimate):
        return "an unknown number"
    return (
        f"{_hundredths(estimate)} ({estimate.level:.0%} interval "
        f"{100 * estimate.low:.0f} to {math.ceil(100 * estimate.high):.0f})"
    )


def _of_few(n: int) -> str:
    """Say of how few rows a rate in a hundred is, so that nobody takes it for one of many."""
    return f" (by {n} row{'s' * (n != 1)} alone)" if n < 100 else ""


def _hundredths(estimate: Estimate) -> str:
    return f"{100 * estimate.value:.0f}" if known(estimate) else "an unknown number"

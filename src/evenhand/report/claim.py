"""The claim in plain words: what epsilon and delta mean, for whom, and against which change."""

from __future__ import annotations

import math
from typing import Final

from evenhand.privacy import Guarantee
from evenhand.privacy.relation import holder_of, is_attribute
from evenhand.privacy.trade_off import TradeOff

MARGIN_BINDS: Final = (
    "The margin binds the answered set, that is, the labels the student learned from. It does not "
    "bind the student, and it does not bind the population the model will meet."
)
MARGIN_BINDS_ANSWERS: Final = (
    "The gate binds the answered set, that is, the labels the student learned from, and nothing "
    "else; what binds the student stands below."
)
STUDENT_BOUND: Final = (
    "The student was trained under the margin too: its own decisions on the public rows are meant "
    "to keep it. That does not bind it on new rows, nor the population the model will meet; there "
    "its gap is measured, not promised."
)
AIMED_FOR: Final = (
    "Training aimed for the margin on the private rows. It is not promised, there or anywhere: the "
    "gaps of the model can only be measured."
)
THRESHOLDS_BIND: Final = (
    "The decisions on the public rows that set the thresholds keep the margin, in expectation over "
    "the draws at thresholds and between those of one group. On new rows the gap is near it if "
    "they come from the same population; there it is measured, not promised."
)
COUNTS_BIND: Final = (
    "By noisy counts of the private rows' scores, and by the public rows where there are any, the "
    "decisions keep the margin, in expectation over the draws at thresholds and between those of "
    "one group. Noise, and ranges in place of scores, stand between this and the rows themselves. "
    "On new rows the gap is near it if they come from the same population; there it is measured, "
    "not promised."
)
PENALIZED: Final = (
    "Training penalized the dependence of decision and group among the private rows, by a weight. "
    "No margin was named and none is promised: the gaps of the model can only be measured."
)
PROBABILITIES_BIND: Final = (
    "The probabilities keep the margin by the noisy table of group, true label and decision, in "
    "expectation over the draws. Among the private records the rates may be further apart, for the "
    "table is noisy; on new rows the gap is measured, not promised."
)
STUDENT_BOUND_ON: Final = {
    "public rows": STUDENT_BOUND,
    "calibration rows": (
        "The student was trained under the margin: its own decisions on the labelled calibration "
        "rows are meant to keep it. That does not bind it on new rows, nor the population the "
        "model will meet; there its gap is measured, not promised. The fewer calibration rows in a "
        "cell, the farther from it the gap on new rows may be."
    ),
    "released answers": (
        "The student was trained under the margin with respect to what the teachers say about the "
        "public rows, with noise, and not with respect to the truth. That does not bind it on new "
        "rows, nor the population the model will meet; there its gap is measured, not promised."
    ),
    "drawn rows": (
        "The student was trained under the margin too: its own decisions on rows that were drawn "
        "from noisy counts are meant to keep it. These rows are like the private ones up to the "
        "noise and to what the counts leave out, and their groups carry noise as well: on real "
        "rows the gap can be wider. There it is measured, not promised."
    ),
    "counted decisions": (
        "The student was trained under the margin too: its own decisions on rows that were drawn "
        "from noisy counts are meant to keep it, once the rates of each group there are moved by "
        "what noisy counts of a first student's decisions about the private rows tell of them. "
        "That leaves the noise of both, most for small groups, and what is off for this student "
        "and was not for the first. It does not bind the student on new rows, nor on the "
        "population the model will meet; there its gap is measured, not promised."
    ),
    "noisy tables": AIMED_FOR
    + " What stands here is what the steps of training themselves released, with noise, of the "
    "rates of the models on the way.",
}
"""What binds the student, by where its margin was read."""
NOT_COVERED: Final = (
    "Not covered by the guarantee. These numbers were measured on test rows after training. "
    "Publishing them says something about the people in the test rows, and no noise was added."
)
NOT_COVERED_RECORDS: Final = (
    "Not covered by the guarantee. These numbers were measured on real records without noise; "
    "publishing them says something about the people in those records."
)
COVERED: Final = (
    "Covered by the guarantee: computed from what was released and from public rows alone, which "
    "costs nothing further."
)
VOID: Final = "Not covered by anything: the guarantee of this run does not hold."

_CHANGE: Final = {
    "replace one": "one {unit} in the private data is replaced by any other",
    "add or remove one": "one {unit}{with_all} is in the private data or is not",
    "change one group label": "the group label of one {unit} is one or another; "
    "nothing else about the {unit} is protected",
    "change one group and class label": "the group label and the class label of one {unit} are "
    "some or others; nothing else about the {unit} is protected",
}
_GUESSED: Final = {
    "replace one": "which of two possible {unit}s is in the private data",
    "add or remove one": "whether one {unit} is in the private data",
    "change one group label": "of which of two groups one {unit} is",
    "change one group and class label": "which of two possible groups and labels one {unit} has",
}
_SEVERAL: Final = (
    " Somebody with several records is protected for each of them by itself, not for all together."
)


def meaning(guarantee: Guarantee, allowed: TradeOff | None = None) -> tuple[tuple[str, str], ...]:
    """Return each term of the claim with its meaning, in the order in which it is read.

    ``allowed`` is what an attacker may gain where the ledger says more of it than the claim.
    """
    unit = guarantee.unit
    with_all = "" if unit == "record" else ", with all of its records,"
    change = _CHANGE[guarantee.neighbors].format(unit=holder_of(unit), with_all=with_all)
    changed = f"the {unit}" if is_attribute(unit) else f"one {unit}"
    return (
        (
            "What is compared",
            f"Two runs of the same training that differ in one respect: {change}. In the terms of "
            f"the claim the unit is “{unit}”, and neighbors are “{guarantee.neighbors}”."
            + (_SEVERAL if unit == "record" else ""),
        ),
        (
            f"Epsilon = {guarantee.epsilon:g}",
            f"Whatever somebody concludes from the model, the change of {changed} makes that "
            f"conclusion at most {factor(guarantee.epsilon)} times as likely, or as unlikely (e "
            f"to the power of epsilon). Zero would mean that the change makes no difference.",
        ),
        (f"Delta = {guarantee.delta:g}", _delta(guarantee.delta)),
        ("What an attacker gains", _attacker(allowed or TradeOff.of(guarantee))),
        ("Noise", _sentence(guarantee.noise)),
        (
            "Accounting",
            f"{_sentence(guarantee.accounting)} Everything was charged before its noise was "
            f"drawn. What is claimed is the whole budget, however much of it was spent.",
        ),
    )


def gain(guarantee: Guarantee, allowed: TradeOff | None = None) -> str:
    """Say in one sentence what an attacker gains, for people who have never heard of epsilon."""
    most = _percent(allowed or TradeOff.of(guarantee))
    what = _GUESSED[guarantee.neighbors].format(unit=holder_of(guarantee.unit))
    return (
        f"Whoever sees this model and guesses {what}, either being equally likely before, is "
        f"right at most {most} of the time, where a coin is right 50 %."
    )


def protected(guarantee: Guarantee) -> str:
    """Say whose data are protected, as the beginning of a sentence."""
    if is_attribute(guarantee.unit):
        return f"The {guarantee.unit}, and nothing else"
    return f"Each {guarantee.unit} in the private data"


def factor(epsilon: float) -> str:
    """Return ``e**epsilon`` for a reader, rounded up: the claim is an upper bound."""
    if epsilon > 20:
        return f"10^{math.ceil(epsilon / math.log(10))}"
    value = math.exp(epsilon)
    digits = 2 if value < 10 else 1 if value < 100 else 0
    return f"{math.ceil(value * 10**digits) / 10**digits:,.{digits}f}"


def covered(guarantee: Guarantee) -> str:
    """Say what protects numbers that follow from released answers."""
    return COVERED if guarantee.holds else VOID


def not_private(guarantee: Guarantee) -> str:
    """Say in two sentences that nothing is promised, and why."""
    if guarantee.as_printed:
        return (
            f"Nothing is promised about anybody’s data: {guarantee.reason}. It is a paper’s method "
            f"as it is printed, to compare with. Do not publish this model or its predictions; for "
            f"anything that leaves the house train a method whose claim holds."
        )
    if not guarantee.bounded:
        return (
            f"Nothing is promised about anybody’s data: {guarantee.reason}. It is a reference "
            f"point, to see what privacy costs. Do not publish this model or its predictions; for "
            f"anything that leaves the house train a private method."
        )
    why = guarantee.reason or f"its noise can be predicted ({guarantee.noise})"
    return (
        f"Nothing is promised about anybody’s data: {why}. Do not publish this model, and do not "
        f"use it on private data; train it again with protecting noise, which is the default."
    )


def no_privacy(guarantee: Guarantee) -> str:
    """Say in a few words why nothing is promised."""
    if guarantee.as_printed:
        return "as printed in the paper, whose claim does not hold"
    return "the noise of this run protects nobody" if guarantee.bounded else "trained without it"


def _delta(delta: float) -> str:
    if delta == 0:
        return "The bound holds without exception."
    return (
        f"The bound may fail by at most this much: a probability of about 1 in "
        f"{_round(1 / delta)}. It should be far below one over the number of units."
    )


def _attacker(allowed: TradeOff) -> str:
    return (
        f"Somebody who knows everything except which of the two data sets was used, finds either "
        f"equally likely, and sees the model, guesses right with a probability of at most "
        f"{_percent(allowed)}. Without seeing it: 50 %."
    )


def _percent(allowed: TradeOff) -> str:
    """Return the largest probability of a right guess, rounded up: it is an upper bound."""
    return f"{min(math.ceil(allowed.best_guess * 1000) / 10, 100.0):.1f} %"


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def _round(number: float) -> str:
    return f"{number:,.0f}" if number < 1e9 else f"{number:.1e}"

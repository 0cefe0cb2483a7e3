"""Which method for which case, by public numbers and wishes alone: the choice, and its words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from evenhand.datasets import Schema
from evenhand.estimators.choosing_rules import (
    MARGINS,
    RULES,
    TEACHERS,
    THRESHOLDS,
    Case,
    Rule,
    first_line,
)
from evenhand.estimators.spec import MethodSpec
from evenhand.methods import METHODS
from evenhand.privacy import Budget

__all__ = ["Case", "Choice", "choose", "counts_pay", "only_of_teachers", "scales"]

LEAST_MU_FOR_COUNTS: Final = 0.25
"""Of the budget; epsilon 1 at delta 1e-5 has .27, at 1e-6 .24. With less, noise leaves the counts
no more to say than public rows do."""

TIGHTENED: Final = (
    "Thresholds are set inside the margin by one standard error of the gap, for what they are set "
    "on is a sample: people in general then keep a margin that is wider than this error in some "
    "five of six models, or seven of ten where rates of two classes are held, and not in every "
    "second."
)

OF_COUNTS: Final = (
    "The scores of the private rows are counted by group and released with noise, for a tenth of "
    "the budget's mu squared, and the thresholds are set on these counts as well: the groups are "
    "known and the budget pays for it."
)


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The method that was chosen, and the lines of ``RULES`` and ``MARGINS`` that decided.

    Lines are counted from 1; without a margin none of ``MARGINS`` did, and ``margin_line`` is None.
    ``counts`` says whether thresholds are set on noisy counts of the private rows' scores too, and
    ``tightening`` by how many standard errors inside the margin: see ``with_group_thresholds``.
    """

    method: str
    line: int
    margin_line: int | None = None
    counts: bool = False
    tightening: float = 0.0

    @property
    def rule(self) -> Rule:
        """The line that decided on the method."""
        return RULES[self.line - 1]

    @property
    def margin_rule(self) -> Rule | None:
        """The line that decided where the margin sits."""
        return None if self.margin_line is None else MARGINS[self.margin_line - 1]

    @property
    def thresholds(self) -> bool:
        """Whether the margin is kept by thresholds around the fitted model."""
        return self.margin_rule is not None and self.margin_rule.takes == THRESHOLDS

    @property
    def spec(self) -> MethodSpec:
        """The record of the method."""
        return METHODS[self.method]

    @property
    def said(self) -> str:
        """The choice of the method in a sentence, for people."""
        return (
            f"Method {self.method}, chosen by public numbers and wishes alone: {self.rule.because}."
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """The whole choice: also where the margin sits, if the group may be seen at prediction."""
        rule = self.margin_rule
        if rule is None or rule is MARGINS[0]:
            return (self.said,)
        kept = f"The margin is kept {rule.takes}: {rule.because}."
        counted = (OF_COUNTS,) if self.counts else ()
        return (self.said, kept, *counted, *((TIGHTENED,) if self.tightening == 1 else ()))

    def kept_in(self, model: Any) -> Any:
        """Write the choice down in a fitted model and its claim, and return it."""
        public = f"the choice of the method {self.method}, made without any private row"
        model.choices_ = (*self.sentences, *model.choices_)
        claim = model.guarantee_
        model.guarantee_ = replace(claim, public=(*claim.public, public))
        model._fitted = model._describe()
        return model


def choose(case: Case) -> Choice:
    """Return the method for a case, and where its margin sits, by the first lines that hold.

    Examples
    --------
    >>> choose(Case()).method, choose(Case(units=True)).method
    ('dpsgd', 'fair-shares')
    >>> choose(Case(units=True, margin=False)).method
    'pate'
    >>> choose(Case(of_true_classes=True, group_at_prediction=True)).sentences[1]
    "The margin is kept at thresholds by group: the margin is about true classes; the model's own \
probabilities stand for true classes, as the claim warns."
    """
    margin_line = first_line(MARGINS, case) if case.margin else None
    if margin_line is not None and MARGINS[margin_line - 1].takes == THRESHOLDS:
        case = replace(case, margin=False)  # training then keeps none
    line = first_line(RULES, case)
    method = RULES[line - 1].takes
    if method == TEACHERS:
        method = "fair-shares" if case.margin else "pate"
    thresholds = not case.margin and margin_line is not None
    return Choice(
        method=method,
        line=line,
        margin_line=margin_line,
        counts=thresholds and case.counts,
        tightening=float(thresholds and not case.confident),
    )


def only_of_teachers(asked: Mapping[str, Any]) -> list[str]:
    """Return which settings, of those that were asked for, teachers read and DP-SGD does not.

    Examples
    --------
    >>> only_of_teachers({"epsilon": 1.0, "n_teachers": 50, "neighbors": "add or remove one"})
    ['n_teachers']
    """
    by_gradients, teachers = METHODS["dpsgd"], (METHODS["fair-shares"], METHODS["pate"])
    return [
        name
        for name, value in asked.items()
        if not (by_gradients.accepts(name) or by_gradients.promises(name, value))
        and any(known.accepts(name) for known in teachers)
    ]


def counts_pay(asked: bool | None, budget: Budget | None) -> bool:
    """Whether noisy counts of scores were asked for or, where nobody said, the budget has room."""
    if asked is not None or budget is None:
        return bool(asked)
    return budget.mu >= LEAST_MU_FOR_COUNTS


def scales(schema: Schema | None) -> bool:
    """Whether a declared schema alone scales the columns: it bounds every number."""
    return schema is not None and all(
        column.bounds is not None for column in schema.columns if column.kind == "numeric"
    )

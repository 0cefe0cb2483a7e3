"""The method that ``evenhand train`` chooses where none is named."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from evenhand.cli.train_flags import DEMOGRAPHIC_PARITY
from evenhand.cli.train_limits import NOT_ALWAYS_READ, read_after
from evenhand.cli.train_options import TrainOptions

if TYPE_CHECKING:
    from evenhand.estimators.choosing import Choice


def resolved(
    given: TrainOptions, columns: Collection[str] = (), public: Collection[str] = ()
) -> tuple[TrainOptions, Choice]:
    """Return the options with the method that fits the case, and why it does.

    Parameters
    ----------
    given : TrainOptions
    columns : collection of str
        Those of the private table, once they are known.
    public : collection of str
        The same of the public table.
    """
    from evenhand.estimators.choosing import Case, choose, counts_pay, only_of_teachers
    from evenhand.fairness.notion import RateNotion
    from evenhand.privacy import Budget

    if given.sensitive and given.margin is None:
        raise ValueError(
            "--margin is missing. Say how far apart the groups' rates may be, for example "
            "--margin 0.05; or name a method that keeps none, and only measure it: --method dpsgd."
        )
    notion, epsilon = given.notion, given.epsilon
    asked = given.given & (NOT_ALWAYS_READ.keys() - read_after(given.given))
    budget = None if epsilon is None else Budget(epsilon=epsilon, delta=given.delta)
    case = Case(
        protect=given.protect or "record",
        units=given.unit is not None,
        account=given.ledger is not None,
        streams=given.streams,
        for_teachers=bool(only_of_teachers({name: getattr(given, name) for name in asked})),
        margin=given.margin is not None and not given.blind_rule,
        of_decisions_alone=notion.name == DEMOGRAPHIC_PARITY,
        of_true_classes=notion.needs_labels,
        of_rates=issubclass(notion, RateNotion),
        confident=given.confidence is not None,
        group_at_prediction=given.group_thresholds,
        public_groups=given.public_fraction is not None
        or (given.public is not None and _named(given.sensitive, public)),
        public_labels=given.calibration is not None,
        private_groups=_named(given.sensitive, columns),
        scaled=_scaled(given),
        pays_for_counts=counts_pay(given.score_counts, budget),
    )
    choice = choose(case)
    if given.tightening is not None:
        choice = replace(choice, tightening=given.tightening)
    if given.score_counts and "score_counts" in given.given and not choice.counts:
        raise ValueError(
            f"--score-counts is for thresholds by group around dpsgd, and none are set on counts "
            f"here: {' '.join(choice.sentences)} Leave it out, or name --method dpsgd and "
            f"--group-thresholds."
        )
    return replace(given, method=choice.method, score_counts=choice.counts), choice


def _named(sensitive: Collection[str] | None, columns: Collection[str]) -> bool:
    """Whether a table has the sensitive columns, as far as its columns are known."""
    return not columns or all(name in columns for name in sensitive or ())


def _scaled(given: TrainOptions) -> bool:
    """Whether something public scales the columns."""
    from evenhand.cli.tables import declared_schema
    from evenhand.estimators.choosing import scales

    if given.public is not None or given.public_fraction is not None or given.images:
        return True
    return given.schema is not None and scales(declared_schema(given.schema, given.roles))

"""The estimator that the options of ``evenhand train`` stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evenhand import _words
from evenhand.cli import options
from evenhand.cli.train_options import TrainOptions

if TYPE_CHECKING:
    from evenhand.cli.tables import TrainingTables
    from evenhand.estimators.synthetic_rows import SyntheticRows
    from evenhand.fairness.notion import Notion


def estimator_of(given: TrainOptions, tables: TrainingTables) -> Any:
    """Return the estimator that the options stand for."""
    margin = given.margin if given.trains_within_margin else 0.0  # by a weight: equal rates
    own_noise = given.ledger is None and given.noise is not None
    settings = vars(given) | {
        "hidden": None if given.hidden is None else tuple(filter(None, given.hidden))
    }
    return given.spec.make(
        settings,
        fairness=fairness_of(given, margin, tables) if given.trains_by_groups else None,
        any_public=tables.X_public is not None or given.public_fraction is not None,
        public=_drawn_rows(given),
        check_drift=given.check_drift,
        schema=tables.schema,
        random_state=given.seed,
        public_fraction=given.public_fraction,
        noise=options.noise(given.noise) if own_noise and given.noise else None,
        teachers=_teachers_of(given),
        **_networks_of(given),
        unit=given.unit_name,
    )


def _drawn_rows(given: TrainOptions) -> SyntheticRows | None:
    """Return how rows are drawn; None where there are public ones, and no share for counts."""
    if not given.draws_rows and given.synthetic_share is None:
        return None
    from evenhand.estimators.synthetic_rows import SyntheticRows

    return SyntheticRows(share=given.synthetic_share, keep=tuple(given.keep or ()))


def _teachers_of(given: TrainOptions) -> Any:
    """Return how teachers are trained; None for the method's own."""
    if given.reads_pixels:
        from evenhand.learners.nets.architectures import architecture_typed

        return architecture_typed(given.teacher_kind)
    return None if given.teacher == "logistic" else options.teachers(given.teacher)


def _networks_of(given: TrainOptions) -> dict[str, Any]:
    """Return the network that reads pixels, for whichever argument the method has for one."""
    if not given.reads_pixels:
        return {}
    from evenhand.learners.nets.architectures import architecture_typed

    return {
        "student": architecture_typed(given.teacher_kind),
        "architecture": architecture_typed(given.architecture or _words.PIXEL_NETWORKS[0]),
    }


def fairness_of(
    given: TrainOptions, margin: float | None, tables: TrainingTables | None = None
) -> Notion:
    """Return the notion; once the classes are known, also for the class that is meant."""
    positive = None
    if given.positive is not None and tables is not None:
        from evenhand._numerals import text_of

        classes = sorted(tables.y.unique().tolist())
        positive = [text_of(value) for value in classes].index(given.positive)
    reference = given.spec.reference or given.reference
    return given.notion.of(
        margin=margin or 0.0,
        reference=reference,
        positive=positive,
        confidence=given.confidence,
    )

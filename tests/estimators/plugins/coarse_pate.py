"""PATE with few teachers: a method of one's own, as small as one can be."""

from dataclasses import dataclass

from evenhand import PATEClassifier
from evenhand.estimators.spec import ACCOUNT, BUDGET, PUBLIC_ROWS, MethodSpec, registered


@registered(
    MethodSpec(
        name="coarse-pate",
        words="A dozen teachers vote on public rows, each with many records; no margin.",
        reads=(*BUDGET, "noise", "n_teachers", "teacher", *ACCOUNT, *PUBLIC_ROWS),
        needs=("epsilon",),
    )
)
@dataclass(eq=False, repr=False, kw_only=True)
class CoarsePATEClassifier(PATEClassifier):
    """Train a differentially private classifier by the votes of a dozen teachers."""

    n_teachers: int | None = 12

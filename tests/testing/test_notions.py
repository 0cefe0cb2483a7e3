"""Every notion keeps the contract, a stranger's too; each works wherever a notion is accepted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import evenhand
from evenhand import (
    Budget,
    DemographicParity,
    DPPostProcessingClassifier,
    EqualizedOdds,
    ErrorParity,
    FairOnlyClassifier,
    FairSharesClassifier,
    FalsePositiveParity,
    PFLDClassifier,
    RandomizedResponseClassifier,
    SFPATEClassifier,
    TruePositiveRateParity,
)
from evenhand.fairness.notions import known_notions
from evenhand.privacy import SeededNoise
from evenhand.testing.notions import Kind, NotionContract

from ..fairness.plugins.overestimation_parity import OverestimationParity


def whatever(_: int) -> bool:
    return True


def kinds_of(name: str, n_classes: int) -> Sequence[Kind]:
    """The rates of each notion, by what the words of its page say."""
    classes = range(n_classes)

    def is_class(k: int) -> Callable[[int], bool]:
        return lambda y: y == k

    def says(k: int) -> Callable[[int, int], bool]:
        return lambda y, said: said == k

    return {
        "demographic-parity": [(whatever, says(k)) for k in classes],
        "equalized-odds": [(is_class(y), says(k)) for y in classes for k in classes],
        "error-parity": [(whatever, lambda y, said: y != said)],
        "false-positive-parity": [(lambda y, k=k: y != k, says(k)) for k in classes],
        "true-positive-rate-parity": [
            (is_class(k), says(k)) for k in ([1] if n_classes == 2 else classes)
        ],
        "overestimation-parity": [
            (lambda y: y < n_classes - 1, lambda y, said: said > y),
        ],
    }[name]


ALL = (*known_notions().values(), OverestimationParity)


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.name)
@pytest.mark.parametrize("size", [2, 3])
class TestContract(NotionContract):
    @pytest.fixture(autouse=True)
    def _chosen(self, kind: Any, size: int) -> None:
        self.kind, self.n_classes = kind, size

    def notion(self, margin: float = 0.1, reference: str = "rest") -> Any:
        return self.kind(margin=margin, reference=reference)

    def kinds(self, n_classes: int) -> Sequence[Kind]:
        return kinds_of(self.kind.name, n_classes)


# ---- the places that take a notion ---------------------------------------------------------

BUDGET = Budget(epsilon=8.0, delta=1e-5)
NEW = (TruePositiveRateParity, OverestimationParity)


def people(seed: int, n: int = 1500) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    z = rng.integers(2, size=n)
    X = rng.normal(size=(n, 4)) + z[:, None] * [[0.0, 1.5, 1.0, 0.0]]
    y = (X[:, 0] + X[:, 1] + rng.logistic(size=n) > 0.75).astype(int)
    return X, y, np.array(["a", "b"])[z]


def gap(notion: Any, model: Any, seed: int = 9) -> float:
    X, y, z = people(seed, 4000)
    said = model.predict(X).astype(int)
    codes = (z == "b").astype(int)
    table = np.zeros((2, 2, 2), dtype=int)
    np.add.at(table, (codes, y, said), 1)
    return float(notion.gap(table))


@pytest.mark.parametrize("kind", NEW)
@pytest.mark.parametrize("calibrated", [True, False])
def test_a_student_of_shares_is_within_the_margin(kind: Any, calibrated: bool) -> None:
    notion = kind(margin=0.03)
    (X, y, z), (X_public, _, z_public), rows = people(0), people(1), people(2)
    model = FairSharesClassifier(
        BUDGET, fairness=notion, n_teachers=40, noise=SeededNoise(0), random_state=0
    )
    given = ("X_calibration", "y_calibration", "sensitive_features_calibration")
    model.fit(
        X, y, sensitive_features=z, X_public=X_public, sensitive_features_public=z_public,
        **(dict(zip(given, rows, strict=True)) if calibrated else {}),
    )  # fmt: skip
    assert model.within_margin_
    assert model.public_gap_ <= 0.03
    assert (model.calibration_gap_ is not None) is calibrated
    if calibrated:
        assert model.calibration_gap_.name == f"{notion.key}_rest"
    assert gap(notion, model) < gap(notion, model.without_margin()) / 2


@pytest.mark.parametrize("kind", NEW)
@pytest.mark.parametrize(
    "made",
    [
        lambda notion: SFPATEClassifier(
            BUDGET, fairness=notion, n_teachers=30, noise=SeededNoise(0), random_state=0
        ),
        lambda notion: PFLDClassifier(BUDGET, notion, noise=SeededNoise(0), random_state=0),
        lambda notion: RandomizedResponseClassifier(
            BUDGET, notion, noise=SeededNoise(0), random_state=0
        ),
        lambda notion: FairOnlyClassifier(notion, random_state=0),
    ],
    ids=["sf-pate", "pf-ld", "randomized response", "fair-only"],
)
def test_methods_that_read_private_groups_hold_it(kind: Any, made: Any) -> None:
    X, y, z = people(0, 4000)
    notion = kind(margin=0.02, reference="overall")
    free = made(kind(margin=1.0, reference="overall")).fit(
        X, y, sensitive_features=z, **_also(made)
    )
    held = made(notion).fit(X, y, sensitive_features=z, **_also(made))
    assert gap(notion, held) < gap(notion, free) / 2


def _also(made: Any) -> dict[str, Any]:
    return (
        {"X_public": people(1)[0]}
        if isinstance(made(DemographicParity(margin=0.1)), FairOnlyClassifier)
        else {}
    )


@pytest.mark.parametrize("kind", NEW)
def test_decisions_are_derived_for_it(kind: Any) -> None:
    X, y, z = people(0, 4000)
    notion = kind(margin=0.02, reference="pairwise")
    model = DPPostProcessingClassifier(
        BUDGET, notion, n_steps=100, noise=SeededNoise(0), random_state=0
    ).fit(X, y, sensitive_features=z, X_public=people(1)[0])
    own = np.repeat(np.eye(2)[None], 2, axis=0)
    before = type(model.rule_)(probabilities=own).gap(model.table_, notion)
    assert model.table_gap_ <= 0.02 + 1e-9 < before


def test_the_classes_of_a_notion_are_public_and_kept_in_files(tmp_path: Any) -> None:
    X, y, z = people(0)
    for kind in (EqualizedOdds, ErrorParity, FalsePositiveParity, TruePositiveRateParity):
        assert getattr(evenhand, kind.__name__) is kind
    notion = TruePositiveRateParity(margin=0.05, positive=0)
    model = FairOnlyClassifier(notion, random_state=0, max_iter=3)
    model.fit(X, y, sensitive_features=z, X_public=people(1)[0])
    assert evenhand.load(model.save(tmp_path / "model")).fairness == notion

"""Models fitted from one training of teachers are those that ``fit`` makes one by one."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenhand
from evenhand import (
    Budget,
    DemographicParity,
    FairPATEClassifier,
    FairSharesClassifier,
    PATEClassifier,
)
from evenhand.baselines.published_fairpate import PublishedFairPATEClassifier
from evenhand.estimators import fit_many
from evenhand.fairness import EqualizedOdds, ErrorParity
from evenhand.privacy import BudgetExceeded, ConfidentGNMax, GNMax, NoisyHistogram, SeededNoise


@pytest.fixture(scope="module")
def table() -> dict[str, Any]:
    rng = np.random.default_rng(5)
    groups = rng.integers(0, 2, 900)
    X = rng.normal(size=(900, 4)) + groups[:, None] * [[0.9, 0.0, 0.0, 0.0]]
    y = (X.sum(axis=1) + rng.normal(size=900) > 0.4).astype(int)
    return {
        "X": X[:600],
        "y": y[:600],
        "X_public": X[600:],
        "sensitive_features_public": groups[600:],
    }


def shares() -> list[FairSharesClassifier]:
    common: dict[str, Any] = {"n_teachers": 30, "random_state": 3}
    return [
        FairSharesClassifier(
            Budget(epsilon=9.0, delta=1e-5),
            DemographicParity(margin=margin),
            mechanism=mechanism,
            **common,
            noise=SeededNoise(200 + i),
        )
        for i, (margin, mechanism) in enumerate(
            [(0.1, None), (0.05, None), (0.1, NoisyHistogram(sigma=20.0, n_classes=2))]
        )
    ]


def settings() -> list[FairPATEClassifier]:
    common: dict[str, Any] = {"n_teachers": 30, "random_state": 3}
    made = [
        {"margin": 0.05, "epsilon": 20.0, "mechanism": GNMax(sigma=4.0)},
        {"margin": 0.2, "epsilon": 8.0, "mechanism": GNMax(sigma=8.0)},
        {
            "margin": 0.1,
            "epsilon": 30.0,
            "mechanism": ConfidentGNMax(threshold=20.0, sigma_check=5.0, sigma=4.0),
        },
        {"margin": 0.1, "epsilon": 9.0, "mechanism": None},
        {"margin": 0.1, "epsilon": 20.0, "mechanism": GNMax(sigma=4.0), "keep_order": True},
        {"margin": 0.1, "epsilon": 20.0, "mechanism": GNMax(sigma=4.0), "reference": "pairwise"},
    ]
    return [
        FairPATEClassifier(
            Budget(epsilon=each.pop("epsilon"), delta=1e-5),
            DemographicParity(margin=each.pop("margin"), reference=each.pop("reference", "rest")),
            **each,
            **common,
            noise=SeededNoise(100 + i),
        )
        for i, each in enumerate(made)
    ]


def published() -> list[PublishedFairPATEClassifier]:
    return [
        PublishedFairPATEClassifier(
            budget=Budget(epsilon=20.0, delta=1e-5),
            fairness=DemographicParity(margin=margin),
            mechanism=GNMax(sigma=4.0),
            n_teachers=30,
            random_state=3,
            noise=SeededNoise(100 + i),
        )
        for i, margin in enumerate((0.1, 0.3))
    ]


@pytest.mark.parametrize("made", [settings, shares, published])
def test_many_models_are_those_of_their_own_fit_given_the_same_noise(
    table: dict[str, Any], made: Any
) -> None:
    together, alone = made(), made()
    assert fit_many(together, **table) == [None] * len(together)
    for one, other in zip(together, alone, strict=True):
        other.fit(**table)
        assert np.array_equal(one.student_.coef_, other.student_.coef_)
        assert np.array_equal(one.predict(table["X"]), other.predict(table["X"]))
        assert one.guarantee_ == other.guarantee_
        assert one.choices_ == other.choices_
        assert one.ledger_.spent == other.ledger_.spent
        assert one.answers_.table() == other.answers_.table()
        assert one.public_gap_ == other.public_gap_
        assert type(getattr(one, "gate_", None)) is type(getattr(other, "gate_", None))
        assert one.fairness_kind_ == other.fairness_kind_


def test_models_without_a_margin_share_teachers_too(table: dict[str, Any]) -> None:
    def make() -> list[PATEClassifier]:
        return [
            PATEClassifier(
                Budget(epsilon=epsilon, delta=1e-5),
                n_teachers=30,
                mechanism=mechanism,
                random_state=3,
                noise=SeededNoise(7),
            )
            for epsilon, mechanism in ((10.0, GNMax(sigma=5.0)), (5.0, None))
        ]

    together, alone = make(), make()
    table = {name: table[name] for name in ("X", "y", "X_public")}
    assert fit_many(together, **table) == [None, None]
    for one, other in zip(together, alone, strict=True):
        other.fit(**table)
        assert np.array_equal(one.student_.coef_, other.student_.coef_)


@pytest.mark.parametrize("method", [FairPATEClassifier, FairSharesClassifier])
def test_a_margin_about_true_classes_is_read_on_the_calibration_rows(
    table: dict[str, Any], method: Any
) -> None:
    labelled = {
        "X_calibration": table["X"][:120] + 0.001,
        "y_calibration": table["y"][:120],
        "sensitive_features_calibration": (table["X"][:120, 0] > 0.5).astype(int),
    }

    def make() -> list[Any]:
        kinds = (EqualizedOdds, ErrorParity, DemographicParity)
        ungated = {"answer_margin": False} if method is FairPATEClassifier else {}
        return [
            method(
                Budget(epsilon=12.0, delta=1e-5),
                kind(margin=0.05),
                n_teachers=30,
                random_state=3,
                noise=SeededNoise(40 + i),
                **ungated,
            )
            for i, kind in enumerate(kinds)
        ]

    together, alone = make(), make()
    assert fit_many(together, **table, **labelled) == [None] * 3
    said = "the 120 calibration rows with their labels and groups"
    for one, other in zip(together, alone, strict=True):
        needs = isinstance(one.fairness, EqualizedOdds | ErrorParity)
        other.fit(**table, **(labelled if needs else {}))
        assert np.array_equal(one.student_.coef_, other.student_.coef_)
        assert one.guarantee_ == other.guarantee_
        assert (said in one.guarantee_.public) == needs
    fit_many(released := make(), **table)
    # They are read: without them the margin is read from the released answers, another student.
    assert not np.array_equal(released[0].student_.coef_, together[0].student_.coef_)


def test_units_are_dealt_whole_to_one_teacher_for_all_models(table: dict[str, Any]) -> None:
    units = np.arange(600) // 3
    together, alone = settings()[:2], settings()[:2]
    assert fit_many(together, **table, unit_ids=units) == [None, None]
    for one, other in zip(together, alone, strict=True):
        other.fit(**table, unit_ids=units)
        assert np.array_equal(one.student_.coef_, other.student_.coef_)
        assert (one.guarantee_.unit, one.guarantee_.neighbors) == ("person", "add or remove one")
        assert one.guarantee_ == other.guarantee_


def test_a_setting_that_cannot_be_paid_for_does_not_stop_the_others(table: dict[str, Any]) -> None:
    models = settings()[:2]
    models[0].budget = Budget(epsilon=0.01, delta=1e-5)
    refused, fine = fit_many(models, **table)
    assert isinstance(refused, BudgetExceeded)
    assert fine is None
    assert hasattr(models[1], "student_")
    assert not hasattr(models[0], "student_")


def test_a_setting_without_any_answer_says_so_and_the_others_go_on(table: dict[str, Any]) -> None:
    models = settings()[:2]
    models[0].mechanism = ConfidentGNMax(threshold=900.0, sigma_check=1.0, sigma=4.0)
    refused, fine = fit_many(models, **table)
    assert "No public row was answered" in str(refused)
    assert fine is None


def test_models_are_reported_as_they_are_fitted(table: dict[str, Any]) -> None:
    done: list[int] = []
    fit_many(settings()[:3], **table, concluded=done.append)
    assert done == [0, 1, 2]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n_teachers": 31}, "need the same n_teachers, got 30, 31"),
        ({"random_state": 4}, "need the same random_state, got 3, 4"),
    ],
)
def test_models_of_different_teachers_are_refused(
    table: dict[str, Any], change: dict[str, Any], words: str
) -> None:
    models = settings()[:2]
    models[1].set_params(**change)
    with pytest.raises(ValueError, match=words):
        fit_many(models, **table)


def test_a_random_state_that_cannot_be_repeated_is_refused(table: dict[str, Any]) -> None:
    models = [model.set_params(random_state=None) for model in settings()[:1]]
    with pytest.raises(ValueError, match="random_state must be a whole number, got None"):
        fit_many(models, **table)


def test_a_default_number_of_teachers_that_differs_is_refused(table: dict[str, Any]) -> None:
    models = [model.set_params(n_teachers=None) for model in settings()[:2]]
    with pytest.raises(ValueError, match="as it follows from the budget"):
        fit_many(models, **table)


def test_no_models_and_mixed_models_are_refused(table: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="at least one; got none"):
        fit_many([], **table)
    mixed: Any = [settings()[0], PATEClassifier(Budget(epsilon=1.0, delta=1e-5))]
    with pytest.raises(ValueError, match="got FairPATEClassifier, PATEClassifier"):
        fit_many(mixed, **table)


def private_of_others(code: str) -> Iterator[str]:
    """Yield private attributes that are read of anything but ``self`` and ``cls``."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and node.attr[1] != "_":
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            if not own:
                yield ast.unparse(node)


def test_sweeps_take_the_public_steps_of_fit_and_nothing_private() -> None:
    assert list(private_of_others("model._teach(data)\nself._own()\nx.__class__")) == [
        "model._teach"
    ]
    package = Path(evenhand.__file__).parent
    files = [*package.glob("frontier/*.py"), package / "estimators" / "shared_teachers.py"]
    assert len(files) > 10
    found = {file.name: list(private_of_others(file.read_text("utf-8"))) for file in files}
    assert {name: calls for name, calls in found.items() if calls} == {}

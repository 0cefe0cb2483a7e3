"""The record of each method says what its estimator takes, reads and promises."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from evenhand._notions import NOTIONS
from evenhand.estimators.inputs import NOT_TAKEN
from evenhand.estimators.spec import BY_NAME, MethodSpec
from evenhand.fairness import DemographicParity, FairnessKind
from evenhand.frontier.arguments import ARGUMENTS
from evenhand.methods import METHODS, RENAMED, estimators, method_named

SETTINGS = {
    "epsilon": 3.0,
    "delta": 1e-5,
    "margin": 0.1,
    "fairness": "demographic-parity",
    "n_teachers": 20,
    "neighbors": "add or remove one",
    "sigma": 4.0,
    "at": "T_in",
    "hidden": (3,),
    "degree": 2,
    "score_counts": True,
    "fairness_weight": 0.5,
    "pull": 0.2,
    "answers": "labels",
    "answer_margin": False,
    "admit_by": "estimate",
    "gate_level": 0.8,
}
"""A value for each setting that a constructor is given, and none a default."""


@pytest.fixture(params=METHODS)
def spec(request: pytest.FixtureRequest) -> MethodSpec:
    return METHODS[request.param]


def test_a_record_is_found_under_its_own_name(spec: MethodSpec) -> None:
    assert METHODS[spec.name] is spec
    assert estimators()[spec.estimator.__name__] is spec.estimator
    assert len(spec.words) <= 90
    assert spec.words.endswith(".")


def test_every_setting_that_it_reads_reaches_the_estimator(spec: MethodSpec) -> None:
    made = spec.make(SETTINGS, unit="household", noise=None).get_params(deep=False)
    for name in BY_NAME:
        if name in spec.reads:
            assert made[name] == SETTINGS[name], name
    assert ("budget" in made) is spec.private
    assert ("noise" in made) is spec.accepts("noise")
    assert ("teachers" in made) is spec.teachers
    assert (made.get("mechanism") is not None) is ("sigma" in spec.reads)
    assert made.get("unit", "household") == "household"
    assert ("unit" in made) is ("unit" in spec.reads)
    assert ("public_fraction" in made) is ("public_fraction" in spec.reads)
    assert ("fairness" in made) is (spec.margin != "none")
    held = DemographicParity(margin=0.1, reference=spec.reference or "rest")
    if spec.margin != "none":
        assert spec.make(SETTINGS, fairness=held).fairness is held
    assert spec.fixed.items() <= made.items()


def test_what_it_needs_it_reads_and_what_it_reads_a_grid_or_a_command_may_say(
    spec: MethodSpec,
) -> None:
    of_commands = {
        *("teacher", "unit", "unit_name", "ledger", "account", "account_epsilon"),
        *("public", "public_fraction", "calibration", "group_thresholds", "hidden", "pull"),
        *("architecture", "degree", "score_counts"),
    }
    assert set(spec.needs) <= set(spec.reads)
    assert set(spec.reads) <= {*ARGUMENTS, *of_commands}
    assert len(set(spec.reads)) == len(spec.reads)


def test_fit_takes_the_tables_that_the_record_speaks_of(spec: MethodSpec) -> None:
    takes = spec.takes
    assert ("X_public" in takes) is ("public" in spec.reads)
    assert ("sensitive_features_public" in takes) is bool(spec.public_groups)
    assert ("unit_ids" in takes) is ("unit" in spec.reads) is spec.teachers
    assert ("X_calibration" in takes) is ("calibration" in spec.reads)
    assert ("progress" in takes) is spec.private


def test_fit_refuses_what_the_method_does_not_take_and_says_why(spec: MethodSpec) -> None:
    model = spec.estimator()
    assert set(spec.takes) == set(model.TAKES) <= set(NOT_TAKEN)
    for name, why in NOT_TAKEN.items():
        if name in spec.takes:
            continue
        with pytest.raises(TypeError) as refused:
            model.fit(np.eye(4), [0, 1, 0, 1], **{name: np.zeros(4)})
        assert str(refused.value) == f"{spec.estimator.__name__} does not take {name}=: {why}."


def test_a_constructor_shows_its_own_arguments_before_those_of_all(spec: MethodSpec) -> None:
    known = inspect.signature(spec.estimator).parameters
    assert next(iter(known)) in ("budget", "fairness", "learner")
    assert list(known)[-3:] == ["schema", "classes", "random_state"]
    made = spec.estimator()
    assert {name: getattr(made, name) for name in known} == made.get_params(deep=False)
    assert vars(made).keys() == known.keys()


def test_notions_go_with_a_margin_or_a_weight(spec: MethodSpec) -> None:
    assert bool(spec.notions) is (spec.margin != "none")
    assert set(spec.notions) <= set(NOTIONS)
    assert (spec.kind_for(SETTINGS) is FairnessKind.NONE) is (
        # At T_in nothing is of the student; FairDP certifies a gap, and pulls nothing together.
        spec.margin == "none" or spec.name in ("intervention", "fairdp")
    )
    assert (spec.protects == "attribute") <= (spec.margin == "needed")


@pytest.mark.parametrize("old", RENAMED)
def test_an_old_name_says_the_new_one(old: str) -> None:
    with pytest.raises(ValueError, match=f"--method {old!r} is now called {RENAMED[old]!r}"):
        method_named("--method", old)
    assert RENAMED[old] in METHODS


def test_a_slip_is_told_the_nearest_name() -> None:
    with pytest.raises(ValueError, match=r"Did you mean 'fairpate'\?"):
        method_named("--method", "fairpatte")

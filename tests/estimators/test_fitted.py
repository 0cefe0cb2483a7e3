"""What a fitted model tells: the same of every method, before and after it was in a folder."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import evenhand
from evenhand import (
    Budget,
    DemographicParity,
    DPFERMIClassifier,
    DPPostProcessingClassifier,
    DPSGDClassifier,
    FairOnlyClassifier,
    FairPATEClassifier,
    FairSharesClassifier,
    NonPrivateClassifier,
    PATEClassifier,
    PFLDClassifier,
    RandomizedResponseClassifier,
    RejectOptionClassifier,
    SFPATEClassifier,
)
from evenhand.baselines import InterventionClassifier
from evenhand.estimators.fitted import FittedModel
from evenhand.estimators.margins import Derived, StudentMargin
from evenhand.estimators.saving.fitted_json import from_json, to_json
from evenhand.fairness import EqualizedOdds, FairnessKind
from evenhand.privacy import GNMax

from .conftest import Parts, made_parts

PARTS = made_parts()
BUDGET = Budget(epsilon=20.0, delta=1e-5)
PAIRS = EqualizedOdds(margin=0.3, reference="pairwise")
TO_ALL = DemographicParity(margin=0.1, reference="overall")
LOOSE = DemographicParity(margin=0.3)
FEW = {"n_steps": 10, "batch_size": 64}
NOT_KEPT = {"mechanism", "answered_gap"}
"""What a folder does not keep: the ledger names the mechanism, and the answers give the gap."""


def by_teachers(model: Any, parts: Parts = PARTS) -> Any:
    return parts.fit(model)


def by_rows(model: Any, **given: Any) -> Any:
    return model.fit(PARTS.X, PARTS.y, sensitive_features=PARTS.groups, **given)


def by_public_rows(model: Any) -> Any:
    return by_rows(model, X_public=PARTS.X_public)


MODELS: dict[str, Callable[[], Any]] = {
    "shares": lambda: by_teachers(
        FairSharesClassifier(BUDGET, LOOSE, n_teachers=20, random_state=0)
    ),
    "labels": lambda: by_teachers(
        FairPATEClassifier(
            BUDGET, LOOSE, n_teachers=20, mechanism=GNMax(sigma=30.0), random_state=0
        )
    ),
    "true classes": lambda: by_teachers(
        FairSharesClassifier(BUDGET, EqualizedOdds(margin=0.3), n_teachers=20, random_state=0)
    ),
    "no margin": lambda: PATEClassifier(BUDGET, n_teachers=20, random_state=0).fit(
        PARTS.X, PARTS.y, X_public=PARTS.X_public
    ),
    "tuned": lambda: by_public_rows(
        DPSGDClassifier(BUDGET, LOOSE, random_state=0, **FEW)
    ).fair_tuned(
        PARTS.X_public,
        np.where(PARTS.X_public["income"].fillna(0) > 0.3, "yes", "no"),
        PARTS.groups_public,
        fairness=DemographicParity(margin=0.2),
    ),
    "dpsgd": lambda: by_public_rows(DPSGDClassifier(BUDGET, LOOSE, random_state=0, **FEW)),
    "dp-fermi": lambda: by_rows(
        DPFERMIClassifier(BUDGET, group_shares={"a": 0.7, "b": 0.3}, random_state=0, **FEW),
        X_public=PARTS.X_public,
    ),
    "derived": lambda: by_public_rows(
        DPPostProcessingClassifier(BUDGET, PAIRS, random_state=0, **FEW)
    ),
    "at the student": lambda: by_teachers(
        InterventionClassifier(BUDGET, LOOSE, "S_post", n_teachers=20, random_state=0)
    ),
    "sf-pate": lambda: by_rows(
        SFPATEClassifier(BUDGET, fairness=TO_ALL, n_teachers=20, n_queries=100, random_state=0)
    ),
    "randomized response": lambda: by_rows(
        RandomizedResponseClassifier(BUDGET, LOOSE, random_state=0)
    ),
    "pf-ld": lambda: by_rows(PFLDClassifier(BUDGET, LOOSE, n_steps=5, random_state=0)),
    "fair-only": lambda: by_public_rows(FairOnlyClassifier(LOOSE, max_iter=5, random_state=0)),
    "nonprivate": lambda: by_public_rows(NonPrivateClassifier()),
    "thresholds": lambda: by_public_rows(NonPrivateClassifier()).with_group_thresholds(
        PARTS.X_public, PARTS.groups_public, fairness=LOOSE
    ),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", MODELS)
def test_a_folder_keeps_what_a_model_tells(name: str, tmp_path: Path) -> None:
    model = MODELS[name]()
    fitted = model.fitted_
    assert fitted.method == type(model).__name__
    assert fitted.guarantee == model.guarantee_
    assert (fitted.kind, fitted.groups) == (model.fairness_kind_, model.groups_)
    assert fitted.columns == ("income", "job")
    again = evenhand.load(model.save(tmp_path / "model")).fitted_
    before, after = fitted.to_dict(), again.to_dict()
    assert before.keys() == after.keys()
    for key in before.keys() - NOT_KEPT:
        np.testing.assert_equal(after[key], before[key], err_msg=key)
    for known, read in zip(fitted.numbers.values(), again.numbers.values(), strict=True):
        np.testing.assert_array_equal(known, read)
    np.testing.assert_equal(to_json(again.core), to_json(fitted.core))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ["shares", "derived", "dpsgd"])
def test_what_a_model_tells_is_what_was_asked_of_the_fit_and_not_since(name: str) -> None:
    model = MODELS[name]()
    told = model.fitted_
    before = told.to_dict()
    model.set_params(budget__epsilon=1e6, fairness=None, random_state=99)
    assert model.fitted_ is told
    assert told.arguments["budget"].epsilon != 1e6
    np.testing.assert_equal(told.to_dict(), before)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_parts_say_which_kind_of_margin_a_model_has() -> None:
    told = {name: MODELS[name]().fitted_ for name in ("shares", "derived", "at the student")}
    held = told["shares"].student_margin
    assert isinstance(held, StudentMargin)
    assert held.met == (held.gap <= LOOSE.margin)
    derived = told["derived"].derived
    assert isinstance(derived, Derived)
    assert len(derived.rows) == 2 * 2
    cuts = told["at the student"].cuts
    assert cuts is not None
    assert [group for group, *_ in cuts.rows] == ["a", "b"]
    assert told["shares"].cuts is told["shares"].derived is told["derived"].student_margin is None


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_only_the_curator_may_see_is_not_told() -> None:
    model = by_rows(
        SFPATEClassifier(
            BUDGET, "teachers", fairness=TO_ALL, n_teachers=20, n_queries=100, random_state=0
        )
    )
    private = (model.groups_of_teachers_, model.expected_rates_)
    told = model.fitted_
    reached = [getattr(told, field.name) for field in fields(told)]
    assert not any(value is secret for value in reached for secret in private)


def test_a_wrapper_tells_of_itself_and_of_what_is_inside() -> None:
    model = MODELS["dpsgd"]()
    option = model.with_reject_option(0.1)
    told = option.fitted_
    assert (told.method, told.kind) == ("RejectOptionClassifier", FairnessKind.REJECT_OPTION)
    assert (told.margin, told.core.margin) == (0.1, 0.3)
    assert told.core.method == "DPSGDClassifier"
    assert told.guarantee == model.guarantee_


def test_a_classifier_of_another_package_tells_what_scikit_learn_has_it_say() -> None:
    forest = LogisticRegression().fit([[0.0], [1.0]], ["no", "yes"])
    told = FittedModel.of(forest)
    assert (told.classes.tolist(), told.n_columns, told.groups) == (["no", "yes"], 1, None)
    assert not told.guarantee.holds
    option = RejectOptionClassifier(forest, 0.1, groups=["a", "b"])
    assert option.fitted_.groups == ("a", "b")


def test_without_its_margin_a_model_tells_of_none() -> None:
    model = MODELS["shares"]()
    free = model.without_margin()
    assert (free.bound_, free.within_margin_, free.held_) == (False, None, None)
    assert np.isnan(free.public_gap_)
    assert free.fitted_.kind == FairnessKind.NONE
    assert copy.copy(model).bound_


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_the_tests_forge_would_be_read_if_it_were_true() -> None:
    # The forgeries of test_forged_folders change one value each of a part that is sound.
    fitted = MODELS["derived"]().fitted_
    read = from_json(to_json(fitted), arguments={}, guarantee=fitted.guarantee, ledger=None)
    assert read.derived is not None
    np.testing.assert_array_equal(read.derived.table, fitted.derived.table)

"""Parameters of frozen values: listed, replaced by new values, searched over, refused by name."""

from typing import Any

import pytest
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from evenhand import Budget, DemographicParity, FairPATEClassifier
from evenhand.privacy import GNMax
from evenhand.teachers import LogisticTeachers


def fair(**changes: Any) -> FairPATEClassifier:
    settings: dict[str, Any] = {
        "budget": Budget(epsilon=3.0, delta=1e-5),
        "fairness": DemographicParity(margin=0.05),
    }
    return FairPATEClassifier(**(settings | changes))


def test_fields_of_values_are_listed_with_deep_alone() -> None:
    deep, flat = fair().get_params(), fair().get_params(deep=False)
    assert deep["budget__epsilon"] == 3.0
    assert deep["fairness__margin"] == 0.05
    assert deep["fairness__reference"] == "rest"
    assert not any("__" in name for name in flat)
    assert set(flat) <= set(deep)


def test_setting_a_field_makes_a_new_value_and_leaves_the_old_one() -> None:
    shared = Budget(epsilon=3.0, delta=1e-5)
    one, other = fair(budget=shared), fair(budget=shared)
    one.set_params(budget__epsilon=1.0, fairness__margin=0.2)
    assert one.budget == Budget(epsilon=1.0, delta=1e-5)
    assert one.fairness == DemographicParity(margin=0.2)
    assert other.budget is shared
    assert shared.epsilon == 3.0


def test_a_whole_value_is_set_before_its_fields_in_any_order() -> None:
    model = fair(budget=None).set_params(
        budget__epsilon=2.0, budget=Budget(epsilon=9.0, delta=1e-7)
    )
    assert model.budget == Budget(epsilon=2.0, delta=1e-7)


def test_estimators_in_arguments_are_set_as_before() -> None:
    model = fair(teachers=LogisticTeachers(C=1.0), mechanism=GNMax(sigma=3.0))
    model.set_params(teachers__C=7.0, mechanism__sigma=5.0)
    assert model.get_params()["teachers__C"] == 7.0
    assert model.mechanism == GNMax(sigma=5.0)


def test_every_listed_parameter_can_be_set_to_itself_and_survives_a_clone() -> None:
    model = fair(mechanism=GNMax(sigma=3.0), teachers=LogisticTeachers())
    listed = model.get_params()
    again = clone(model).set_params(**listed)
    assert repr(again.get_params()) == repr(listed)
    for setting in ParameterGrid({"budget__epsilon": [1.0, 3.0], "fairness__margin": [0.1, 0.2]}):
        found = clone(model).set_params(**setting).get_params()
        assert {name: found[name] for name in setting} == setting


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"budget__epsilom": 1.0}, "budget is a Budget, with epsilon, delta. Did you mean 'eps"),
        ({"budget__epsilon__x": 1.0}, "budget__epsilon__x is no parameter"),
        ({"budget__epsilon": -1.0}, "epsilon must be finite and > 0, got epsilon=-1.0"),
        ({"mechanism__sigma": 1.0}, "mechanism is None, which has none. Set mechanism first"),
        ({"fairnes__margin": 0.1}, "Invalid parameter 'fairnes'"),
    ],
)
def test_a_name_that_there_is_not_and_a_bad_value_are_refused(
    changes: dict[str, Any], words: str
) -> None:
    model = fair()
    before = model.get_params(deep=False)
    with pytest.raises(ValueError, match=words):
        model.set_params(**changes)
    assert model.get_params(deep=False) == before

import json
import math
from dataclasses import fields, replace

import pytest
from claims import a_claim
from dp_accounting import gaussian_mechanism
from hypothesis import given
from hypothesis import strategies as st

from evenhand.privacy import Budget, Guarantee, attribute_of
from evenhand.privacy.gaussian import epsilon_from_mu
from evenhand.privacy.guarantee import NEVER_COVERED, delta_warning, no_guarantee
from evenhand.privacy.renyi import NEIGHBORS


def gdp(mu_squared: float, delta: float = 1e-5, **changes) -> Guarantee:
    epsilon = epsilon_from_mu(math.sqrt(mu_squared), delta)
    return a_claim(epsilon=epsilon, delta=delta, mu_squared=mu_squared, **changes)


# ---------------------------------------------------------------- the sentence


def test_the_sentence_says_the_whole_claim() -> None:
    said = a_claim(unit="person", neighbors="add or remove one", warnings=("a small group",))
    assert str(said) == (
        "The release is (3.0, 1e-05)-differentially private for each person (neighbors: add or "
        "remove one person), with exact discrete noise (OpenDP) and exact Gaussian DP accounting; "
        "taken as public: the number of records; not covered: model selection, timing, side "
        "channels and error messages; warning: a small group."
    )


def test_every_bound_says_that_it_is_not_about_side_channels() -> None:
    for said in (
        a_claim(),
        a_claim(not_covered=()),
        a_claim(holds=False, reason="r"),
        a_claim() + a_claim(),
    ):
        assert said.not_covered[-1] == NEVER_COVERED
        assert str(said).count(NEVER_COVERED) == 1
        assert Guarantee.from_dict(said.to_dict()) == said
    assert no_guarantee("there is no noise").not_covered == ()  # nothing is promised at all


def test_what_does_not_hold_says_so_first() -> None:
    said = a_claim(holds=False, reason="the margin was tuned on the private data")
    assert str(said).startswith("NOT PRIVATE: the margin was tuned on the private data; if that")
    said = a_claim(holds=False, noise="repeatable noise")
    assert str(said).startswith("NOT PRIVATE: the noise protects nobody (repeatable noise); if")
    assert not str(a_claim()).startswith("NOT PRIVATE")


@pytest.mark.parametrize("neighbors", NEIGHBORS)
def test_every_relation_has_its_words(neighbors: str) -> None:
    words = {
        "replace one": ("patient", "each patient", "replace one patient"),
        "add or remove one": ("patient", "each patient", "add or remove one patient"),
        "change one group label": (
            "sensitive attribute of one patient",
            "the sensitive attribute of each patient",
            "change the group label of one patient",
        ),
        "change one group and class label": (
            "sensitive attribute and class label of one patient",
            "the sensitive attribute and class label of each patient",
            "change the group label and the class label of one patient",
        ),
    }
    unit, each, change = words[neighbors]
    said = str(a_claim(unit=unit, neighbors=neighbors))
    assert f"for {each} (neighbors: {change})" in said


@given(st.sampled_from([field.name for field in fields(Guarantee)]))
def test_every_text_of_the_claim_is_in_the_sentence(name: str) -> None:
    mark = "an unmistakable mark"
    value = getattr(a_claim(), name)
    if name == "reason":
        assert mark in str(a_claim(reason=mark, holds=False))
    elif isinstance(value, tuple):
        assert mark in str(a_claim(**{name: (mark,)}))
    elif isinstance(value, str) and name != "neighbors":
        assert mark in str(a_claim(**{name: mark}))


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"epsilon": 0.0}, "epsilon must be finite and > 0"),
        ({"epsilon": math.inf}, "epsilon must be finite and > 0"),
        ({"delta": 1.0}, "delta must be at least 0 and below 1"),
        ({"delta": -1e-9}, "delta must be at least 0 and below 1"),
        ({"unit": ""}, "unit must name whose data"),
        ({"neighbors": "add-remove"}, "'replace one', 'add or remove one', 'change one group"),
        ({"reason": "x"}, "reason says why a guarantee fails, but holds=True"),
        ({"mu_squared": 4.0}, "above the epsilon=3.0 that is claimed"),
        ({"mu_squared": 0.1, "delta": 0.0}, "mu_squared does not go with delta=0"),
    ],
)
def test_a_claim_that_cannot_be_is_refused(changes, said: str) -> None:
    with pytest.raises(ValueError, match=r"must|says|means|does not go") as error:
        a_claim(**changes)
    assert said in str(error.value)


@pytest.mark.parametrize(
    "changes",
    [{"public": "the schema"}, {"warnings": (1,)}, {"noise": None}, {"holds": 1}],
)
def test_a_claim_of_wrong_types_is_refused(changes) -> None:
    with pytest.raises(TypeError, match="must be"):
        a_claim(**changes)


def test_delta_of_one_over_n_or_more_is_warned_of() -> None:
    assert delta_warning(1e-5, 99_999) == ""
    assert "1 / 100000 records" in delta_warning(1e-5, 100_000)
    warned = a_claim().with_warning(delta_warning(1e-5, 200_000))
    assert "warning: delta=1e-05 is not below 1 / 200000 records" in str(warned)
    assert a_claim().with_warning("") == a_claim()
    assert warned.with_warning(warned.warnings[0]) == warned


# ---------------------------------------------------------------- JSON


def test_a_claim_goes_through_json_and_comes_back() -> None:
    for one in (a_claim(), gdp(0.5, warnings=("a", "b")), a_claim(holds=False, reason="why")):
        assert Guarantee.from_dict(json.loads(json.dumps(one.to_dict()))) == one


@pytest.mark.parametrize("name", [field.name for field in fields(Guarantee)])
def test_nothing_is_assumed_for_a_key_that_is_missing(name: str) -> None:
    values = a_claim().to_dict()
    del values[name]
    with pytest.raises(ValueError, match=f"lacks the key {name}"):
        Guarantee.from_dict(values)


def test_a_key_that_is_unknown_is_an_error_with_the_nearest_name() -> None:
    values = {**a_claim().to_dict(), "not_coverd": []}
    with pytest.raises(ValueError, match=r"no key 'not_coverd'\. Did you mean 'not_covered'\?"):
        Guarantee.from_dict(values)


# ---------------------------------------------------------------- adding up


@given(st.floats(1e-3, 5.0), st.floats(1e-3, 5.0), st.floats(1e-9, 1e-3))
def test_two_guarantees_add_up_as_gaussian_mechanisms_do(a: float, b: float, delta: float) -> None:
    # Second derivation: dp_accounting's analytic Gaussian at the joint noise.
    both = gdp(a, delta) + gdp(b, delta)
    exact = gaussian_mechanism.get_epsilon_gaussian(1 / math.sqrt(a + b), delta)
    assert both.epsilon == pytest.approx(exact, rel=1e-6)
    assert both.mu_squared == a + b
    assert both.epsilon <= gdp(a, delta).epsilon + gdp(b, delta).epsilon
    assert both.accounting == "exact Gaussian DP accounting"


@given(st.lists(st.floats(1e-3, 2.0), min_size=3, max_size=3), st.permutations(range(3)))
def test_the_order_of_adding_does_not_matter(mus, order) -> None:
    parts = [gdp(mu) for mu in mus]
    one = parts[0] + parts[1] + parts[2]
    other = parts[order[0]] + (parts[order[1]] + parts[order[2]])
    assert one.epsilon == pytest.approx(other.epsilon, rel=1e-12)


def test_at_two_deltas_the_sum_is_stated_at_the_larger() -> None:
    both = gdp(0.5, 1e-6) + gdp(0.25, 1e-5)
    assert (both.delta, both.mu_squared) == (1e-5, 0.75)
    assert both.epsilon == epsilon_from_mu(math.sqrt(0.75), 1e-5)


def test_without_gaussian_dp_epsilon_and_delta_add_up() -> None:
    pure = a_claim(epsilon=1.0, delta=0.0, accounting="pure DP")
    for both in (gdp(0.5) + pure, pure + gdp(0.5)):
        assert both.epsilon == gdp(0.5).epsilon + 1.0
        assert both.delta == 1e-5
        assert both.mu_squared is None
        assert both.accounting.endswith("basic composition of epsilon and delta")
    with pytest.raises(ValueError, match=r"deltas add up to 1.2"):
        a_claim(delta=0.6) + a_claim(delta=0.6)


@pytest.mark.parametrize(
    "other",
    [{"unit": "person"}, {"neighbors": "add or remove one"}],
    ids=["unit", "relation"],
)
def test_guarantees_of_other_relations_do_not_add(other) -> None:
    with pytest.raises(ValueError, match=r"add up only for the same .* State them side by side"):
        gdp(0.5) + gdp(0.5, **other)


def test_a_sum_says_all_that_its_parts_said() -> None:
    one = gdp(0.5, noise="noise A", public=("p", "q"), not_covered=("n",), warnings=("w",))
    two = gdp(0.5, noise="noise B", public=("q", "r"), holds=False, reason="seeded")
    both = one + two
    assert both.noise == "noise A and noise B"
    assert both.public == ("p", "q", "r")
    assert both.not_covered == ("n", "model selection", NEVER_COVERED)
    assert both.warnings == ("w",)
    assert not both.holds
    assert str(both).startswith("NOT PRIVATE: seeded")
    assert replace(one, holds=True) + one == replace(one + one)


def test_only_guarantees_are_added() -> None:
    with pytest.raises(TypeError, match="unsupported operand"):
        a_claim() + 1.0


def test_a_budget_is_a_claim_in_gaussian_dp() -> None:
    for epsilon in (0.1, 1.0, 8.0, 50.0):
        budget = Budget(epsilon=epsilon, delta=1e-6)
        made = a_claim(epsilon=epsilon, delta=1e-6, mu_squared=budget.mu_squared)
        assert made.epsilon == epsilon


# ---------------------------------------------------------------- no bound at all


def test_where_there_is_no_bound_the_sentence_promises_nothing_and_mends_nothing() -> None:
    said = no_guarantee("it was trained without noise", unit="patient", warnings=("keep it in",))
    assert str(said) == (
        "NOT PRIVATE: it was trained without noise; nothing is promised about any patient; "
        "warning: keep it in."
    )
    assert (said.epsilon, said.holds, said.bounded) == (math.inf, False, False)
    assert a_claim(holds=False).bounded
    for word in ("inf", "differentially private", "mended"):
        assert word not in str(said)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"holds": True, "reason": ""}, "Say so with no_guarantee"),
        ({"reason": ""}, "reason must say why there is no bound"),
        ({"mu_squared": 1.0}, "mu_squared=1.0 is a bound, and epsilon=inf says that there is none"),
        ({"epsilon": -math.inf}, "epsilon must be finite and > 0"),
        ({"epsilon": math.nan}, "epsilon must be finite and > 0"),
    ],
)
def test_no_bound_goes_only_with_a_claim_that_does_not_hold(changes, said: str) -> None:
    with pytest.raises(ValueError, match=r"must be|says that|must say") as error:
        replace(no_guarantee("no noise"), **changes)
    assert said in str(error.value)


def test_no_bound_goes_through_json_that_knows_no_infinity() -> None:
    one = no_guarantee("no noise", public=("the schema",))
    text = json.dumps(one.to_dict(), allow_nan=False)
    assert json.loads(text)["epsilon"] is None
    assert Guarantee.from_dict(json.loads(text)) == one
    with pytest.raises(ValueError, match="epsilon=inf, which promises nothing"):
        Guarantee.from_dict({**one.to_dict(), "holds": True, "reason": ""})


@given(st.floats(1e-3, 5.0), st.sampled_from(NEIGHBORS), st.sampled_from(["record", "person"]))
def test_whatever_is_added_to_no_bound_there_is_none(mu: float, neighbors: str, unit: str) -> None:
    # Also over units and relations: nothing is promised for any of them.
    if neighbors.startswith("change one"):
        unit = attribute_of(unit, and_class_label="class" in neighbors)
    one, none = gdp(mu, neighbors=neighbors, unit=unit), no_guarantee("no noise")
    for both in (one + none, none + one):
        assert both.epsilon == math.inf
        assert both.mu_squared is None
        assert not both.holds
        assert str(both).startswith("NOT PRIVATE: no noise; nothing is promised about any " + unit)
        assert (both.neighbors, both.not_covered) == (neighbors, one.not_covered)
    twice = none + no_guarantee("a key was published")
    assert twice.reason == "no noise and a key was published"


@pytest.mark.parametrize(
    ("epsilon", "says"),
    [(10.0, ""), (10.5, "says little"), (100.0, "says little"), (101.0, "says nothing")],
)
def test_an_epsilon_that_says_little_or_nothing_is_a_caution(epsilon: float, says: str) -> None:
    claim = replace(no_guarantee("x"), epsilon=epsilon, holds=True, reason="")
    assert bool(claim.cautions) == bool(says)
    assert all(says in words for words in claim.cautions)
    assert no_guarantee("x").cautions == ()  # no bound at all has a banner of its own

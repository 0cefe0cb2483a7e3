"""RandomizedResponseClassifier end to end: claim, correction, what training reads, refusals.

The attack on the answers stands in tests/privacy/test_randomized_response.py: training reads the
answers alone, bit for bit, so nothing that it does can tell more.
"""

from typing import Any

import numpy as np
import pytest
from claims import a_claim

from evenhand import (
    Budget,
    DemographicParity,
    EqualizedOdds,
    ErrorParity,
    FairOnlyClassifier,
    RandomizedResponseClassifier,
)
from evenhand.fairness import FairnessKind
from evenhand.fairness.groups import encode_groups
from evenhand.fairness.noisy_groups import unbiased_sums
from evenhand.fairness.tally import JointTally
from evenhand.privacy import Ledger, RandomizedResponse, SeededNoise, attribute_of
from evenhand.privacy.relation import GROUP_LABEL

LOOSE = Budget(epsilon=1e6, delta=1e-5)  # everybody tells the truth, up to one in 2**63


def people(n: int = 6000, k: int = 2, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    group = np.array(["a", "b", "c"])[rng.choice(k, n, p=[0.6, 0.4] if k == 2 else [0.5, 0.3, 0.2])]
    X = rng.normal(size=(n, 3))
    X[:, 0] += 0.9 * (group == "a")
    y = np.where(X[:, 0] + X[:, 1] + rng.normal(size=n) > 0.5, "yes", "no")
    return X, y, group


def made(X: Any, y: Any, group: Any, **changes: Any) -> RandomizedResponseClassifier:
    given = {
        "budget": Budget(epsilon=1.5, delta=1e-6),
        "fairness": DemographicParity(margin=0.03),
        "max_iter": 15,
        "noise": SeededNoise(4),
        "random_state": 0,
    }
    return RandomizedResponseClassifier(**(given | changes)).fit(X, y, sensitive_features=group)


def gap(model: Any, X: Any, y: Any, group: Any, notion: Any) -> float:
    groups = encode_groups(group)
    decided = (model.predict(X) == "yes").astype(int)
    table = JointTally.of(groups.codes, (y == "yes").astype(int), decided, groups.n_groups, 2)
    counts = table.counts if notion.needs_labels else table.predicted.counts
    return float(notion.gap(counts))


def test_it_says_what_it_claims_and_that_only_the_attribute_is_protected() -> None:
    X, y, group = people(2000)
    model = made(X, y, group, noise=None)
    said = str(model.guarantee_)
    assert said.startswith(
        "The release is (1.5, 0.0)-differentially private for the sensitive attribute of each "
        "person (neighbors: change the group label of one person), with exact random answers from "
        "the operating system's randomness and k-ary randomised response (delta 0, local)"
    )
    for words in (
        "taken as public: the features and class labels of all 2000 rows",
        "that each row is another person",
        "what the public features and labels tell of the attribute",
        "measurements that read the groups",
    ):
        assert words in said
    assert model.guarantee_.delta == 0.0
    (entry,) = model.ledger_.entries
    assert (entry.n_uses, entry.purpose) == (1, "everybody's group, randomised")
    assert model.ledger_.unit == model.guarantee_.unit == "sensitive attribute of one person"
    assert 1.49 < model.ledger_.spent_epsilon(1e-6) <= 1.5
    assert model.fairness_kind_ is FairnessKind.WEIGHTS
    with pytest.raises(ValueError, match="Privacy of an attribute alone is not privacy of the"):
        model.guarantee_ + a_claim()


def test_when_everybody_tells_the_truth_it_is_the_fair_model() -> None:
    X, y, group = people(2000)
    noised = made(X, y, group, budget=LOOSE)
    fair = FairOnlyClassifier(DemographicParity(margin=0.03), max_iter=15, random_state=0)
    fair.fit(X, y, sensitive_features=group, X_public=X)
    assert np.array_equal(noised.predict(X), fair.predict(X))
    assert noised.estimated_gap_ == pytest.approx(fair.training_gap_)


@pytest.mark.parametrize(
    ("notion", "k"),
    [
        (DemographicParity(margin=0.03), 2),
        (DemographicParity(margin=0.03, reference="pairwise"), 3),
        (EqualizedOdds(margin=0.04), 2),
        (ErrorParity(margin=0.03, reference="overall"), 2),
    ],
)
def test_the_correction_keeps_the_margin_between_true_groups(notion: Any, k: int) -> None:
    # Twenty thousand answers at epsilon 1.5: shares and rates are told within .02 or so, and the
    # estimate itself is held to the margin. Without correction the margin would be met by
    # answered groups alone, which differ (k = 2) about half as much as true ones.
    X, y, group = people(20_000, k=k)
    model = made(X, y, group, fairness=notion)
    free = made(X, y, group, fairness=type(notion)(margin=1.0, reference=notion.reference))
    before, after = gap(free, X, y, group, notion), gap(model, X, y, group, notion)
    assert after < max(0.4 * before, notion.margin + 0.035)
    # What the answers tell of the gap is near what it is, on the free model where it is large.
    assert free.estimated_gap_ == pytest.approx(before, abs=0.05)


def test_the_gap_that_answers_tell_is_unbiased() -> None:
    # Signed: the mean over 200 sets of answers of the estimated rates, against the true ones.
    # Standard errors by the spread of the estimates; 5 of them are one in 1.7e6.
    _, y, group = people(2000)
    codes = encode_groups(group).codes
    decided = (y == "yes").astype(float)
    response = RandomizedResponse(epsilon=1.0, n_groups=2)
    true = np.bincount(codes, weights=decided)
    found, uncorrected = [], []
    of_labels = {"unit": attribute_of("person"), "neighbors": GROUP_LABEL}
    for seed in range(200):
        budget = Budget(epsilon=100.0, delta=1e-6)
        ledger = Ledger(budget, noise=SeededNoise(seed), **of_labels)
        (answers,) = ledger.release(response, codes[None, :], purpose="groups")
        sums = np.bincount(answers, weights=decided)
        found.append(unbiased_sums(sums, float(response.truth)))
        uncorrected.append(sums)
    error = np.std(found, axis=0) / np.sqrt(200)
    assert (np.abs(np.mean(found, axis=0) - true) < 5 * error).all()
    assert (np.abs(np.mean(uncorrected, axis=0) - true) > 5 * error).all()  # it would be seen


def test_training_reads_the_answers_and_nothing_else_of_the_groups() -> None:
    # End to end, bit for bit: other groups with the same answers give the same model.
    X, y, group = people(1500)

    class Told(SeededNoise):
        """Lets everybody answer the opposite of one fixed list, or that list."""

        def __init__(self, seed: int) -> None:
            super().__init__(seed)

        def random_words(self, shape: tuple[int, ...]) -> Any:
            words = super().random_words(shape)
            if len(shape) == 2:
                flip = (codes + answers) % 2  # the step from this person's group to the answer
                words[0] = np.where(flip == 1, 2**63 - 1, 0)
            return words

    answers = encode_groups(group).codes
    models = []
    for told in (
        group,
        np.where(group == "a", "b", "a"),
        np.random.default_rng(1).permutation(group),
    ):
        codes = encode_groups(told).codes
        models.append(made(X, y, told, noise=Told(0), max_iter=3))
    for other in models[1:]:
        assert np.array_equal(models[0].predict_proba(X), other.predict_proba(X))
        assert models[0].estimated_gap_ == other.estimated_gap_


def test_seeded_noise_is_no_guarantee() -> None:
    X, y, group = people(1000)
    assert str(made(X, y, group).guarantee_).startswith("NOT PRIVATE: the noise came from a seed")


def test_too_small_an_epsilon_is_refused_before_anything_is_drawn() -> None:
    X, y, group = people(400)

    class Tripwire(SeededNoise):
        def random_words(self, shape: tuple[int, ...]) -> Any:
            raise AssertionError("an answer was drawn")

    message = (
        "epsilon=0.1 is too small for the correction: with 400 rows in the smallest class that is "
        "compared, the share of a group would be known to within 0.500 only .* Nothing was drawn"
    )
    with pytest.raises(ValueError, match=message):
        made(X, y, group, budget=Budget(epsilon=0.1, delta=1e-6), noise=Tripwire(0))
    smallest = (y == "yes").sum()
    with pytest.raises(ValueError, match=f"with {min(smallest, 400 - smallest)} rows"):
        made(
            X,
            y,
            group,
            budget=Budget(epsilon=0.2, delta=1e-6),
            fairness=EqualizedOdds(margin=0.1),
            noise=Tripwire(0),
        )


def test_a_group_that_the_answers_do_not_show_is_named() -> None:
    X, y, group = people(3000)
    group = np.where(np.arange(3000) < 5, "rare", "a")
    with pytest.raises(ValueError, match=r"share of group 'rare' at .* These answers are spent"):
        made(X, y, group)

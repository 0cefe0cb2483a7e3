"""Remainders are placed at random: counts are right in the mean, and whole ones are exact."""

import numpy as np
import pandas as pd
import pytest

from evenhand.generators import MarginalSynthesizer
from evenhand.generators.rounding import Rounding
from evenhand.privacy import Budget, SeededNoise


def test_counts_are_shares_rounded_down_or_up_and_right_in_the_mean():
    rng = np.random.default_rng(0)
    shares = np.array([0.05, 0.2, 0.3, 0.45])
    found = np.array([Rounding(rng=rng)(7, shares) for _ in range(4000)])
    assert (found.sum(axis=1) == 7).all()
    assert (np.abs(found - 7 * shares) < 1).all()
    np.testing.assert_allclose(found.mean(axis=0), 7 * shares, atol=0.04)
    assert Rounding(rng=rng)(20, shares).tolist() == [1, 4, 6, 9]


def test_lines_together_stand_near_the_shares():
    rng = np.random.default_rng(0)
    rounding = Rounding(rng=rng, n_lines=60)
    shares = np.array([0.1, 0.25, 0.65])
    total = np.sum([rounding(1, shares) for _ in range(60)], axis=0)
    assert (np.abs(total - 60 * shares) <= 1).all()


@pytest.fixture(scope="module")
def generator():
    rng = np.random.default_rng(0)
    sex = rng.choice(["F", "M"], 2000, p=[0.4, 0.6])
    age = rng.integers(18, 90, 2000)
    loan = np.where(age / 20 + rng.normal(0, 1, 2000) + (sex == "M") > 3, "yes", "no")
    frame = pd.DataFrame({"age": age, "sex": sex, "loan": loan})
    return MarginalSynthesizer(noise=SeededNoise(0), random_state=0).fit(
        frame, label="loan", sensitive="sex", budget=Budget(epsilon=10.0, delta=1e-6)
    )


@pytest.mark.filterwarnings("ignore:Few private records")
@pytest.mark.parametrize("balance", [("label", "sensitive"), ("label",), ("sensitive",), ()])
def test_lines_that_differ_are_balanced_over_all_of_them(generator, balance):
    lines = pd.DataFrame({"age": range(20, 80)})
    drawn = generator.sample(conditions=lines, balance=balance, random_state=0)
    assert drawn["age"].tolist() == list(range(20, 80))
    cells = drawn.groupby(["loan", "sex"]).size()
    assert len(cells) == 4
    if balance == ("label", "sensitive"):
        assert cells.tolist() == [15, 15, 15, 15]
    for word, name in (("label", "loan"), ("sensitive", "sex")):
        if word in balance:
            assert drawn[name].value_counts().tolist() == [30, 30]
    if not balance:  # of one age, too, both labels are drawn
        several = pd.concat([lines] * 3)
        again = generator.sample(conditions=several, balance=balance, random_state=1)
        assert again.groupby("age")["loan"].nunique().max() == 2


def test_a_single_row_is_of_any_label_and_group(generator):
    rows = pd.concat([generator.sample(1, random_state=seed) for seed in range(40)])
    assert len(rows.groupby(["loan", "sex"])) == 4

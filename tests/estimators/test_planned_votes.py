"""What a vote of so many owners is worth, before any is asked."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from evenhand.cli import app
from evenhand.estimators.planned_votes import Setting, _steepness, plan_votes

EASY = {"n_rows": 200, "epsilon": 3.0, "n_records": 30, "n_columns": 3}


def test_more_owners_are_worth_more_and_too_few_less_than_one_alone() -> None:
    plan = plan_votes(Setting(n_owners=7, **EASY), n_repeats=2)
    by_number = {one.n_owners: one.accuracy for one in plan.expected}
    # The noise of 5 owners is as large as all their votes; 640 drown it.
    assert by_number[640] > by_number[5] + 0.05
    assert by_number[640] > plan.alone
    assert plan.asked.n_owners == 7
    assert plan.least is not None
    assert 5 < plan.least <= 640


def test_a_claim_that_is_dearer_needs_more_owners() -> None:
    cheap = plan_votes(Setting(n_owners=20, **EASY), n_repeats=2)
    dear = plan_votes(Setting(n_owners=20, **(EASY | {"epsilon": 0.1})), n_repeats=2)
    assert dear.asked.accuracy < cheap.asked.accuracy
    assert dear.least is None or (cheap.least is not None and dear.least >= cheap.least)


def test_the_best_rule_is_right_as_often_as_the_setting_says() -> None:
    rng = np.random.default_rng(0)
    score, n = rng.normal(size=200_000), 200_000
    for ceiling in (0.6, 0.85, 0.97):
        chance = 1 / (1 + np.exp(-_steepness(ceiling) * np.abs(score)))
        # 6 standard errors: once in 10^9 by chance.
        assert abs(chance.mean() - ceiling) < 6 * chance.std() / np.sqrt(n)


@pytest.mark.slow
def test_the_command_says_how_many_are_needed_and_reads_no_file() -> None:
    asked = "plan --owners 20 --rows 200 --epsilon 1 --records 30 --columns 3 --seed 0"
    done = CliRunner().invoke(app, [*asked.split(), "--json"])
    assert done.exit_code == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["setting"]["n_owners"] == 20
    assert [one["n_owners"] for one in said["expected"]][:3] == [5, 10, 20]
    assert 0.5 < said["alone"] < 0.85


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--owners 20 --rows 200 --epsilon 1 --ceiling 1.5", "ceiling must lie in"),
        ("--owners 20 --rows 200 --epsilon 0", "epsilon must be"),
        ("--owners 20 --rows 200 --epsilon 1 --teachers 40", "fewer than 5 each"),
    ],
)
def test_numbers_that_cannot_be_are_refused(words: str, message: str) -> None:
    done = CliRunner().invoke(app, ["plan", *words.split()])
    assert done.exit_code == 2
    assert message in done.stderr

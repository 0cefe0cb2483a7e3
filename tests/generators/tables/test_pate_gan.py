"""PATE-GAN: disjoint teachers, a student that reads votes alone, and a public number of answers."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from marks import FAINT

from evenhand.datasets import Schema

pytest.importorskip("torch", reason="needs the extra torch")

from evenhand.baselines.pfguard import (  # after the skip
    GlobalSharesPATEGANSynthesizer,
    GoldPATEGANSynthesizer,
    StratifiedPATEGANSynthesizer,
)
from evenhand.generators import GroupBalancedSampler, PATEGANSynthesizer
from evenhand.generators.tables import pate_gan as module
from evenhand.generators.tables.synthesizer import TableSynthesizer
from evenhand.privacy import Budget, SeededNoise
from evenhand.privacy.ledger_store import MemoryStore
from evenhand.testing.generators import (
    BUDGET,
    ROLES,
    SCHEMA,
    SynthesizerContract,
    table,
)
from evenhand.typing import IntArray

pytestmark = [pytest.mark.torch, FAINT]

SMALL: dict[str, Any] = {
    "n_rounds": 4,
    "batch_size": 8,
    "teacher_steps": 2,
    "student_steps": 2,
    "hidden": (6,),
    "student_hidden": (8,),
    "generator_hidden": (16,),
}


def new(kind: type[PATEGANSynthesizer] = PATEGANSynthesizer, **settings: Any) -> PATEGANSynthesizer:
    made = {"n_teachers": 20, "noise": SeededNoise(0), "random_state": 0, **SMALL, **settings}
    return kind(**made)


class Watched(PATEGANSynthesizer):
    """Keeps its teachers, which a fit lets go of."""

    watched: Any

    def _opponent(self, *given: Any) -> Any:
        self.watched = super()._opponent(*given)
        return self.watched


class WatchedGold(Watched, GoldPATEGANSynthesizer):
    pass


class WatchedStrata(Watched, StratifiedPATEGANSynthesizer):
    pass


class WatchedGlobal(Watched, GlobalSharesPATEGANSynthesizer):
    pass


class TestPATEGAN(SynthesizerContract):
    def new(self) -> TableSynthesizer:
        return new(n_teachers=None)


class TestPATEGANThatGeneratesGroups(SynthesizerContract):
    def new(self) -> TableSynthesizer:
        return new(GoldPATEGANSynthesizer, condition="label")


def fit(frame: pd.DataFrame, **settings: Any) -> Any:
    budget = settings.pop("budget", BUDGET)
    kind = settings.pop("kind", Watched)
    return new(kind, **settings).fit(frame, **ROLES, budget=budget, schema=SCHEMA)


def states(made: PATEGANSynthesizer) -> list[bytes]:
    """All that each teacher remembers, the stream of its sampler included."""
    teachers = made.watched
    return [
        teachers.critics.state(t).tobytes() + repr(stream.bit_generator.state).encode()
        for t, stream in enumerate(teachers.streams)
    ]


@cache
def seeded(**settings: Any) -> PATEGANSynthesizer:
    return fit(table(), start=0.0, n_teachers=TEACHERS, budget=POOR, **settings)


POOR = Budget(epsilon=0.002, delta=1e-6)  # one vote more or less turns no answer
TEACHERS = 200  # of 20 records each; in 4 rounds of 10 steps of 8 rows a record is missed by all
OFTEN = {"teacher_steps": 10}  # 320 draws of its teacher with probability (1 - 1/20)**320 < 1e-7


@pytest.mark.parametrize("change", ["job", "group", "label"])
@pytest.mark.parametrize("kind", [Watched, WatchedGold])
def test_changing_one_record_changes_the_state_of_one_teacher_bit_for_bit(
    change: str, kind: Any
) -> None:
    # The noise is 10,000 votes, the change one: the same answers leave, all else is as it was.
    frame = table()
    column, value = {"job": ("job", "clerk"), "group": ("sex", "F"), "label": ("rich", "no")}[
        change
    ]
    record = int(np.flatnonzero(frame[column].notna() & (frame[column] != value))[1234])
    frame.loc[record, column] = value
    before, after = (
        seeded(kind=kind, **OFTEN),
        fit(frame, start=0.0, n_teachers=TEACHERS, budget=POOR, kind=kind, **OFTEN),
    )
    teacher = int(before.watched.partition.teacher[record])
    one, other = states(before), states(after)
    assert len(set(one)) == TEACHERS  # teachers are distinct
    assert [t for t in range(TEACHERS) if one[t] != other[t]] == [teacher]
    assert all(
        np.array_equal(a, b)
        for a, b in zip(before.network_.arrays().values(), after.network_.arrays().values(),
                        strict=True)
    )  # fmt: skip


def test_the_published_sampling_rule_moves_other_teachers_too() -> None:
    frame = table()
    frame.loc[np.flatnonzero(frame["sex"] == "M")[1234], "sex"] = "F"
    one, other = (
        states(fit(t, kind=WatchedGlobal, start=0.0, condition="label", **OFTEN))
        for t in (table(), frame)
    )
    assert sum(a != b for a, b in zip(one, other, strict=True)) > 1
    claim = fit(table(), kind=WatchedGlobal).guarantee_
    assert not claim.holds
    assert str(claim).startswith("NOT PRIVATE: every teacher's minibatches are weighted")


def test_teachers_have_disjoint_records_dealt_once() -> None:
    partition = seeded().watched.partition
    rows = np.concatenate(partition.all_rows)
    assert sorted(rows.tolist()) == list(range(4000))
    assert partition.neighbors == "add or remove one"


def test_records_of_a_unit_sit_with_one_teacher_and_one_vote_each_is_all_they_have() -> None:
    frame = table().assign(person=np.arange(4000) % 1000)
    made = new(Watched).fit(frame, **ROLES, budget=BUDGET, schema=SCHEMA, unit="person", per_unit=3)
    kept = np.arange(3000) % 1000
    teacher = made.watched.partition.teacher
    assert all(len(set(teacher[kept == person])) == 1 for person in range(0, 1000, 50))
    (votes,) = (e for e in made.ledger_.entries if e.purpose == module.VOTES)
    assert "l2_sensitivity=2.828" in votes.mechanism  # sqrt(8): not three times that


def test_the_student_and_the_generator_read_votes_and_public_values_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A tripwire: the student sees generated rows only, with 0 or 1 for each.
    seen: list[tuple[IntArray, Any]] = []
    learn = module.Student.learn
    monkeypatch.setattr(
        module.Student,
        "learn",
        lambda self, rows, answers: (seen.append((rows, answers)), learn(self, rows, answers))[1],
    )
    # Every private record has one label and one group, and all jobs are "chef".
    frame = table().assign(job="chef", rich="no", sex="F", old=False)
    fit(frame, start=0.0)
    rows = np.concatenate([rows for rows, _ in seen])
    answers = np.concatenate([said for _, said in seen])
    assert set(answers) <= {0.0, 1.0}
    assert len(rows) == 4 * 2 * 8
    assert set(rows[:, -1]) == set(range(8))  # public conditions, not those of records
    assert len(set(rows[:, 0])) > 2


def test_the_number_of_answers_is_fixed_and_reserved_before_training(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (votes,) = (e for e in seeded().ledger_.entries if e.purpose == module.VOTES)
    assert votes.n_uses == 4 * 2

    def crash(*_: Any) -> None:
        raise RuntimeError("the power failed")

    store = MemoryStore()
    monkeypatch.setattr(module.Student, "learn", crash)
    with pytest.raises(RuntimeError, match="power"):
        new().fit(table(), **ROLES, budget=BUDGET, schema=SCHEMA, store=store)
    entries = store.entries("default")
    assert entries[-1].purpose == module.VOTES  # charged in full, though one answer was given
    assert sum(e.mu_squared for e in entries) == pytest.approx(BUDGET.mu_squared, rel=1e-6)


def test_teachers_of_a_stratum_hold_and_judge_one_group() -> None:
    made = fit(table(), kind=WatchedStrata, n_teachers=22)
    teachers = made.watched
    assert made.n_teachers_ == 20
    groups = teachers.rows.group
    for t, rows in enumerate(teachers.partition.all_rows):
        assert set(groups[rows]) <= {t % 4}
    asked = np.column_stack([np.zeros((8, 4), dtype=np.int64), np.arange(8)])
    voted = teachers.votes(asked)
    own = np.arange(20)[:, None] % 4 == made.conditions_.groups()[None, :]
    assert not voted[~own].any()
    assert teachers.half == 2.5


@pytest.mark.parametrize(
    ("settings", "units", "said"),
    [
        ({"neighbors": "replace one"}, {}, "strata goes with neighbors='add or remove one'"),
        ({}, {"unit": "p", "per_unit": 2}, "strata would send the records of one unit"),
        ({"n_teachers": 3}, {}, "n_teachers must be at least 4, got n_teachers=3"),
    ],
)
def test_strata_that_cannot_be_are_refused_before_anything_is_spent(
    settings: dict[str, Any], units: dict[str, Any], said: str
) -> None:
    store = MemoryStore()
    rows = table().assign(p=range(4000)) if units else table()
    with pytest.raises(ValueError, match=said):
        new(StratifiedPATEGANSynthesizer, **settings).fit(
            rows, **ROLES, budget=BUDGET, schema=SCHEMA, store=store, **units
        )
    assert not store.entries("default")


@pytest.mark.slow
def test_with_votes_that_are_hardly_noisy_the_generator_learns_what_the_counts_do_not_say() -> None:
    """Takes 8 seconds of processor time, 20 on a busy core."""

    # Two columns that always agree: columns counted one by one cannot say so. Where they are drawn
    # apart, the mean of four runs is above 5.1 of its deviations once in 10**7 times. Single runs
    # of correct code lie between .00 and .45 (11 seeds).
    def surplus(seed: int) -> float:
        rng = np.random.default_rng(seed)
        n = 6000
        a = rng.integers(0, 2, n)
        frame = pd.DataFrame({
            "a": np.array(["u", "v"])[a], "b": np.array(["x", "y"])[a],
            "y": rng.choice(["no", "yes"], n), "s": rng.choice(["F", "M"], n),
        })  # fmt: skip
        made = PATEGANSynthesizer(
            n_teachers=30, student_hidden=(32,), hidden=(8,),
            generator_hidden=(32,), noise=SeededNoise(seed), random_state=seed,
        ).fit(
            frame, label="y", sensitive="s", budget=Budget(epsilon=500.0, delta=1e-5),
            schema=Schema.of_public(frame),
        )  # fmt: skip
        rows = made.sample(4000, random_state=0)
        agree = ((rows["a"] == "u") == (rows["b"] == "x")).mean()
        u, x = (rows["a"] == "u").mean(), (rows["b"] == "x").mean()
        return float(agree - (u * x + (1 - u) * (1 - x)))  # less what agrees when drawn apart

    assert np.mean([surplus(seed) for seed in range(4)]) > 5.1 * np.sqrt(0.25 / 16_000)


def test_groups_that_are_generated_follow_the_sampler() -> None:
    labels = fit(table(), condition="label")
    assert labels.made_groups_.shape == (2, 4)
    assert labels.made_groups_.sum(axis=1) == pytest.approx([1.0, 1.0])
    rows = labels.sample(400, random_state=0)
    assert set(rows.groupby(["rich", "sex", "old"], observed=False).size()) == {50}


BAD = {
    "a condition that is none": ({"condition": "labels"}, "Did you mean 'label'"),
    "no teacher": ({"n_teachers": 0}, "n_teachers must be at least 1"),
    "all for the start": ({"start": 1.0}, r"start must lie in \[0, 1\)"),
    "no rounds": ({"n_rounds": 0}, "n_rounds must be at least 1"),
    "no rows": ({"batch_size": 0}, "n_rows must be at least 1|batch_size must be at least 1"),
    "more teachers than records": ({"n_teachers": 5000}, "n_teachers must be at most the number"),
    "shares of too few groups": (
        {"sampler": GroupBalancedSampler(scope="public", shares=(0.5, 0.5))},
        "groups must be at least 0 and below 2",
    ),
}


@pytest.mark.parametrize("case", sorted(BAD))
def test_settings_that_make_no_sense_are_refused(case: str) -> None:
    settings, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        fit(table(), **settings)


def test_more_teachers_than_the_memory_holds_are_refused_before_anything_is_spent() -> None:
    store = MemoryStore()
    with pytest.raises(MemoryError, match=r"10,000,000,000 teachers .* Lower n_teachers"):
        new(n_teachers=10_000_000_000).fit(
            table(), **ROLES, budget=BUDGET, schema=SCHEMA, store=store
        )
    assert store.entries("default") == ()


def test_one_teacher_more_or_less_is_what_noise_was_made_for() -> None:
    noisy = fit(table(), sampler=GroupBalancedSampler(scope="noisy"))
    sampler = noisy.watched.sampler
    assert sampler is not None
    assert sampler.shares == pytest.approx(noisy.shares_.to_numpy(), rel=1e-6)
    assert noisy.guarantee_ == fit(table(), sampler=None).guarantee_

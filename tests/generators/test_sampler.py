"""The balanced sampler: exact balance inside a partition, and one record moves one teacher."""

import json
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from runs import FALSE_ALARM
from scipy.stats import binom, binomtest

from evenhand.baselines.pfguard import GlobalSharesTeacherGANImages
from evenhand.generators import GroupBalancedSampler
from evenhand.privacy import Budget, Ledger, SeededNoise
from evenhand.teachers.partition import by_position

N, TEACHERS, SIZE = 400, 8, 64


def groups_of(n: int = N) -> np.ndarray:
    return (np.random.default_rng(0).random(n) < 0.1).astype(np.int64)


def minibatches(sampler: GroupBalancedSampler, groups: np.ndarray) -> list[bytes]:
    """What each teacher is given: rows and their groups, as bytes."""
    deal = by_position(len(groups), TEACHERS, random_state=5)
    given = []
    for rows, rng in zip(deal.all_rows, np.random.default_rng(7).spawn(TEACHERS), strict=True):
        drawn = rows[sampler.draw(groups[rows], SIZE, rng)]
        given.append(np.stack([drawn, groups[drawn]]).tobytes())
    return given


@pytest.mark.parametrize("scope", ["partition", "public"])
def test_changing_one_record_changes_the_minibatches_of_one_teacher_alone(scope: str) -> None:
    sampler = GroupBalancedSampler(scope=scope, shares=(0.9, 0.1) if scope == "public" else None)
    groups = groups_of()
    before = minibatches(sampler, groups)
    for record in (0, 17, 399):
        changed = groups.copy()
        changed[record] = 1 - changed[record]
        after = minibatches(sampler, changed)
        teacher = by_position(N, TEACHERS, random_state=5).teacher[record]
        assert [t for t in range(TEACHERS) if before[t] != after[t]] == [teacher]


def test_the_published_rule_moves_every_teacher_by_one_record() -> None:
    def published(groups: np.ndarray) -> list[bytes]:
        data = SimpleNamespace(balanced=(groups, 2))
        sampler = GlobalSharesTeacherGANImages()._ready_sampler(data)
        deal = by_position(len(groups), TEACHERS, random_state=5)
        return [sampler.probabilities(groups[rows]).tobytes() for rows in deal.all_rows]

    groups = groups_of()
    changed = groups.copy()
    changed[3] = 1 - changed[3]
    before, after = published(groups), published(changed)
    mixed = [
        t
        for t, rows in enumerate(by_position(N, TEACHERS, random_state=5).all_rows)
        if len(set(groups[rows])) == 2
    ]
    assert len(mixed) > 2
    assert all(before[t] != after[t] for t in mixed)


def test_inside_a_partition_every_group_present_is_drawn_alike() -> None:
    groups = np.array([0] * 950 + [1] * 45 + [3] * 5)  # nobody of group 2
    probabilities = GroupBalancedSampler().probabilities(groups)
    held = np.bincount(groups, probabilities)
    assert held == pytest.approx([1 / 3, 1 / 3, 0, 1 / 3])
    n = 30_000
    drawn = groups[GroupBalancedSampler().draw(groups, n, np.random.default_rng(1))]
    rare = int((drawn == 3).sum())
    assert binomtest(rare, n, 1 / 3).pvalue > FALSE_ALARM
    assert binomtest(rare, n, 1 / 3 * 0.9).pvalue < FALSE_ALARM  # the test would see 10 % less


def by_definition(ratios: list[Fraction], *, leave_one_out: bool) -> list[Fraction]:
    """PFGuard, Section E.4: h over N1, which all share, or over the sum of the others, to sum 1."""
    total = sum(ratios)
    if leave_one_out:
        ratios = [h / (total - h) for h in ratios]
    return [h / sum(ratios) for h in ratios]


@pytest.mark.parametrize("leave_one_out", [False, True])
@pytest.mark.parametrize("scope", ["partition", "public"])
@given(groups=st.lists(st.integers(0, 2), min_size=2, max_size=8))
def test_rows_are_drawn_by_the_weights_of_the_definition(
    scope: str, leave_one_out: bool, groups: list[int]
) -> None:
    shares = [Fraction(7, 10), Fraction(2, 10), Fraction(1, 10)]
    known = tuple(map(float, shares)) if scope == "public" else None
    sampler = GroupBalancedSampler(scope=scope, shares=known, leave_one_out=leave_one_out)
    held = [Fraction(groups.count(g)) for g in range(3)] if scope == "partition" else shares
    wanted = by_definition([1 / held[g] for g in groups], leave_one_out=leave_one_out)
    assert sampler.probabilities(np.array(groups)) == pytest.approx([float(p) for p in wanted])


def test_one_row_is_drawn_for_sure_and_one_that_outweighs_all_others_nearly() -> None:
    apart = GroupBalancedSampler(scope="public", shares=(1.0, 1e-17), leave_one_out=True)
    assert apart.probabilities(np.array([1])) == [1.0]
    assert apart.probabilities(np.array([0, 0, 1])) == pytest.approx([0.0, 0.0, 1.0])


def drawn_share(share: float, n: int, *, leave_one_out: bool) -> float:
    """How often a group of this share is drawn: over every partition of n rows that there is."""
    sampler = GroupBalancedSampler(
        scope="public", shares=(1.0 - share, share), leave_one_out=leave_one_out
    )
    found = 0.0
    for held in range(1, n + 1):
        groups = (np.arange(n) < held).astype(np.int64)
        found += binom.pmf(held, n, share) * sampler.probabilities(groups)[:held].sum()
    return float(found)


@given(share=st.floats(0.02, 0.49), n=st.integers(2, 30))
def test_leaving_one_out_draws_nearer_to_even_shares_from_few_rows(share: float, n: int) -> None:
    plain, apart = (drawn_share(share, n, leave_one_out=out) for out in (False, True))
    assert abs(apart - 0.5) < abs(plain - 0.5)


def test_the_bias_of_shares_falls_with_the_rows_and_leaving_one_out_at_least_their_square() -> None:
    # Skare et al. 2003: of order 1 / n, and 1 / n**2. With twice the rows half, and a quarter.
    def ratio(*, leave_one_out: bool) -> float:
        few, more = (0.5 - drawn_share(0.3, n, leave_one_out=leave_one_out) for n in (200, 400))
        return few / more

    assert ratio(leave_one_out=False) == pytest.approx(2.0, rel=0.02)
    assert ratio(leave_one_out=True) > 4.0


def test_settings_of_a_sampler_go_through_json_and_older_ones_leave_nothing_out() -> None:
    sampler = GroupBalancedSampler(scope="public", shares=(0.9, 0.1), leave_one_out=True)
    saved = json.loads(json.dumps(sampler.to_dict()))
    assert GroupBalancedSampler.of(saved) == sampler
    del saved["leave_one_out"]
    older = GroupBalancedSampler.of(saved)
    assert older == GroupBalancedSampler(scope="public", shares=(0.9, 0.1))


def test_noisy_shares_are_released_through_the_ledger() -> None:
    ledger = Ledger(Budget(epsilon=1.0, delta=1e-5), noise=SeededNoise(0))
    released = GroupBalancedSampler(scope="noisy").with_noisy_shares(
        groups_of(), 2, ledger, mu_squared=0.01
    )
    assert ledger.spent == pytest.approx(0.01)
    (entry,) = ledger.entries
    assert entry.purpose == "group shares for the sampler"
    assert sum(released.shares or ()) == pytest.approx(1.0)


@pytest.mark.parametrize("relation", ["add or remove one", "replace one"])
def test_shares_of_units_with_several_records_cost_more_noise(relation: str) -> None:
    def released(per_unit: int) -> str:
        ledger = Ledger(Budget(epsilon=1.0, delta=1e-5), noise=SeededNoise(0), neighbors=relation)
        GroupBalancedSampler(scope="noisy").with_noisy_shares(
            groups_of(), 2, ledger, mu_squared=0.01, per_unit=per_unit
        )
        return ledger.entries[0].mechanism

    # Brute force: all 3 records of a unit in one group, against none, or against the other group.
    counts = np.array([3.0, 0.0])
    away = counts if relation == "add or remove one" else counts - counts[::-1]
    declared = float(released(3).split("l2_sensitivity=")[1].rstrip(")"))
    assert declared == pytest.approx(np.linalg.norm(away))
    sigmas = [float(released(r).split("sigma=")[1].split(",")[0]) for r in (1, 3)]
    assert sigmas[1] == pytest.approx(3 * sigmas[0])


def test_public_shares_stand_in_the_claim_and_only_the_published_rule_loses_it() -> None:
    claim = Ledger(Budget(epsilon=1.0, delta=1e-5)).guarantee()
    assert GroupBalancedSampler().claim(claim) == claim
    public = GroupBalancedSampler(scope="public", shares=(0.5, 0.5)).claim(claim)
    assert public.holds
    assert "the group shares of the sampler" in public.public
    lost = GlobalSharesTeacherGANImages()._restate(claim)
    assert not lost.holds
    assert str(lost).startswith("NOT PRIVATE: every teacher's minibatches are weighted")


def test_an_empty_partition_gives_no_rows() -> None:
    assert len(GroupBalancedSampler().draw(np.zeros(0, np.int64), 5, np.random.default_rng(0))) == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GroupBalancedSampler(scope="partitions"), "Did you mean 'partition'"),
        (lambda: GroupBalancedSampler(scope="public"), "needs shares="),
        (lambda: GroupBalancedSampler(shares=(0.5, 0.5)), "leave shares out"),
        (
            lambda: GroupBalancedSampler(scope="noisy").probabilities(groups_of()),
            "Call with_noisy_shares first",
        ),
    ],
)
def test_a_sampler_without_what_its_scope_needs_is_refused(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()  # type: ignore[operator]


def test_as_many_teachers_as_shares_allow_hold_the_rarest_group_as_often_as_is_asked() -> None:
    # A second derivation: records are dealt, and the rarest group of every teacher is counted.
    shares, n = (0.7, 0.05, 0.25), 40_000
    groups = np.random.default_rng(0).choice(3, n, p=shares)
    for each, five, none in ((10.0, 0.029, 0.0), (1.0, 0.996, 0.368)):
        known = GroupBalancedSampler(scope="public", shares=tuple(2 * s for s in shares))
        most = known.most_teachers(n, each=each)
        assert most == round(n * 0.05 / each)
        held = np.bincount(by_position(n, most, 0).teacher[groups == 1], minlength=most)
        # Of 200 teachers five standard errors are at most .06; of 2,000, at most .055.
        assert (held < 5).mean() == pytest.approx(five, abs=0.06)
        assert (held == 0).mean() == pytest.approx(none, abs=0.06)
    few = GroupBalancedSampler(scope="public", shares=(0.999, 0.001))
    assert few.most_teachers(100) == 1


def test_no_number_of_teachers_follows_from_shares_that_nobody_gave_or_released() -> None:
    for sampler in (GroupBalancedSampler(), GroupBalancedSampler(scope="noisy")):
        with pytest.raises(ValueError, match="this sampler has none"):
            sampler.most_teachers(100)
    known = GroupBalancedSampler(scope="public", shares=(0.5, 0.5))
    with pytest.raises(ValueError, match="each must be"):
        known.most_teachers(100, each=0.0)

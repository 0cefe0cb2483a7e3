"""What a report says of noisy groups and true ones: no bound is announced that says nothing."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from evenhand.estimators.margins import Bound, TrueGroups
from evenhand.report.page import fill

SILENT = Bound(name="Theorem 2", value=None, says=False, words="nobody observes it")
SPEAKING = Bound(name="Certificate", value=0.04, says=True, words="from a noisy table")
KNOWN = TrueGroups(
    notion="demographic parity",
    margin=0.05,
    by_teachers=True,
    violation=0.02,
    met=True,
    bounds=(SILENT,),
)


def true_groups(found: TrueGroups) -> str:
    page = fill("model/true_groups.html", report=SimpleNamespace(true_groups=found))
    return " ".join(page.split())


@pytest.mark.parametrize("by_teachers", [True, False])
def test_a_bound_is_announced_only_where_one_says_something(by_teachers: bool) -> None:
    silent = true_groups(replace(KNOWN, by_teachers=by_teachers))
    assert "no bound says anything about it" in silent
    assert "a bound on it stands below" not in silent
    told = true_groups(replace(KNOWN, by_teachers=by_teachers, bounds=(SILENT, SPEAKING)))
    assert "a bound on it stands below" in told
    assert "0.0400" in told


def test_a_violation_is_that_of_noisy_groups_and_may_be_larger_by_true_ones() -> None:
    page = true_groups(KNOWN)
    assert "violation is at most the margin. By the true groups it is another number" in page
    assert "violation is above the margin" in true_groups(replace(KNOWN, met=False))


def test_a_student_that_knows_no_group_is_promised_nothing() -> None:
    page = true_groups(replace(KNOWN, violation=float("nan")))
    assert "nothing is promised about its decisions" in page
    assert "nan" not in page

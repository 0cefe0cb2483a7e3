"""The reject option: every given set within the margin, no answer lost, no state mixed up."""

from __future__ import annotations

import itertools
import json
import os
import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from runs import falls_short

from evenhand.fairness import DemographicParity, RejectOption
from evenhand.fairness.gate import StateFile
from evenhand.fairness.gate.reject_option import StateOfAnotherModel, Verdict
from evenhand.typing import REJECTED

Stream = list[tuple[int, int]]
GROUPS, CLASSES = ["F", "M", "X"], ["no", "yes", "later"]


@st.composite
def streams(draw: st.DrawFn) -> tuple[dict[str, Any], Stream]:
    """Draw settings and a stream; long runs of one answer push the table against its margin."""
    n_groups, n_classes = draw(st.integers(2, 3)), draw(st.integers(2, 3))
    settings = {
        "margin": draw(st.sampled_from([0.0, 0.05, 0.1, 0.25, 0.5])),
        "groups": GROUPS[:n_groups],
        "classes": CLASSES[:n_classes],
        "cold_start": draw(st.integers(1, 5)),
        "reference": draw(st.sampled_from(["rest", "pairwise", "overall"])),
    }
    run = st.tuples(st.integers(0, n_groups - 1), st.integers(0, n_classes - 1), st.integers(1, 12))
    runs = draw(st.lists(run, min_size=1, max_size=12))
    return settings, [(z, k) for z, k, times in runs for _ in range(times)]


def columns(stream: Stream) -> tuple[list[int], list[int]]:
    """Return labels and groups, as ``decide`` takes them."""
    return [k for _, k in stream], [z for z, _ in stream]


def independent_stream(n: int, seed: int) -> Stream:
    """Draw Adult's rates: one third women, and fewer of them in class 1."""
    rng = np.random.default_rng(seed)
    z = (rng.random(n) < 0.32).astype(int)
    k = (rng.random(n) < np.where(z == 1, 0.1136, 0.3125)).astype(int)
    return list(zip(z.tolist(), k.tolist(), strict=True))


def new(margin: float = 0.05, **settings: Any) -> RejectOption:
    given = {"groups": GROUPS[:2], "classes": CLASSES[:2], "cold_start": 20, "model": "m1"}
    return opened(**({"margin": margin} | given | settings))


def opened(margin: float, reference: str = "rest", **settings: Any) -> RejectOption:
    return RejectOption(DemographicParity(margin=margin, reference=reference), **settings)


def answers_one_by_one(option: RejectOption, stream: Stream) -> dict[int, int]:
    """Ask row by row, fetching released answers but at the end only."""
    found: dict[int, int] = {}
    for i, (z, k) in enumerate(stream):
        decided = option.decide([k], [z])
        assert decided.ids.tolist() == [i]
        if decided.answered[0]:
            found[i] = int(decided.labels[0])
    return found | fetched(option)


def fetched(option: RejectOption) -> dict[int, int]:
    ids, labels = option.deliver()
    assert len(set(ids.tolist())) == len(ids)
    return dict(zip(ids.tolist(), labels.tolist(), strict=True))


def table_of(stream: Stream, numbers: dict[int, int], shape: tuple[int, int]) -> list[list[int]]:
    counts = [[0] * shape[1] for _ in range(shape[0])]
    for number in numbers:
        z, k = stream[number]
        counts[z][k] += 1
    return counts


@given(case=streams())
def test_what_was_handed_out_is_within_the_margin_after_every_answer(
    case: tuple[dict[str, Any], Stream], definition: Callable[..., Fraction]
) -> None:
    settings, stream = case
    option = opened(**settings)
    shape = (len(settings["groups"]), len(settings["classes"]))
    margin = Fraction(str(settings["margin"]))
    out: dict[int, int] = {}
    for i, (z, k) in enumerate(stream):
        decided = option.decide([k], [z])
        if decided.answered[0]:
            out[i] = int(decided.labels[0])
        late = fetched(option)
        assert decided.n_released <= len(late)
        assert not out.keys() & late.keys()
        out |= late
        # The definition on the answers themselves, not on the option's own table.
        counts = table_of(stream, out, shape)
        assert definition(counts, settings["reference"]) <= margin
        assert counts == option.counts.tolist()
    assert all(label == stream[number][1] for number, label in out.items())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("margin", [0.02, 0.05])
def test_independent_streams_stay_within_and_reach_the_margin(margin: float, seed: int) -> None:
    option = new(margin, cold_start=None)
    stream = independent_stream(3000, seed)
    given = np.zeros((2, 2))
    worst = 0.0
    for z, k in stream:
        if option.decide([k], [z]).answered[0]:
            given[z, k] += 1
        for number in fetched(option):
            given[stream[number]] += 1
        rates = given / np.maximum(given.sum(axis=1, keepdims=True), 1)
        worst = max(worst, abs(rates[0] - rates[1]).max() if given.any(axis=1).all() else 0.0)
    assert worst <= margin + 1e-12
    assert worst > 0.9 * margin  # the margin was reached: the test saw refusals at it


@pytest.mark.slow
@pytest.mark.parametrize("margin", [0.02, 0.05])
def test_most_rows_of_independent_streams_are_answered(margin: float) -> None:
    # In the mean over streams at least .7 (correct code fails with probability 1e-6). Where the
    # second group were starved, the answers to the first alone would be all: the same runs convict
    # that. Single streams may starve a group nearly: about one in a hundred does.
    covered, first_alone = [], []
    for seed in range(16):
        option = new(margin, cold_start=None)
        for z, k in independent_stream(3000, seed):
            option.decide([k], [z])
            fetched(option)
        covered.append(option.coverage.overall)
        first_alone.append(option.coverage.given[0].sum() / 3000)
    assert not falls_short(np.array(covered) - 0.7)
    assert falls_short(np.array(first_alone) - 0.7)


def test_an_adversary_who_knows_the_table_cannot_leave_the_margin(
    definition: Callable[..., Fraction],
) -> None:
    option = new(0.1, groups=GROUPS, classes=CLASSES, cold_start=12)
    for z in range(3):
        option.decide([0, 1, 2] * 20, [z] * 60)
    option.deliver()
    for _ in range(400):
        rates = option.counts / option.counts.sum(axis=1, keepdims=True)
        z, k = np.unravel_index(np.argmax(rates - rates.mean(axis=0)), rates.shape)
        option.decide([k], [z])  # always the cell that is ahead already
        assert definition(option.counts.tolist(), "rest") <= Fraction(1, 10)
    assert option.gap > 0.09


@given(case=streams(), cuts=st.lists(st.integers(0, 150), max_size=4))
def test_batches_of_any_size_give_the_same_answers_as_rows_one_by_one(
    case: tuple[dict[str, Any], Stream], cuts: list[int]
) -> None:
    settings, stream = case
    alone, together = opened(**settings), opened(**settings)
    expected = answers_one_by_one(alone, stream)
    found: dict[int, int] = {}
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    for first, last in itertools.pairwise(edges):
        decided = together.decide(*columns(stream[first:last]))
        assert decided.ids.tolist() == list(range(first, last))
        assert (decided.answered == (decided.reasons == Verdict.ANSWERED)).all()
        found |= {
            int(number): int(label)
            for number, label in zip(decided.ids, decided.labels, strict=True)
            if label != REJECTED
        }
    found |= fetched(together)
    assert found == expected
    assert together.to_dict() == alone.to_dict()


@given(case=streams())
def test_each_decision_is_that_of_a_gate_recomputed_from_nothing(
    case: tuple[dict[str, Any], Stream], naive_gate: Callable[..., Any]
) -> None:
    settings, stream = case
    stream = stream[:25]  # the plain gate tries every block
    option = opened(**settings)
    plain = naive_gate(
        Fraction(str(settings["margin"])),
        len(settings["groups"]),
        len(settings["classes"]),
        settings["cold_start"],
        settings["reference"],
    )
    for z, k in stream:
        decided = option.decide([k], [z])
        given, withheld, _ = plain.offer(z, k)
        expected = (
            Verdict.ANSWERED if given else Verdict.WITHHELD if withheld else Verdict.OUTSIDE_MARGIN
        )
        assert decided.reasons[0] == expected
        assert option.counts.tolist() == plain.counts


def test_the_oldest_requests_of_a_class_are_answered_first() -> None:
    option = new(0.1, cold_start=4)
    option.decide([0, 1] * 10, [0] * 20)
    assert option.decide([0, 0, 0], [1, 1, 1]).reasons.tolist() == [Verdict.WITHHELD] * 3
    last = option.decide([1], [1])  # the block that fits holds one of each class
    assert last.reasons.tolist() == [Verdict.ANSWERED]
    assert last.n_released == 1
    assert fetched(option) == {20: 0}
    assert option.held.tolist() == [[0, 0], [2, 0]]
    option.decide([0] * 5, [0] * 5)  # the rate of class 0 rises, so the next one fits
    assert fetched(option) == {21: 0}
    assert option.held.tolist() == [[0, 0], [1, 0]]


def test_withheld_rows_are_answered_within_the_call_that_releases_them() -> None:
    option = new(0.1, cold_start=4)
    decided = option.decide([0, 1, 0, 1, 0, 1], [0, 0, 1, 1, 1, 1])
    assert decided.labels.tolist() == [0, 1, 0, 1, 0, 1]
    assert decided.reasons.tolist() == [Verdict.ANSWERED] * 6
    assert (decided.n_released, fetched(option)) == (0, {})


def test_a_gap_says_between_how_many_groups_it_is() -> None:
    option = RejectOption(DemographicParity(margin=0.1), list("FMX"), ["no", "yes"], cold_start=2)
    option.decide([0, 1], groups=[0, 0])
    [kept] = option.kept
    assert kept.words == (
        "demographic parity: no gap yet, fewer than two groups have labels; margin 0.1"
    )
    assert (kept.to_dict()["gap"], kept.to_dict()["n_compared"]) == (0.0, 1)
    option.decide([0, 1], groups=[1, 1])
    [kept] = option.kept
    assert kept.words.endswith(
        "largest gap 0.0000 between the 2 groups of 3 with labels, margin 0.1"
    )
    option.decide([0, 1], groups=[2, 2])
    assert option.kept[0].words == "demographic parity: largest gap 0.0000, margin 0.1"


def test_unsure_labels_are_refused_before_the_gate_and_counted_as_offered() -> None:
    option = new()
    decided = option.decide([0, 1, 1], [0, 0, 0], sure=[True, False, True])
    assert decided.labels.tolist() == [0, REJECTED, 1]
    assert decided.reasons.tolist() == [Verdict.ANSWERED, Verdict.UNSURE, Verdict.ANSWERED]
    assert option.coverage.offered.tolist() == [[1, 2], [0, 0]]
    assert option.coverage.given.tolist() == [[1, 1], [0, 0]]
    RejectOption.from_dict(option.to_dict())


@given(case=streams())
def test_coverage_is_a_recount_of_requests_and_answers(
    case: tuple[dict[str, Any], Stream],
) -> None:
    settings, stream = case
    option = opened(**settings)
    out = answers_one_by_one(option, stream)
    shape = (len(settings["groups"]), len(settings["classes"]))
    everything = {number: k for number, (_, k) in enumerate(stream)}
    assert option.coverage.offered.tolist() == table_of(stream, everything, shape)
    assert option.coverage.given.tolist() == table_of(stream, out, shape)
    assert option.coverage.names == tuple(settings["groups"])
    assert option.n_requests == len(stream)


@given(case=streams(), cut=st.integers(0, 150))
def test_a_saved_state_goes_on_as_if_nothing_had_happened(
    case: tuple[dict[str, Any], Stream], cut: int
) -> None:
    settings, stream = case
    whole = opened(**settings)
    for z, k in stream[:cut]:
        whole.decide([k], [z])  # row by row, so that released answers wait to be fetched
    interrupted = opened(**settings)
    interrupted.resume(json.loads(json.dumps(whole.to_dict())))
    for option in (whole, interrupted):
        assert option.n_requests == min(cut, len(stream))
    after, resumed = (option.decide(*columns(stream[cut:])) for option in (whole, interrupted))
    np.testing.assert_array_equal(resumed.labels, after.labels)
    np.testing.assert_array_equal(resumed.reasons, after.reasons)
    np.testing.assert_array_equal(resumed.ids, after.ids)
    assert fetched(interrupted) == fetched(whole)
    assert interrupted.to_dict() == whole.to_dict()


OTHER = {
    "the model": {"model": "m2"},
    "the classes": {"classes": ["no", "maybe"]},
    "the groups": {"groups": ["F", "other"]},
    "the margin": {"margin": 0.06},
    "the reference": {"reference": "pairwise"},
    "the cold start": {"cold_start": 21},
}


@pytest.mark.parametrize("what", OTHER)
def test_the_state_of_another_model_or_other_settings_is_refused(what: str) -> None:
    other = new(**OTHER[what])
    other.decide([0, 1], [0, 0])
    option = new()
    option.decide([1], [0])
    before = option.to_dict()
    with pytest.raises(StateOfAnotherModel, match=rf"belongs to {what} .*begin a new one") as error:
        option.resume(other.to_dict())
    assert "not to" in str(error.value)
    assert option.to_dict() == before


def damaged() -> dict[str, Callable[[dict[str, Any]], None]]:
    return {
        "format must be": lambda s: s.update(format="something else"),
        "exactly the keys": lambda s: s.pop("held"),
        "do not fit together": lambda s: s["offered"][0].__setitem__(0, 0),
        "numbered once each": lambda s: s["held"][1][0].__setitem__(1, s["held"][1][0][0]),
        "in order, from 0": lambda s: s["held"][1][0].reverse(),
        "from 0 to": lambda s: s["held"][1][0].__setitem__(2, 99),
        "withheld and released labels": lambda s: s["held"][1][0].pop(),
        "counts must hold whole": lambda s: s["unsure"][0].__setitem__(0, 0.5),
        "counts must be at least 0": lambda s: s["unsure"][0].__setitem__(0, -1),
        "wrong shape": lambda s: s.update(held=3),
        "differ from each other": lambda s: s.update(groups=["F", "F"]),
        "offered, given, withheld": lambda s: s.update(offered=[[4]]),
        "keys": lambda s: s.update(gate={"format": "evenhand demographic parity gate 2"}),
        "A reject option's state": lambda s: s.update(gate=5),
        "released": lambda s: s.update(released=[[0, 0]] * 9),
    }


@pytest.mark.parametrize("message", damaged())
def test_a_damaged_state_is_refused(message: str) -> None:
    option = new()
    option.decide([0, 1, 0, 0, 0], [0, 0, 1, 1, 1])
    state = json.loads(json.dumps(option.to_dict()))
    assert RejectOption.from_dict(state).to_dict() == state
    damaged()[message](state)
    with pytest.raises(ValueError, match=message):
        RejectOption.from_dict(state)


def test_bad_requests_are_refused_and_nothing_is_counted() -> None:
    option = new()
    before = option.to_dict()
    for arguments, error in (
        (([0, 2], [0, 0]), "labels must be at least 0 and below 2"),
        (([0, -1], [0, 0]), "labels must be at least 0"),
        (([0, 1], [0, 2]), "groups must be at least 0 and below 2"),
        (([0, 1], [0]), "labels has 2, groups has 1"),
    ):
        with pytest.raises(ValueError, match=error):
            option.decide(*arguments)
    with pytest.raises(TypeError, match="sure must hold True and False"):
        option.decide([0], [0], sure=[1])
    with pytest.raises(ValueError, match="labels has 1, sure has 2"):
        option.decide([0], [0], sure=[True, True])
    assert option.to_dict() == before


@pytest.mark.parametrize(
    ("changes", "kind", "message"),
    [
        ({"margin": 1.5}, ValueError, r"margin must lie in \[0, 1\], got margin=1.5"),
        ({"groups": "FM"}, TypeError, "groups must be a list of names, got the text 'FM'"),
        ({"classes": ["a", "a"]}, ValueError, "classes must differ from each other"),
        ({"classes": ["a"]}, ValueError, "n_classes must be at least 2"),
        ({"groups": []}, ValueError, "n_groups must be at least 1"),
        ({"cold_start": 0}, ValueError, "cold_start must be at least 1"),
        ({"reference": "resd"}, ValueError, "Did you mean 'rest'?"),
    ],
)
def test_settings_that_make_no_sense_are_refused(
    changes: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message.replace("?", r"\?")):
        new(**changes)


def test_the_cold_start_grows_as_the_margin_shrinks() -> None:
    started = [
        new(margin, cold_start=None).to_dict()["gate"]["cold_start"] for margin in (0.5, 0.01, 0)
    ]
    assert started == [50, 200, 2000]


def test_no_group_is_starved_by_a_small_first_block() -> None:
    """Rates of a private model of Adult, where a cold start of 50 alone starves 1 stream in 11."""

    def least_share(cold_start: int | None, seed: int) -> float:
        rng = np.random.default_rng(seed)
        groups = (rng.random(1000) < 0.32).astype(int)
        labels = (rng.random(1000) < np.where(groups == 1, 0.08, 0.257)).astype(int)
        within = DemographicParity(margin=0.05)
        option = RejectOption(within, ["M", "F"], ["no", "yes"], cold_start=cold_start)
        option.decide(labels, groups)
        option.deliver()
        assert option.gap <= 0.05
        given, offered = option.coverage.given.sum(axis=1), option.coverage.offered.sum(axis=1)
        return float((given / offered).min())

    assert min(least_share(None, seed) for seed in range(60)) > 0.2  # 0 of 120 were below .29
    # 11 of 120 were starved: none of 60 is in 3 runs of 1,000.
    assert min(least_share(50, seed) for seed in range(60)) < 0.2


def test_a_state_of_before_goes_on_with_the_least_block_of_now() -> None:
    within = DemographicParity(margin=0.05)
    older = RejectOption(within, ["M", "F"], ["no", "yes"], cold_start=50)
    older.decide([0, 1] * 20 + [1] + [0] * 48, [0] * 40 + [1] * 49)
    state = json.loads(json.dumps(older.to_dict()))
    assert "least_block" not in state["gate"]
    now = RejectOption(within, ["M", "F"], ["no", "yes"])
    now.resume(state)
    assert now.decide([0], [1]).n_released == 0  # the largest block has two labels
    assert older.decide([0], [1]).n_released > 0
    again = RejectOption(within, ["M", "F"], ["no", "yes"])
    again.resume(json.loads(json.dumps(now.to_dict())))
    assert again.to_dict() == now.to_dict()


def test_threads_share_one_count() -> None:
    option = new(0.05)
    stream = independent_stream(2000, 1)
    parts = [stream[i::4] for i in range(4)]
    numbers: list[int] = []
    given: list[int] = []

    def ask(part: Stream) -> None:
        for z, k in part:
            decided = option.decide([k], [z])
            numbers.append(int(decided.ids[0]))
            given.append(int(decided.answered[0]))

    threads = [threading.Thread(target=ask, args=(part,)) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers) == list(range(2000))
    late = fetched(option)
    assert sum(given) + len(late) == option.counts.sum()
    assert option.gap <= 0.05


def test_a_state_file_holds_what_was_written(tmp_path: Path) -> None:
    file = StateFile(tmp_path / "state.json")
    for value in ({"a": 1}, {"a": 2, "name": "é"}):
        file.write(value)
        assert StateFile(tmp_path / "state.json").read() == value
    assert list(tmp_path.iterdir()) == [tmp_path / "state.json"]
    assert (tmp_path / "state.json").stat().st_mode & 0o077 == 0


def test_a_crash_while_saving_leaves_the_old_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = StateFile(tmp_path / "state.json")
    file.write({"n": 1})

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    for moment in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, moment, crash)
            with pytest.raises(KeyboardInterrupt):
                file.write({"n": 2})
        assert json.loads((tmp_path / "state.json").read_text()) == {"n": 1}
    file.write({"n": 3})
    assert StateFile(tmp_path / "state.json").read() == {"n": 3}


def test_counts_of_another_process_are_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    first = StateFile(path)
    first.write({"n": 1})
    second = StateFile(path)
    with pytest.raises(ValueError, match=r"exists and was not read: .*Load it first"):
        second.write({"n": 2})
    second.read()
    second.write({"n": 2})
    with pytest.raises(ValueError, match=r"was changed by somebody else .*Load it again"):
        first.write({"n": 3})
    path.unlink()
    with pytest.raises(ValueError, match="was removed by somebody else"):
        second.write({"n": 4})


def test_files_that_are_no_state_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    with pytest.raises(FileNotFoundError, match="There is no saved state"):
        StateFile(path).read()
    for text in ("", "{", "[1]"):
        path.write_text(text)
        with pytest.raises(ValueError, match="is not a saved state"):
            StateFile(path).read()
    with pytest.raises(FileNotFoundError, match=r"does not exist\. Make it first"):
        StateFile(tmp_path / "nowhere" / "state.json").write({})


def test_requests_of_a_group_that_came_no_more_are_answered_once_others_made_room() -> None:
    option = new(0.1, cold_start=10)
    option.decide([0] * 10, [0] * 10)
    assert (option.decide([1] * 10, [1] * 10).reasons == Verdict.WITHHELD).all()
    assert option.deliver().ids.size == 0  # rates of 0 and 1: no block fits
    option.decide([1] * 200, [0] * 200)
    found = option.deliver()
    assert found.ids.tolist() == list(range(10, 20))
    assert found.labels.tolist() == [1] * 10
    assert option.gap <= 0.1
    assert option.deliver().ids.size == 0


def test_by_default_a_first_group_that_comes_once_holds_up_nobody() -> None:
    within = DemographicParity(margin=0.05)
    option = RejectOption(within, ["M", "F"], ["no", "yes"])
    assert option.decide([1], [0]).reasons.tolist() == [Verdict.WITHHELD]
    stream = independent_stream(400, 5)
    decided = option.decide([k for _, k in stream], [1] * 400)
    assert decided.answered.all()
    assert option.held[0].tolist() == [0, 1]
    stands = RejectOption(within, ["M", "F"], ["no", "yes"], cold_start=50)
    stands.decide([1], [0])  # a rate of 1, which all others have to be near
    decided = stands.decide([k for _, k in stream], [1] * 400)
    assert decided.answered.mean() < 0.5

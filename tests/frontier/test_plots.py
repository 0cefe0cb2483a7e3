"""The still pictures show means, intervals and steps of the runs, and nothing that is unknown."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from evenhand.frontier.plots import pair_figure
from evenhand.testing.frontier import synthetic_runs


def test_each_method_has_its_points_with_means_over_seeds() -> None:
    runs = synthetic_runs(10, n_seeds=3, methods=("pate", "fairpate"))
    figure = pair_figure(runs, "epsilon", "error")
    points = [trace for trace in figure.data if trace.mode == "markers"]
    assert [trace.name for trace in points] == ["fairpate", "pate"]
    assert len({trace.marker.color for trace in points}) == 2
    assert len({trace.marker.symbol for trace in points}) == 2
    own = [run.error for run in runs if run.setting.arguments["number"] == 1]
    assert points[0].y[0] == pytest.approx(np.mean(own))
    assert points[0].error_y.array[0] > 0
    assert points[0].error_x.array is None  # an epsilon is a claim, not a measurement


@pytest.mark.parametrize(("x", "y"), [("epsilon", "error"), ("gap", "error"), ("coverage", "gap")])
def test_steps_join_what_no_other_point_beats(x: str, y: str) -> None:
    runs = synthetic_runs(60, methods=("reject-option",))
    _, steps = pair_figure(runs, x, y).data
    sign = {name: -1 if name == "coverage" else 1 for name in (x, y)}
    all_points = [(sign[x] * getattr(r, x), sign[y] * getattr(r, y)) for r in runs]
    best = {
        p
        for p in all_points
        if not any(a <= p[0] and b <= p[1] and (a, b) != p for a, b in all_points)
    }
    shown = [(sign[x] * a, sign[y] * b) for a, b in zip(steps.x, steps.y, strict=True)]
    assert set(shown) == best
    assert shown == sorted(shown)


def test_what_is_unknown_or_has_no_bound_is_left_out() -> None:
    one, two, three = synthetic_runs(3, methods=("pate",))
    runs = [replace(one, error=math.nan), replace(two, epsilon=math.inf), three]
    points, steps = pair_figure(runs).data
    assert list(points.x) == list(steps.x) == [three.epsilon]


def test_hostile_names_are_escaped() -> None:
    figure = pair_figure(synthetic_runs(1, methods=("<b>x</b>",)))
    assert figure.data[0].name == "&lt;b&gt;x&lt;/b&gt;"


def test_misspelt_objectives_get_the_nearest() -> None:
    with pytest.raises(ValueError, match="Did you mean 'coverage'"):
        pair_figure([], "coverge", "error")
    with pytest.raises(ValueError, match="x and y must be two objectives, got 'gap' twice"):
        pair_figure([], "gap", "gap")

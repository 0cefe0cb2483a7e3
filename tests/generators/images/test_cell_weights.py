"""Weights of cells: drawn pictures pull as hard as real ones where their gradients are alike."""

import numpy as np
import pytest

from evenhand.generators.clipping import Clipping
from evenhand.generators.images.dp_wgan import CellWeights

SHARES = np.array([0.5, 0.1, 0.25, 0.15])  # two labels with two groups each
ON_BOTH, ON_LABEL = np.arange(4), np.array([0, 0, 1, 1])
BY_GROUP = np.array([0, 1, 0, 1])


@pytest.mark.parametrize("conditions", [ON_BOTH, ON_LABEL], ids=["on both", "on the label"])
@pytest.mark.parametrize("even", [False, True])
@pytest.mark.parametrize("clip", ["flat", "group"])
def test_drawn_pictures_pull_as_real_ones_do_if_gradients_do_not_depend_on_the_group(
    conditions: np.ndarray, even: bool, clip: str
) -> None:
    # Brute force: 100 real pictures in exact shares against the expectation over the distribution.
    counted = CellWeights(
        shares=SHARES, conditions=conditions, bounds=BY_GROUP * (clip == "group"), even=even
    )
    clipping = Clipping.start(clip, 1.0, n_groups=2 if clip == "group" else 1)
    clipping.bounds = np.array([1.5, 3.0]) if clip == "group" else clipping.bounds
    norms = np.array([0.4, 5.0, 2.0, 2.5])[: conditions.max() + 1]  # of each condition
    cells = np.repeat(np.arange(4), (100 * SHARES).astype(int))
    weighted = counted.weights[cells] * norms[conditions[cells]]
    cut = clipping.cut(weighted, counted.bounds[cells])
    real = np.bincount(conditions[cells], weighted * cut) / 100
    given = np.arange(len(norms))
    drawn = counted.distribution * counted.of_drawn(norms, given, clipping) * norms
    assert drawn == pytest.approx(real)


def test_the_rarest_weigh_1_and_all_cells_together_alike() -> None:
    counted = CellWeights(shares=SHARES, conditions=ON_BOTH, bounds=0 * ON_BOTH, even=True)
    assert counted.weights.max() == counted.weights[1] == 1.0
    assert counted.weights * SHARES == pytest.approx(np.full(4, 0.1))
    assert counted.distribution == pytest.approx(np.full(4, 0.25))


def test_sizes_are_those_of_the_groups_that_share_a_bound() -> None:
    counted = CellWeights(shares=SHARES, conditions=ON_LABEL, bounds=BY_GROUP, even=False)
    assert counted.sizes(200.0) == pytest.approx([150.0, 50.0])
    assert counted.distribution == pytest.approx([0.6, 0.4])

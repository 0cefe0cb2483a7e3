"""Arithmetic of probabilities, against its definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import approx_fprime
from scipy.special import softmax

from evenhand._probabilities import decided, gradient_in_scores

PROBABILITIES = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 3), st.integers(0, 4), st.integers(2, 4)),
    elements=st.sampled_from([0.0, 0.25, 0.5, 1.0]),
)


@given(PROBABILITIES)
def test_the_first_of_the_most_likely_classes_is_decided(probabilities: np.ndarray) -> None:
    hard = decided(probabilities)
    assert hard.shape == probabilities.shape
    assert hard.dtype == np.float64
    for at in np.ndindex(probabilities.shape[:-1]):
        row = probabilities[at].tolist()
        assert hard[at].tolist() == [float(k == row.index(max(row))) for k in range(len(row))]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_gradient_in_the_scores_is_that_of_finite_differences(
    n_classes: int, dtype: type
) -> None:
    rng = np.random.default_rng(0)
    scores, gradient = rng.normal(size=(2, 5, n_classes))
    found = gradient_in_scores(softmax(scores, axis=1).astype(dtype), gradient.astype(dtype))

    def value(flat: np.ndarray) -> float:
        return float((softmax(flat.reshape(5, n_classes), axis=1) * gradient).sum())

    wanted = approx_fprime(scores.ravel(), value, 1e-7).reshape(5, n_classes)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, wanted, atol=2e-6)

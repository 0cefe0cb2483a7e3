"""True classes for a margin that needs them, where nothing but released answers tells of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from evenhand.fairness.tally import Tally
from evenhand.students.within import Within
from evenhand.typing import BoolArray, FloatArray
from evenhand.voting import Answers, Shares

CLEAR: Final = 3.0
"""How many standard deviations of its noise the sum of a group's shares of a class must have."""


def with_estimated_classes(answers: Answers | Shares, smooth: FloatArray, within: Within) -> Within:
    """Return the margin with classes of the public rows estimated from the released answers.

    The estimate is ``smooth``, the probabilities (n, n_classes) of a student without a margin, to
    which all answers contribute. In a group where the answers do not clearly show a class, it has
    weight 0 there. What is bound is then the gap with respect to what the *teachers say*,
    with noise: not to the truth.

    Notes
    -----
    Noisy shares themselves are unbiased weights too, for the shares of the votes. Measured on Adult
    (``reproductions/notions_on_adult.py``) they left larger gaps at test: the noise of one row
    averages out over a group, but a vote of weak teachers is not a probability of the class. Noisy
    winners are wrong in all groups alike, which hides differences.
    """
    estimable = _estimable(answers, within)[within.groups]
    weights = np.where(estimable, np.maximum(smooth, 1e-12), 0.0)  # a sure student may leave only 0
    weights /= weights.sum(axis=1, keepdims=True)
    return replace(within, labels=weights, source="released answers")


def _estimable(answers: Answers | Shares, within: Within) -> BoolArray:
    """Whether the answers show each class in each group, (n_groups, n_classes).

    The sum of noisy shares must be clear of its own noise: it is unbiased, and nothing is clipped.
    A smooth student gives every class some probability, also one that no teacher votes for.
    """
    shape = (within.n_groups, answers.n_classes)
    if isinstance(answers, Answers):
        rows = answers.answered
        clear = Tally.of(within.groups[rows], answers.labels[rows], *shape).counts > 0
    else:
        held = np.zeros(shape)
        np.add.at(held, within.groups, answers.shares)
        noise = np.sqrt(np.bincount(within.groups, answers.variance, minlength=shape[0]))
        clear = held > CLEAR * noise[:, None]
    clear[~clear.any(axis=1)] = True  # of such a group nothing is known but the student's word
    return clear

"""The margin that a student shall keep: on which rows, and where their true classes come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Protocol

import numpy as np
from scipy.sparse import csr_array

from evenhand import _checks
from evenhand.fairness.notion import RateNotion, rates_of
from evenhand.fairness.rates import Rates
from evenhand.fairness.tally import JointTally, Tally
from evenhand.typing import BoolArray, FloatArray, IntArray

_EQUAL: Final = 1e-9  # differences of rates that are nearer to each other

SOURCES: Final[Mapping[str, str]] = {
    "public rows": "on the public rows",
    "calibration rows": "on the labelled calibration rows",
    "drawn rows": "on rows drawn from noisy counts",
    "counted decisions": "on drawn rows, set right by noisy counts of decisions",
    "released answers": "on the public rows, with their classes as the released answers tell them",
    "own probabilities": "on the public rows, with their classes as the model's own probabilities "
    "tell them",
    "noisy counts": "by noisy counts of the private rows' scores",
    "expected counts": "by noisy counts of the private rows' scores, with their classes as the "
    "model's own probabilities tell them",
}
"""Where a margin is read, in the words of a sentence."""


class Differences(Protocol):
    """Differences of rates as a function of (smoothed) decisions: affine, with its transpose."""

    def apart(self, decisions: FloatArray) -> FloatArray:
        """Return the differences for decisions (n, n_columns); one column is that of class 1."""

    def back(self, pull: FloatArray) -> FloatArray:
        """Return the gradient (n, n_columns) of ``sum(pull * apart(decisions))``."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Within:
    """The margin that the student's decisions shall keep."""

    notion: RateNotion
    groups: IntArray
    """Group codes of the rows on which the margin is read. Shape (n,)."""
    n_groups: int
    X: FloatArray | None = None
    """Those rows. Default: all public rows. Shape (n, n_features)."""
    labels: IntArray | FloatArray | None = None
    """Their true classes, for a notion that needs them: codes (n,) of int64, or weights (n,
    n_classes) of float64 whose rows sum to one.
    """
    source: str = "public rows"
    """What the gap is a gap on, a key of ``SOURCES``: decisions alone, true classes, what was
    released about them, or what the model expects of them.
    """
    hold_small: bool = False
    """Whether a group may be held to the interval of its size where that is wider than the margin.
    """
    limits: FloatArray | None = None
    """Largest difference that each group is held to, at least the margin; of demographic parity. A
    pair of groups is held to the larger of its two. Shape (n_groups,).
    """
    moved: FloatArray | None = None
    """What is added to how often these rows of each group are given each class, where more is known
    of that than they tell. Shape (n_groups, n_classes); of a notion about true classes, which are
    weights, of each group and true class: (n_groups, n_classes, n_classes).
    """

    def __post_init__(self) -> None:
        _checks.one_of("source", self.source, SOURCES)
        if self.X is not None:
            _checks.same_length(X=self.X, groups=self.groups)
        if self.labels is not None:
            _checks.same_length(labels=self.labels, groups=self.groups)

    def differences(self, n_classes: int) -> Differences:
        """Return the differences of rates that the notion bounds."""
        if not self.notion.needs_labels:
            rows = self.contrasts()
            rows = rows if self.limits is None else rows / self._widened[:, None]
            moved = None if self.moved is None else rows @ self.moved[self.groups]
            return _Contrasts(rows, rates_of(self.notion, n_classes), moved)
        return _JointDifferences(self, n_classes)

    def contrasts(self) -> FloatArray:
        """Return rows (n_contrasts, n) whose product with decisions is one difference of rates."""
        sizes = np.bincount(self.groups, minlength=self.n_groups)
        filled = np.flatnonzero(sizes)
        share = np.zeros((len(filled), len(self.groups)))
        for i, z in enumerate(filled):
            share[i, self.groups == z] = 1.0 / sizes[z]
        weight = sizes[filled].astype(float)
        if self.notion.reference == "pairwise":
            pairs = [(i, j) for i in range(len(filled)) for j in range(i)]
            apart: FloatArray = np.zeros((len(pairs), len(self.groups)))
            for row, (i, j) in enumerate(pairs):
                apart[row] = share[i] - share[j]
            return apart
        overall = weight @ share / weight.sum()
        away: FloatArray = share - overall
        if self.notion.reference == "overall":
            return away
        # P(k|z) - P(k|not z) = (P(k|z) - P(k)) * n / n_(not z)
        away *= (weight.sum() / (weight.sum() - weight))[:, None]
        return away

    def gap(self, decisions: IntArray, n_classes: int) -> float:
        """Gap of hard decisions on these rows: exact, save where the labels are weights.

        Of the rates as they are ``moved``. With ``limits`` each difference counts in units of its
        own limit, times the margin.
        """
        of_labels = self.notion.needs_labels
        if self.limits is not None or (self.moved is not None and not of_labels):
            hard = np.eye(n_classes)[decisions]
            hard = hard[:, 1:] if n_classes == 2 else hard
            apart = np.abs(self.differences(n_classes).apart(hard)).max(initial=0.0)
            return float(apart) * (1 + 1e-9)  # rounding must not let a gap in
        if not of_labels:
            tally = Tally.of(self.groups, decisions, self.n_groups, n_classes)
            return self.notion.gap(tally.counts)
        labels = self._required_labels
        if labels.ndim == 1:
            joint = JointTally.of(self.groups, labels, decisions, self.n_groups, n_classes)
            return self.notion.gap(joint.counts)
        hard = np.eye(n_classes)[decisions]
        apart = self._joint.apart(hard[:, 1:] if n_classes == 2 else hard)
        return float(np.abs(apart).max(initial=0.0))

    def gaps(self, decisions: IntArray, n_classes: int) -> FloatArray:
        """Largest difference of hard decisions that each group is part of (n_groups,)."""
        apart = np.abs(self.contrasts() @ np.eye(n_classes)[decisions]).max(axis=1)
        out = np.zeros(self.n_groups)
        for groups, gap in zip(self._compared, apart, strict=True):
            out[list(groups)] = np.maximum(out[list(groups)], gap)
        return out

    def of_rows(self, rows: IntArray) -> Within:
        """Return the margin as it is read on some of its rows."""
        return replace(
            self,
            groups=self.groups[rows],
            X=None if self.X is None else self.X[rows],
            labels=None if self.labels is None else self.labels[rows],
        )

    def combined(self, n_classes: int) -> FloatArray:
        """Return the differences that are bounded, as weights of counts.

        Of shape (n_differences, n_cells, n_classes): how much a record of a cell that is given a
        class counts. The cells are groups or, for a notion about true classes, groups and classes.
        """
        notion, rates = self.notion, rates_of(self.notion, n_classes)
        if notion.needs_labels:
            held = self.cells(n_classes).sum(axis=0).reshape(self.n_groups, n_classes)
            trials = held @ rates.among.T
            out = _combinations(rates, trials, trials >= 1.0, notion.reference)
            return out.reshape(len(out), self.n_groups * n_classes, n_classes)
        sizes = np.bincount(self.groups, minlength=self.n_groups).astype(float)
        trials = np.repeat(sizes[:, None], rates.n_rates, axis=1)
        out = _combinations(rates, trials, trials > 0, notion.reference)
        # Whatever the true class: that of the first stands for all.
        return out.reshape(len(out), self.n_groups, n_classes, n_classes)[:, :, 0]

    def bounds(self, n_differences: int) -> FloatArray:
        """Return how large each of the differences may be: the margin, or what limits allow."""
        bounds = np.full(n_differences, float(self.notion.margin))
        if self.limits is None:
            return bounds
        widened = self._widened
        out: FloatArray = bounds * np.tile(widened, n_differences // len(widened))
        return out

    def standard_error(self, decided: FloatArray, certain: FloatArray | None = None) -> float:
        """Return that of the widest difference of rates, as these rows are a sample; two classes.

        Parameters
        ----------
        decided : ndarray of float64, shape (n,)
            Probability of class 1 for each row.
        certain : ndarray of float64, shape (n_groups,), optional
            How many rows of a sample would say as much as those of each group do. Default: as
            many as there are.
        """
        apart, weights, variance = self.sampled(decided, certain)
        errors, apart = np.sqrt(weights**2 @ variance), np.abs(apart)
        return float(errors[apart >= apart.max(initial=0.0) - _EQUAL].max(initial=0.0))

    def sampled(
        self, decided: FloatArray, certain: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the differences, and how they vary with the sample; see ``standard_error``.

        Returns
        -------
        ndarray of float64, shape (n_differences,)
        ndarray of float64, shape (n_differences, n_cells)
            What one row more of class 1 in each cell adds to each difference.
        ndarray of float64, shape (n_cells,)
            Variance of how many rows of each cell are given class 1, independent of the others.
        """
        cells = self.cells(2)
        sizes, hits = cells.sum(axis=0), decided @ cells
        rates = (hits + 0.5) / (sizes + 1.0)  # no rate is certain because nobody is an exception
        combined = self.combined(2)
        apart: FloatArray = combined[:, :, 1] @ hits + combined[:, :, 0] @ (sizes - hits)
        variance = sizes * rates * (1.0 - rates)
        if certain is not None:
            rows = np.bincount(self.groups, minlength=self.n_groups)
            variance *= np.repeat(rows / certain, len(sizes) // self.n_groups)
        return apart, combined[:, :, 1] - combined[:, :, 0], variance

    def cells(self, n_classes: int) -> FloatArray:
        """Return 1 where a row is in a cell and 0 where not, (n, n_cells); see ``combined``."""
        of_group = np.eye(self.n_groups)[self.groups]
        if not self.notion.needs_labels:
            return of_group
        labels = self._required_labels
        truth = np.eye(n_classes)[labels] if labels.ndim == 1 else labels
        out: FloatArray = (of_group[:, :, None] * truth[:, None, :]).reshape(len(truth), -1)
        return out

    @property
    def _compared(self) -> list[tuple[int, ...]]:
        """The groups that each contrast is about, in the order of ``contrasts``."""
        filled = np.flatnonzero(np.bincount(self.groups, minlength=self.n_groups)).tolist()
        if self.notion.reference == "pairwise":
            return [(filled[i], filled[j]) for i in range(len(filled)) for j in range(i)]
        return [(z,) for z in filled]

    @property
    def _widened(self) -> FloatArray:
        """How many times the margin each contrast may be (n_contrasts,)."""
        assert self.limits is not None
        widest = [max(self.limits[list(groups)]) for groups in self._compared]
        return np.maximum(np.array(widest) / self.notion.margin, 1.0)

    def unread(self, n_classes: int) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """Return the rates that are left out: the group, and the true classes it is taken among.

        They are taken among less than one record; the margin says nothing about them.
        """
        if not self.notion.needs_labels:
            return ()
        return _JointDifferences(self, n_classes).unread

    def unread_in_words(self, names: Sequence[str], classes: Sequence[Any]) -> list[str]:
        """Return the same in words, each once: a group among a class, or several."""
        said = (
            f"{names[z]!r} among class {' or '.join(repr(classes[k]) for k in among)}"
            for z, among in self.unread(len(classes))
        )
        return list(dict.fromkeys(said))

    @cached_property
    def _joint(self) -> _JointDifferences:
        return _JointDifferences(self, self._required_labels.shape[1])

    @property
    def _required_labels(self) -> IntArray | FloatArray:
        if self.labels is None:
            raise ValueError(
                f"{self.notion!r} is about records of a true class, and labels is missing. Pass "
                f"labels=, codes or weights of the true classes."
            )
        return self.labels


class _Contrasts:
    """Rates of decisions among all records of a group, whatever their true class."""

    def __init__(self, contrasts: FloatArray, rates: Rates, moved: FloatArray | None) -> None:
        assert rates.predicted is not None
        self.contrasts = contrasts
        # Of two classes there is one column of decisions, that of class 1.
        self.moved = 0.0 if moved is None else moved[:, 1:] if rates.n_classes == 2 else moved
        classes = rates.predicted.T
        if rates.n_classes == 2:  # decisions are those of class 1; what is constant has no contrast
            classes = classes[1:] - classes[:1]
        self.classes = None if np.array_equal(classes, np.eye(len(classes))) else classes

    def apart(self, decisions: FloatArray) -> FloatArray:
        out: FloatArray = self.contrasts @ decisions + self.moved
        return out if self.classes is None else out @ self.classes

    def back(self, pull: FloatArray) -> FloatArray:
        out: FloatArray = self.contrasts.T @ pull
        return out if self.classes is None else out @ self.classes.T


class _JointDifferences:
    """Rates of decisions among records of some true classes.

    The joint table of group, true and predicted class is one sparse product with the decisions, and
    every difference of rates is a fixed combination of its entries: what the decisions are divided
    by never depends on them. Work and memory grow with rows times classes, not with groups.
    """

    def __init__(self, within: Within, n_classes: int) -> None:
        notion, rates = within.notion, rates_of(within.notion, n_classes)
        self._cells = _cells(within, n_classes)
        # In a C-ordered transpose both products walk along rows.
        self._rows = csr_array(self._cells.T)
        held = np.asarray(self._cells.sum(axis=1)).reshape(within.n_groups, n_classes)
        trials = held @ rates.among.T
        read = trials >= 1.0  # below one record there is no rate
        self.unread = tuple(
            (int(z), tuple(np.flatnonzero(rates.among[r]).tolist()))
            for z, r in zip(*np.nonzero(~read), strict=True)
        )
        combined = _combinations(rates, trials, read, notion.reference)
        self._constant = np.zeros(len(combined))
        if n_classes == 2:  # decisions are those of class 1; class 0 gets the rest of each cell
            self._constant = combined[:, :, 0] @ held.ravel()
            combined = combined[:, :, 1:] - combined[:, :, :1]
        if within.moved is not None:
            moved = within.moved.reshape(held.size, n_classes)[:, -combined.shape[2] :]
            self._constant += np.einsum("ncp,c,cp->n", combined, held.ravel(), moved)
        self._shape = combined.shape[1:]
        self._combined = combined.reshape(len(combined), self._shape[0] * self._shape[1])

    def apart(self, decisions: FloatArray) -> FloatArray:
        joint = self._cells @ decisions
        out: FloatArray = self._combined @ joint.ravel() + self._constant
        return out

    def back(self, pull: FloatArray) -> FloatArray:
        out: FloatArray = self._rows @ (self._combined.T @ pull).reshape(self._shape)
        return out


def _cells(within: Within, n_classes: int) -> csr_array:
    """Return how much of each row lies in each cell (group, true class): (n_cells, n)."""
    labels, n = within._required_labels, len(within.groups)
    first = within.groups * n_classes
    if labels.ndim == 1:
        return csr_array(
            (np.ones(n), (first + labels, np.arange(n))), shape=(within.n_groups * n_classes, n)
        )
    at = (first[:, None] + np.arange(n_classes)).ravel()
    rows = np.repeat(np.arange(n), n_classes)
    return csr_array((labels.ravel(), (at, rows)), shape=(within.n_groups * n_classes, n))


def _combinations(rates: Rates, trials: FloatArray, read: BoolArray, reference: str) -> FloatArray:
    """Return the combinations of joint entries that are differences: (n, n_cells, n_predicted)."""
    n_groups, n_classes = len(trials), rates.n_classes
    out = []
    for r, hits in enumerate(rates.hits):
        groups = np.flatnonzero(read[:, r])
        if len(groups) < 2:
            continue
        weight = trials[groups, r]
        for row in _compared(weight, reference):
            joint = np.zeros((n_groups, n_classes, n_classes))
            joint[groups] = (row / weight)[:, None, None] * hits
            out.append(joint.reshape(n_groups * n_classes, n_classes))
    return np.array(out).reshape(len(out), n_groups * n_classes, n_classes)


def _compared(weight: FloatArray, reference: str) -> FloatArray:
    """Return combinations (n_comparisons, n_groups) of the groups' rates, by their weights."""
    n = len(weight)
    eye = np.eye(n)
    if reference == "pairwise":
        return np.array([eye[i] - eye[j] for i in range(n) for j in range(i)])
    away: FloatArray = eye - weight / weight.sum()
    if reference == "rest":
        away *= (weight.sum() / (weight.sum() - weight))[:, None]
    return away

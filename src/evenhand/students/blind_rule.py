"""The best decisions within a margin that never read the group, around any model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from scipy.optimize import linprog

from evenhand._probabilities import nearest_on_simplex
from evenhand.learners.mixture import uniform_of_rows
from evenhand.students.constrained import ENOUGH
from evenhand.students.inferred_groups import SEED, GroupModel, InferredGroups, folds
from evenhand.students.within import Within
from evenhand.typing import Array, FloatArray, IntArray

EXACT: Final = 1e-6
"""Expected error by which a solution may be above the least: far less than one record."""

MOST_RULES: Final = 2000
"""Rules that are looked at, at most, for one solution."""

RECENT: Final = 60
"""Rules of earlier solutions that the next one begins with; a master of more takes longer."""

NOT_MET: Final = 1e6
"""What a difference beyond its bound costs: more than any error, so that it is the last resort."""

ROUNDS: Final = 6
"""How often the observed differences correct those that the model of the groups expects."""

TIGHTER: Final = (0.8, 0.0)
"""Shares of the bounds that are aimed for where no rule within the bounds was found."""

FARTHEST: Final = 1.25
STEPS: Final = 41
"""How far prices are raised on the way to each of them, and in how many steps."""


class BlindRule:
    """A classifier that gives the probable class, after what each group pays.

    A row gets the class k with the largest ``P(k | x) - sum of weights[c, k] * P(c | x)`` over the
    cells c: the groups, or groups and true classes. A randomised rule has several such weights, and
    a share of all rows for each. Which of them decides about a row follows from the row itself, so
    that it gets the same answer every time.

    Parameters
    ----------
    features : InferredGroups
    weights : ndarray, shape (n_rules, n_cells, n_classes)
    shares : ndarray, shape (n_rules,)
        They add up to 1.

    Attributes
    ----------
    classes_ : ndarray of int64
    """

    def __init__(
        self, features: InferredGroups, weights: FloatArray, shares: FloatArray | None = None
    ) -> None:
        self.features = features
        self.weights = np.asarray(weights, dtype=np.float64)
        self.shares = np.ones(1) if shares is None else np.asarray(shares, dtype=np.float64)
        expected = (len(self.shares), features.n_cells, features.n_classes)
        if self.weights.shape != expected:
            raise ValueError(
                f"weights must have shape (n_rules, n_cells, n_classes) = {expected}, got "
                f"{self.weights.shape}."
            )
        if not (self.shares >= 0).all() or abs(self.shares.sum() - 1.0) > 1e-9:
            raise ValueError(
                f"shares must be at least 0 and add up to 1, got {self.shares.tolist()}."
            )
        self.classes_ = np.arange(features.n_classes)

    @property
    def randomised(self) -> bool:
        """Whether several rules share the rows."""
        return len(self.shares) > 1

    def predict(self, X: Array) -> IntArray:
        """Return class codes, (n,); no group is read."""
        p = self.features.classes_of(X)
        chosen = self._left(p, self.features.cells_of(X, p)).argmax(axis=2)
        if not self.randomised:
            return np.asarray(chosen[0], dtype=np.int64)
        flat = np.asarray(X, dtype=np.float64).reshape(len(X), -1)
        edges = np.cumsum(self.shares)[:-1]
        own = np.searchsorted(edges, uniform_of_rows(flat, SEED), side="right")
        out: IntArray = chosen[own, np.arange(len(own))]
        return out

    def predict_proba(self, X: Array) -> FloatArray:
        """Return probabilities of the classes, (n, n_classes).

        Of one rule: the probabilities nearest to what is left of the model's own after what the
        groups pay, of which the class that is decided has the largest. Of several: the
        probabilities with which each class is decided.
        """
        p = self.features.classes_of(X)
        cells = self.features.cells_of(X, p)
        if self.randomised:
            return self.decisions(p, cells)
        return nearest_on_simplex(self._left(p, cells)[0])

    def decisions(self, p: FloatArray, cells: FloatArray) -> FloatArray:
        """Return the probability with which each class is decided, (n, n_classes)."""
        hard = np.eye(p.shape[1])[self._left(p, cells).argmax(axis=2)]
        out: FloatArray = np.tensordot(self.shares, hard, axes=1)
        return out

    def _left(self, p: FloatArray, cells: FloatArray) -> FloatArray:
        out: FloatArray = p - cells @ self.weights
        return out


@dataclass(kw_only=True, eq=False)
class RuleProgram:
    """Decisions of least expected error whose expected differences are within bounds.

    A linear program in the probability of each class for each row. It is solved by its dual, which
    has a variable for each difference: a rule is added that is the best at the prices of the rules
    so far, and one halfway to the best prices, until none is better (column generation, steadied as
    by Wentges 1997). Its solution is a mixture of few rules, each of the form of
    :class:`BlindRule`.
    """

    p: FloatArray
    """``P(y | x)``. Shape (n, n_classes)."""
    cells: FloatArray
    """Probability that the row is in each cell. Shape (n, n_cells)."""
    differences: FloatArray
    """Each difference, as weights of how often a cell is given a class. Shape (n_differences,
    n_cells, n_classes).
    """
    _errors: list[float] = field(default_factory=list)
    _apart: list[FloatArray] = field(default_factory=list)
    _weights: list[FloatArray] = field(default_factory=list)

    def __post_init__(self) -> None:
        n_classes = self.p.shape[1]
        for k in range(n_classes):  # a constant is within every margin but those of errors
            weights = np.zeros((self.cells.shape[1], n_classes))
            weights[:, k] = -2.0 / max(1e-9, self.cells.sum(axis=1).min())
            self._add(weights)
        self._add(np.zeros((self.cells.shape[1], n_classes)))

    def solve(self, low: FloatArray, high: FloatArray) -> Mixed:
        """Return the mixture of rules of least expected error with differences in [low, high]."""
        self._forget()
        least, best = -np.inf, None
        while True:
            mixed = self._master(low, high)
            ways = [(mixed.weights, mixed.paid)]
            if best is not None:
                ways.append((0.5 * (best[0] + mixed.weights), 0.5 * (best[1] + mixed.paid)))
            for weights, paid in ways:
                bound = self._add(weights) - paid
                if bound > least:
                    least, best = bound, (weights, paid)
            assert best is not None
            found = mixed.value - mixed.paid - least <= EXACT
            if found or len(self._errors) >= MOST_RULES:
                return replace(mixed, weights=best[0])

    def decide(self, weights: FloatArray) -> IntArray:
        """Return the class that a rule gives to each row."""
        out: IntArray = (self.p - self.cells @ weights).argmax(axis=1)
        return out

    def given(self, rules: FloatArray, shares: FloatArray) -> FloatArray:
        """Return the probability with which rules that share the rows give each class."""
        out = np.zeros_like(self.p)
        for weights, share in zip(rules, shares, strict=True):
            out[np.arange(len(out)), self.decide(weights)] += share
        return out

    def error(self, rules: FloatArray, shares: FloatArray) -> float:
        """Return the expected error of rules that share the rows, by the model's probabilities."""
        return float(1.0 - (self.p * self.given(rules, shares)).sum(axis=1).mean())

    def _forget(self) -> None:
        """Keep the rules that every program begins with, and recent ones."""
        old = slice(self.p.shape[1] + 1, -RECENT)
        for rules in (self._errors, self._apart, self._weights):
            del rules[old]

    def _add(self, weights: FloatArray) -> float:
        """Add a rule; return a lower bound of the program's value at the prices it was made for."""
        decided = self.decide(weights)
        given = np.eye(self.p.shape[1])[decided]
        table = self.cells.T @ given
        error = 1.0 - float(self.p[np.arange(len(decided)), decided].mean())
        self._errors.append(error)
        self._apart.append(np.tensordot(self.differences, table, axes=2))
        self._weights.append(weights)
        # The prices of the differences are in the weights; see ``_master``.
        return error + float((weights * table).sum()) / len(decided)

    def _master(self, low: FloatArray, high: FloatArray) -> Mixed:
        """Solve the program over the rules so far."""
        n_rules, n = len(self._errors), len(self.differences)
        apart = np.stack(self._apart, axis=1)
        slack = np.full((n, 1), -1.0)
        solved = linprog(
            np.append(self._errors, NOT_MET),
            A_ub=np.concatenate([np.hstack([apart, slack]), np.hstack([-apart, slack])]),
            b_ub=np.concatenate([high, -low]),
            A_eq=np.append(np.ones(n_rules), 0.0)[None, :],
            b_eq=[1.0],
            bounds=(0.0, None),
            method="highs-ds",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        if solved.x is None:
            raise RuntimeError(f"The blind rule could not be found: {solved.message}")
        prices = solved.ineqlin.marginals[n:] - solved.ineqlin.marginals[:n]
        shares = np.maximum(solved.x[:n_rules], 0.0)
        used = np.flatnonzero(shares > 1e-12)
        return Mixed(
            # What one record of a cell pays: n rows share one mean error.
            weights=np.tensordot(prices, self.differences, axes=1) * len(self.p),
            value=float(solved.eqlin.marginals[0]),
            paid=float(solved.eqlin.marginals[0] - solved.fun),
            rules=np.stack([self._weights[i] for i in used]),
            shares=shares[used] / shares[used].sum(),
            error=float(np.array(self._errors)[used] @ shares[used] / shares[used].sum()),
            apart=apart[:, used] @ (shares[used] / shares[used].sum()),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Mixed:
    """A solution: one rule at the prices, and the mixture of rules that is the best.

    ``value`` is the price of a whole row: the expected error plus what the differences cost, which
    is ``paid``.
    """

    weights: FloatArray
    value: float
    paid: float
    rules: FloatArray
    shares: FloatArray
    error: float
    apart: FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class BlindFit:
    """What rules within several margins are found by: the rows, read once.

    Privacy
    -------
    Free: reads a released model, and public rows and what is public of them (post-processing).
    """

    features: InferredGroups
    """Fitted on all rows."""
    program: RuleProgram
    """Of these rows, with probabilities of groups by models that were fitted on others."""
    own_cells: FloatArray
    """Those by the model that was fitted on all rows. Shape (n, n_cells)."""
    within: Within

    @classmethod
    def of(
        cls,
        scores: Any,
        rows: FloatArray,
        within: Within,
        n_classes: int,
        *,
        groups: GroupModel,
    ) -> BlindFit:
        """Infer the groups of public rows.

        The probabilities that the rule is found by are cross-fitted: each part of the rows gets
        those of a model that was fitted on the others. By a model that has seen their groups the
        rows would seem easier to tell apart than new ones are.
        """
        features = InferredGroups.of(scores, rows, within, n_classes, groups=groups)
        p = features.classes_of(rows)
        cells = np.empty((len(rows), features.n_cells))
        for others, out in folds(within.groups):
            apart = InferredGroups.of(
                scores, rows[others], within.of_rows(others), n_classes, groups=groups
            )
            cells[out] = apart.cells_of(rows[out], p[out])
        program = RuleProgram(p=p, cells=cells, differences=within.combined(n_classes))
        own = features.cells_of(rows, p)
        return cls(features=features, program=program, own_cells=own, within=within)

    def rule(
        self, within: Within | None = None, *, randomised: bool = False, own: bool = True
    ) -> BlindRule:
        """Return the best rule within a margin.

        Parameters
        ----------
        within : Within, optional
            A margin of the same notion. Default: that of the fit.
        randomised : bool
            Whether several rules may share the rows.
        own : bool
            Whether the margin of the fit shall hold for the decisions of the rule itself too, whose
            model of the groups has seen these rows, beside those by the cross-fitted probabilities.
        """
        within = self.within if within is None else within
        program = self.program
        cells = within.cells(self.features.n_classes)
        bounds = within.bounds(len(program.differences))
        read = own * [self.own_cells] + [program.cells]
        limits = np.stack(own * [self.within.bounds(len(bounds))] + [bounds])

        def observed(rules: FloatArray, shares: FloatArray) -> FloatArray:
            rule = BlindRule(self.features, rules, shares)
            given = [cells.T @ rule.decisions(program.p, q) for q in read]
            return np.stack([np.tensordot(program.differences, each, axes=2) for each in given])

        return BlindRule(self.features, *search(program, observed, limits, randomised=randomised))


def search(
    program: RuleProgram,
    observed: Callable[[FloatArray, FloatArray], FloatArray],
    bounds: FloatArray,
    *,
    randomised: bool = False,
) -> tuple[FloatArray, FloatArray]:
    """Return weights and shares of the best rule whose *observed* differences are within bounds.

    What the program expects of the differences is off by what the model of the groups is. That is
    read off the rows, whose groups are known, and the bounds of the program are moved by it, for
    each way of reading. Where no rule within the bounds is found, the one that is nearest to them
    is returned.

    Parameters
    ----------
    program : RuleProgram
    observed : callable
        Differences among the rows, by their own groups, of rules that share them, in one way or
        in several: (n_ways, n_differences).
    bounds : ndarray, shape (n_ways, n_differences)
        Of each way; where not all can be kept, the first.
    randomised : bool
        Whether several rules may share the rows.
    """
    looked = _Looked(program, observed, bounds)
    free = np.zeros((1, *program.differences.shape[1:]))
    looked.at(free, np.ones(1))
    if looked.met():
        return looked.best
    shift = np.zeros_like(bounds)

    def step(part: float) -> tuple[Mixed, FloatArray]:
        low, high = (-part * bounds - shift).max(axis=0), (part * bounds - shift).min(axis=0)
        middle = 0.5 * (low + high)  # where no difference is within the bounds of all ways
        mixed = program.solve(np.minimum(low, middle), np.maximum(high, middle))
        rules, shares = mixed.weights[None], np.ones(1)
        if randomised:
            rules, shares = mixed.rules, mixed.shares
        return mixed, looked.at(rules, shares)

    for turn in range(ROUNDS):
        mixed, apart = step(1.0)
        if looked.met() and (np.abs(apart) >= ENOUGH * bounds).any():
            return looked.best
        off = apart - mixed.apart
        shift = off if turn < 2 else 0.5 * (shift + off)  # hard decisions jump
    for part in TIGHTER:
        if looked.met():
            break
        dear = step(part)[0].weights[None]
        if not looked.met():
            for share in np.linspace(0.0, FARTHEST, STEPS)[1:]:
                looked.at(share * dear, np.ones(1))
    return looked.best


class _Looked:
    """The best of the rules that were looked at: within the bounds, or else nearest to them."""

    def __init__(
        self,
        program: RuleProgram,
        observed: Callable[[FloatArray, FloatArray], FloatArray],
        bounds: FloatArray,
    ) -> None:
        self._program, self._observed, self._bounds = program, observed, bounds
        self._least: tuple[float, ...] = (np.inf,)

    def met(self) -> bool:
        """Whether one was within the bounds, in every way of reading them."""
        return len(self._least) > 1 and not any(self._least[:-1])

    def at(self, rules: FloatArray, shares: FloatArray) -> FloatArray:
        """Look at rules that share the rows; return their observed differences."""
        apart = self._observed(rules, shares)
        # A mixture that was solved for its bounds is at them, up to rounding.
        over = np.abs(apart) - self._bounds * (1 + 1e-9) - 1e-12
        beyond = np.maximum(over, 0.0).max(axis=1, initial=0.0)
        least = (*beyond.tolist(), self._program.error(rules, shares))
        if least < self._least:
            self._least, self.best = least, (rules, shares)
        return apart

"""What SF-PATE's student knows of the groups, by votes, by noisy sums over them, or by both."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from evenhand.estimators.attribute_privacy import PeopleInputs
from evenhand.fairness.notion import Notion
from evenhand.learners.preconditioner import Whitening
from evenhand.privacy import Ledger
from evenhand.students.exponential_tilting import exponential_tilting
from evenhand.students.lagrangian import Constraint
from evenhand.students.student import smoothed
from evenhand.typing import ArrayLike, FloatArray, IntArray
from evenhand.voting import Shares, Votes
from evenhand.voting.certificate import AttributeCertificate, release_certificate
from evenhand.voting.group_moments import GroupMoments, release_group_moments

ANSWERS: Final = ("smoothed", "shares", "labels")

LENGTH: Final = 4.0
"""Of a row among the features that are summed; the others have a length of about 2."""

LENGTH_ALONE: Final = 8.0
"""The same where no teacher tells a group, and rows say all that is known of it."""

DAMPING: Final = 0.01
"""Of the whitening of rows; standardised columns have a variance of 1."""


@dataclass(frozen=True, kw_only=True, eq=False)
class QueriedRows:
    """The rows that the teachers vote on, and what was released of the votes."""

    rows: IntArray
    shares: Shares
    votes: Votes
    sigma: float


@dataclass(frozen=True, kw_only=True, eq=False)
class EstimatedGroups:
    """Weights of the groups, of some rows or of all; public."""

    weights: FloatArray
    """Shape (n_told, n_groups)."""
    rows: IntArray | None
    """Which rows these are; None: all."""

    @property
    def likeliest(self) -> EstimatedGroups:
        """The likeliest group of each row, and no other."""
        winner = self.weights.argmax(axis=1)
        hard = (np.arange(self.weights.shape[1]) == winner[:, None]) * 1.0
        return replace(self, weights=hard)

    def constraint(
        self,
        notion: Notion,
        people: PeopleInputs,
        *,
        reads_labels: bool = True,
    ) -> Constraint:
        """Return the constraint of problem (2) with these groups."""
        truth = one_hot_classes(people) if reads_labels else no_classes(people)
        return Constraint(
            notion=notion,
            truth=truth if self.rows is None else truth[self.rows],
            weights=self.weights,
            rows=self.rows,
        )

    def certificate(
        self, people: PeopleInputs, ledger: Ledger, mu_squared: float
    ) -> AttributeCertificate:
        """Release a table of true groups and of the most likely ones."""
        z = people.groups.codes
        return release_certificate(
            z if self.rows is None else z[self.rows],
            self.weights.argmax(axis=1),
            n_groups=people.groups.n_groups,
            sigma=_sigma_of_table(ledger, mu_squared),
            ledger=ledger,
        )


def estimated_groups(
    people: PeopleInputs,
    queried: QueriedRows,
    answers: str,
    *,
    probabilities: FloatArray,
    ledger: Ledger,
    mu_squared: float,
    unit_ids: ArrayLike | None,
) -> EstimatedGroups:
    """Return weights of the groups: of all rows if smoothed, else of the queried rows.

    Parameters
    ----------
    people : PeopleInputs
    queried : QueriedRows
    answers : str
        One of ``ANSWERS``.
    probabilities : ndarray of float64, shape (n, n_classes)
        Of the model without a constraint, theta*: public.
    ledger : Ledger
        Pays for the moments.
    mu_squared : float
        What may be spent on moments; 0: there are none.
    unit_ids : array-like, shape (n,), optional
    """
    by_shares = EstimatedGroups(weights=queried.shares.shares, rows=queried.rows)
    if answers != "smoothed":
        return by_shares if answers == "shares" else by_shares.likeliest
    X = people.X_encoded
    smooth = smoothed(X[queried.rows], queried.shares, of=X)
    if not mu_squared:
        return EstimatedGroups(weights=smooth, rows=None)
    features = moment_features(one_hot_classes(people), probabilities, smooth, X)
    moments = _moments(people, features, ledger, mu_squared, unit_ids)
    return EstimatedGroups(weights=exponential_tilting(smooth, moments), rows=None)


def groups_by_sums(
    people: PeopleInputs,
    *,
    probabilities: FloatArray,
    reads_labels: bool,
    ledger: Ledger,
    mu_squared: float,
    unit_ids: ArrayLike | None,
) -> EstimatedGroups:
    """Return weights of the groups of all rows, of which noisy sums alone tell (SF_T).

    Parameters
    ----------
    people : PeopleInputs
    probabilities : ndarray of float64, shape (n, n_classes)
        Of the student without a constraint: public.
    reads_labels : bool
        Whether class labels are public, and sums taken by true class.
    ledger : Ledger
        Pays for the sums.
    mu_squared : float
        What may be spent, greater than 0.
    unit_ids : array-like, shape (n,), optional

    Notes
    -----
    Sums of features over a group are all that a logistic regression of the group on them needs:
    this is one, from noisy sums.
    """
    n, n_groups = people.data.n_private, people.groups.n_groups
    truth = one_hot_classes(people) if reads_labels else np.ones((n, 1))
    features = moment_features(truth, probabilities, None, people.X_encoded, length=LENGTH_ALONE)
    moments = _moments(people, features, ledger, mu_squared, unit_ids)
    even = np.full((n, n_groups), 1.0 / n_groups)
    return EstimatedGroups(weights=exponential_tilting(even, moments, within=1.0), rows=None)


def _moments(
    people: PeopleInputs,
    features: FloatArray,
    ledger: Ledger,
    mu_squared: float,
    unit_ids: ArrayLike | None,
) -> GroupMoments:
    """Release noisy sums of public features over the true groups."""
    return release_group_moments(
        people.groups.codes,
        features,
        n_groups=people.groups.n_groups,
        mu_squared=mu_squared,
        ledger=ledger,
        units=unit_ids,
    )


def moment_features(
    truth: FloatArray,
    probabilities: FloatArray,
    estimated: FloatArray | None,
    X: FloatArray,
    *,
    length: float = LENGTH,
) -> FloatArray:
    """Return what is summed over groups: functions that a constraint's averages are made of.

    By true class: 1, a model's probabilities, and its decision, for a student stays near that model
    and a notion may look at rows of one class; what the votes say of the group, if they do; and the
    row itself, whitened, which tells in what direction the
    groups differ. A row has entries for its own class only, and rows are shortened, so that norms,
    and noise, stay small.
    """
    n, n_classes = truth.shape
    last = slice(1, None)  # the probabilities add up to 1
    said = 2.0 * probabilities[:, last] - 1.0
    winner = probabilities.argmax(axis=1)
    decided = 2.0 * (np.arange(1, n_classes) == winner[:, None]) - 1.0
    of_model = np.concatenate([np.ones((n, 1)), said, decided], axis=1)
    by_class = (truth[:, :, None] * of_model[:, None, :]).reshape(n, -1)
    of_votes = np.empty((n, 0)) if estimated is None else 2.0 * estimated[:, last] - 1.0
    few = by_class.shape[1] + of_votes.shape[1]
    out = np.empty((n, few + X.shape[1]))
    out[:, :few] = np.concatenate([by_class, of_votes], axis=1)
    _shorten(X, length, out[:, few:])
    return out


def _shorten(X: FloatArray, length: float, out: FloatArray) -> None:
    """Write whitened rows, those that are longer than half cut down."""
    Whitening.of(X, damping=DAMPING).rows(X, out=out)
    lengths = np.sqrt(np.einsum("ij,ij->i", out, out))
    most = max(float(np.median(lengths)), 1e-9)
    out *= (length / np.maximum(lengths, most))[:, None]


def one_hot_classes(people: PeopleInputs) -> FloatArray:
    """Return the true classes of all rows, (n, n_classes)."""
    truth: FloatArray = np.eye(people.data.n_classes)[people.data.y_private]
    return truth


def no_classes(people: PeopleInputs) -> FloatArray:
    """Return zeros in their place, where a notion reads none and nobody may."""
    return np.zeros((people.data.n_private, people.data.n_classes))


def _sigma_of_table(ledger: Ledger, mu_squared: float) -> float:
    """Return the noise of one table of two kinds of groups that costs no more."""
    sigma = math.sqrt(2.0 / mu_squared)
    while 2.0 * ledger.noise.gaussian_mu(sigma) ** 2 > mu_squared:
        sigma *= 1.0 + 1e-6
    return sigma

"""Membership inference on drawn rows: how well an attack tells who was in the private table.

The attacker has the drawn rows and one real row at a time, and says how likely it was in the
private table. Rows of it are members; rows of the same population that no fit has seen are not.
What a claim allows any attacker (``evenhand.privacy.trade_off``) stands beside what these found.

The numbers are functions of private rows that no budget pays for, as a local cost is one of votes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.neighbors import NearestNeighbors

from evenhand import _checks, _values
from evenhand._private import Private
from evenhand.datasets import Schema
from evenhand.datasets.columns import Column, TypedTable
from evenhand.fairness.intervals import Estimate
from evenhand.generators.tables.codec import OTHER
from evenhand.generators.tables.utility import Features
from evenhand.generators.utility import auroc, bootstrap, roc
from evenhand.privacy.trade_off import NO_BOUND, TradeOff
from evenhand.typing import BoolArray, FloatArray

if TYPE_CHECKING:
    from evenhand.generators.tables.synthesizer import TableSynthesizer

MOST_ROWS: Final = 10_000
"""Members, others and rows of the reference that are read at most, taken at random."""

MOST_DRAWN: Final = 50_000
"""The same of drawn rows."""

LEAST_ROWS: Final = 100
FALSE_ALARMS: Final = (0.001, 0.01, 0.1)
"""Shares of others who may be accused; of those, where at least ``LEAST_ALARMS`` rows are one."""

LEAST_ALARMS: Final = 10
N_POINTS: Final = 501
_SAME: Final = 1e-6  # distances are not known better than that

ATTACKS: Final = {
    "distance": "The nearer the closest drawn row, the likelier a member",
    "density": "The denser drawn rows lie there than real ones do, by gradient boosting that tells "
    "the two apart, the likelier a member",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class MembershipAttack:
    """What one attack found. For the curator alone: members are private rows."""

    name: str
    """A key of ``ATTACKS``."""
    auc: Estimate
    """Probability that a member looks likelier than another; one half is a coin."""
    found: tuple[tuple[float, Estimate], ...]
    """Share of the members who are found where this share of others is accused. The advantage is
    their difference.
    """
    accused: FloatArray
    curve: FloatArray
    """``accused`` and ``curve``: the whole ROC curve: shares of others and of members. Shape
    (N_POINTS,).
    """


@dataclass(frozen=True, kw_only=True, eq=False)
class Membership:
    """What attacks found, beside what the claim allows. For the curator alone."""

    attacks: tuple[MembershipAttack, ...]
    n_drawn: int
    n_members: int
    n_others: int
    n_reference: int
    """``n_drawn``, ``n_members``, ``n_others`` and ``n_reference``: rows that the attacks read:
    drawn, private, other real ones, and real ones to compare with.
    """
    allowed: TradeOff
    """By the generator's claim, in the mean over its noise."""

    @property
    def words(self) -> tuple[tuple[str, str], ...]:
        """Each attack by its name, and what it goes by."""
        return tuple((f"By {attack.name}", f"{ATTACKS[attack.name]}.") for attack in self.attacks)

    @property
    def above(self) -> tuple[str, ...]:
        """Attacks of which a number is above what is allowed, with its whole interval."""
        return tuple(
            attack.name
            for attack in self.attacks
            if attack.auc.low > self.allowed.auc
            or any(own.low > self.allowed.found(share) for share, own in attack.found)
        )


class PrivateMembership(Private):
    """What attacks found, before anybody has looked; prints as ``<private>``."""

    __slots__ = ("__found",)

    __found: Membership

    _way_out: ClassVar[str] = (
        "What an attack finds is computed from private rows and is itself private. Report the "
        "claim, which bounds it; inside the curator's own walls, call reveal_to_curator()."
    )

    def __init__(self, found: Membership) -> None:
        object.__setattr__(self, "_PrivateMembership__found", found)

    def reveal_to_curator(self) -> Membership:
        """Return what was found. It is private: do not publish."""
        return self.__found


def attack_membership(
    generator: TableSynthesizer,
    drawn: pd.DataFrame,
    private: pd.DataFrame,
    test: pd.DataFrame,
    *,
    random_state: int = 0,
) -> PrivateMembership:
    """Attack drawn rows: try to tell private rows from others like them.

    Parameters
    ----------
    generator : TableSynthesizer
        Fitted to ``private``; its schema and its claim are read.
    drawn : DataFrame
        Rows that ``generator`` drew, all that an attacker is to have.
    private : DataFrame
        The rows of the fit; of units the first ``per_unit``, which the fit has read.
    test : DataFrame
        Real rows of the same population that no fit has seen, at least 200. Half of them are
        attacked as others; the attacker has the other half to compare with.
    random_state : int
        Seeds which rows are taken, and the bootstrap.

    Returns
    -------
    PrivateMembership
        Prints as ``<private>``; ``reveal_to_curator()`` is its door.

    Raises
    ------
    ValueError
        For fewer than 100 private rows or 200 test rows, or a column that is not there.

    Privacy
    -------
    Reads private rows without noise: what it returns is covered by no claim and must not be
    published, unless the rows are public.

    Notes
    -----
    Distances are Euclidean over numbers in units of their standard deviation among drawn rows and a
    number for each category. The density of drawn rows is divided by that of real ones, as DOMIAS
    does (van Breugel et al. 2023); the odds of a classifier of the two are that ratio. It finds
    what a model has overfitted, and the distance finds copies. Other attacks may find more.

    If members and others are drawn alike, what the claim allows bounds the *mean* over fits: a
    single fit has one draw of noise for all members, and intervals are over rows alone. For
    "replace one" the bound is exact (exchange a member with another). For "add or remove one" it is
    that of others attacked on a fit of one row fewer.

    References
    ----------
    Shokri et al. 2017; Carlini et al. 2022 (why few false alarms); van Breugel et al. 2023.

    Examples
    --------
    >>> from evenhand.generators import NonPrivateSynthesizer
    >>> from evenhand.testing.generators import ROLES, SCHEMA, table
    >>> rows = table(1200)
    >>> plain = NonPrivateSynthesizer().fit(rows[:800], schema=SCHEMA, **ROLES)
    >>> attack_membership(plain, plain.sample(500), rows[:800], rows[800:])
    <private>
    """
    schema: Schema = generator.codec_.schema
    names = list(schema.as_measured(drawn).columns)
    for where, rows in (("private table", private), ("test table", test)):
        TypedTable.of(rows, where).require(names, "which the drawn rows have")
    require_rows(private, test)
    rng = np.random.default_rng(random_state)
    drawn, private, test = (schema.as_measured(rows)[names] for rows in (drawn, private, test))
    private, test = (_as_learnt(rows, schema) for rows in (private, test))
    drawn, members = _some(drawn, MOST_DRAWN, rng), _some(private, MOST_ROWS, rng)
    test = _some(test, 2 * MOST_ROWS, rng)
    others, reference = test[: len(test) // 2], test[len(test) // 2 :]
    features = Features.of(drawn, schema, categorical=generator.conditions_.names, away=set())
    encoder = features.encoder.fit(features.plain(drawn))
    made, real, attacked = (
        encoder.transform(features.plain(rows))
        for rows in (drawn, reference, pd.concat([members, others]))
    )
    truth = np.arange(len(attacked)) < len(members)
    scores = {
        "distance": -_closest(made, attacked),
        "density": _denser(made, real, attacked, random_state),
    }
    fitted = generator.fitted_
    return PrivateMembership(
        Membership(
            attacks=tuple(
                _judged(name, truth, score, len(others), random_state)
                for name, score in scores.items()
            ),
            n_drawn=len(drawn),
            n_members=len(members),
            n_others=len(others),
            n_reference=len(reference),
            allowed=TradeOff.of(fitted.guarantee, fitted.ledger)
            if fitted.guarantee.holds
            else NO_BOUND,
        )
    )


def require_rows(private: pd.DataFrame, test: pd.DataFrame) -> None:
    """Raise ValueError where an attack has too few rows to say anything."""
    _checks.at_least("the number of test rows", len(test), 2 * LEAST_ROWS)
    if len(private) < LEAST_ROWS:
        raise ValueError(
            f"An attack needs at least {LEAST_ROWS} private rows to say anything, got "
            f"{_values.count(len(private))}."
        )


def _as_learnt(rows: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """Return real rows as far as drawn ones can be like them, which any attacker would do.

    Else a column of which categories were not named tells drawn rows from all real ones, members or
    not, and nothing more is looked for.
    """
    seen: dict[str, Any] = {}
    for known in schema.columns:
        if known.name not in rows:
            continue
        column = Column(rows[known.name])
        if known.bounds is not None:
            seen[known.name] = column.numbers.clip(*known.bounds)
        elif OTHER in known.categories:
            named = {*known.categories}
            texts = np.array([*(t if t in named else OTHER for t in column.texts), None], object)
            seen[known.name] = texts[column.codes]
    return rows.assign(**seen)


def _some(rows: pd.DataFrame, most: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return rows in a random order, ``most`` of them at most."""
    return rows.iloc[rng.permutation(len(rows))[:most]]


def _closest(rows: FloatArray, attacked: FloatArray) -> FloatArray:
    """Distance of each attacked row to the closest of ``rows``; copies are at 0."""
    distances, _ = NearestNeighbors(n_neighbors=1).fit(rows).kneighbors(attacked)
    near: FloatArray = np.round(distances[:, 0] / _SAME) * _SAME
    return near


def _denser(
    made: FloatArray, real: FloatArray, attacked: FloatArray, random_state: int
) -> FloatArray:
    """Logarithm of the ratio of two densities at each attacked row, up to a constant."""
    # Overfitting is what it is to find.
    classifier = HistGradientBoostingClassifier(early_stopping=False, random_state=random_state)
    classifier.fit(np.vstack([made, real]), np.arange(len(made) + len(real)) < len(made))
    ratio: FloatArray = classifier.decision_function(attacked)
    return ratio


def _judged(
    name: str, truth: BoolArray, scores: FloatArray, n_others: int, seed: int
) -> MembershipAttack:
    """Return area, hits at few false alarms and the whole curve of one attack."""
    curve = roc(truth, scores)
    n, rng = len(truth), np.random.default_rng(seed)

    def found(share: float, weights: FloatArray) -> float:
        return float(np.interp(share, *curve(weights)))

    estimate: Callable[..., Estimate] = partial(bootstrap, n=n, rng=rng)
    accused = np.linspace(0.0, 1.0, N_POINTS)
    return MembershipAttack(
        name=name,
        auc=estimate(
            auroc(truth, scores),
            name="membership_auc",
            definition="probability that a member looks likelier than another; a coin has .5",
        ),
        found=tuple(
            (
                share,
                estimate(
                    partial(found, share),
                    name="members_found",
                    definition=f"share of members found at {share:.1%} of others accused",
                ),
            )
            for share in FALSE_ALARMS
            if share * n_others >= LEAST_ALARMS
        ),
        accused=accused,
        curve=np.interp(accused, *curve(np.ones(n))),
    )

"""How arguments of ``fit`` are checked and parted into private and public, before any learning."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evenhand import _checks, _values
from evenhand._frames import as_pandas
from evenhand._units import ids_of
from evenhand.datasets.features.extraction import extractor_of
from evenhand.datasets.features.extractor import ExtractorRecord
from evenhand.estimators.callers import check_callers
from evenhand.estimators.drawn_rows import RowsToDraw
from evenhand.estimators.given_rows import (
    checked_features,
    coded_labels,
    frame_or_array,
    take,
)
from evenhand.estimators.inputs import FitArguments, FitInputs
from evenhand.estimators.synthetic_rows import SyntheticRows
from evenhand.fairness.grouping import published_groups, refuse_many_values
from evenhand.fairness.groups import GroupCodes, encode_groups
from evenhand.owners.collection import OwnerVotes, VotesRefused, classes_as
from evenhand.owners.digests import PublicRows
from evenhand.owners.noisy_sums import NoisySums
from evenhand.privacy.noise import Noise
from evenhand.privacy.subsampled import secret_coins
from evenhand.teachers.partition import chosen_units
from evenhand.typing import Array, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class _Records:
    """Rows of the private table, with what was given of each."""

    X: Any
    codes: IntArray
    units: Array | None
    sensitive: Any

    @classmethod
    def read(cls, estimator: Any, given: FitArguments) -> tuple[_Records, Array]:
        """Check what was given of each row; also return the classes."""
        X = checked_features(estimator, given.X, reset=True)
        codes, classes = coded_labels(estimator, given.y)
        n = _checks.same_length(X=X, y=codes)
        if n < 2:
            raise ValueError(f"At least 2 private rows are needed, got n_samples={n} (1 sample?).")
        units, sensitive = given.unit_ids, given.sensitive_features
        if units is not None:
            units = ids_of(as_pandas(units))
            _checks.same_length(X=X, unit_ids=units)
        if sensitive is not None:
            sensitive = as_pandas(sensitive)
            _checks.same_length(X=X, sensitive_features=sensitive)
        return cls(X=X, codes=codes, units=units, sensitive=sensitive), classes

    def take(self, rows: IntArray) -> _Records:
        """Return some of the rows."""
        given = {name: value for name, value in vars(self).items() if value is not None}
        some = {name: take(frame_or_array(value), rows) for name, value in given.items()}
        return replace(self, **some)


def read_fit_inputs(
    estimator: Any,
    given: FitArguments,
    *,
    rng: np.random.Generator,
    public_fraction: float | None = None,
    synthetic: SyntheticRows | None = None,
    needs_groups: bool = False,
    n_is_public: bool = True,
    coins: Noise | None = None,
) -> FitInputs:
    """Check everything that ``fit`` was given and part it; nothing is fitted here.

    With ``synthetic`` and no ``X_public`` there are no public rows yet: ``FitInputs.with_rows``
    adds drawn ones.
    ``n_is_public`` says that neighbors replace a record; without it, and with ``unit_ids``, they
    add or remove one. Then ``coins``, the noise of the fit, decide which rows are set aside; None,
    for a fit that protects nobody, leaves it to ``rng``.

    Raises
    ------
    ValueError
        For rows that do not match, missing labels, one class only, one group only, groups or
        public rows that are not there; each message names the way out.
    """
    if hasattr(estimator, "noise"):  # it has a claim that a caller can break
        check_callers(
            type(estimator).__name__,
            features_are_private=getattr(estimator, "_features_are_private", True),
        )
    estimator.extractor_ = _made_by(given)
    records, classes = _Records.read(estimator, given)
    n, of_public, set_aside = len(records.codes), given.sensitive_features_public, 0
    estimator.rows_set_aside_ = None
    private = np.arange(n)
    drawn_alone = synthetic is not None and given.X_public is None
    if synthetic is not None:
        _refuse_beside(estimator, given, public_fraction, synthetic)
    else:
        _refuse_two_sources(given, public_fraction, records.sensitive is not None)
    if drawn_alone:
        X_public = take(records.X, np.zeros(0, dtype=np.int64))
    elif given.X_public is not None:
        X_public = checked_features(estimator, given.X_public, reset=False, name="X_public")
    else:
        public, private = _set_aside(
            estimator, n, public_fraction, records.units, n_is_public, coins, rng
        )
        aside, records = records.take(public), records.take(private)
        estimator.rows_set_aside_ = public
        X_public, of_public, set_aside = aside.X, aside.sensitive, len(public)
    known = None
    if drawn_alone:
        known = _groups_to_draw(records.sensitive) if needs_groups else None
        groups = None if known is None else encode_groups([], names=known.names)
    else:
        of_private = records.sensitive is not None
        groups = groups_of_public(
            X_public, of_public, needs_groups, estimator.rows_set_aside_, private_given=of_private
        )
    to_draw = None
    if synthetic is not None:
        to_draw = RowsToDraw.of(
            synthetic,
            records.X,
            records.codes,
            classes,
            known,
            records.units,
            estimator.schema,
            X_public=None if drawn_alone else X_public,
        )
    _require_two_classes(records.codes, classes)
    return FitInputs(
        X_private=records.X,
        y_private=records.codes,
        X_public=X_public,
        classes=classes,
        groups_public=groups,
        units=records.units,
        set_aside=set_aside,
        private_rows=private,
        sensitive_private=records.sensitive,
        extractor=estimator.extractor_,
        to_draw=to_draw,
    )


def _require_two_classes(codes: IntArray, classes: Array) -> None:
    if len(np.unique(codes)) < 2:
        raise ValueError(
            f"y holds one class only: {_values.quoted(classes[codes[0]])}; a classifier needs at "
            f"least two."
        )


def read_vote_inputs(
    estimator: Any,
    votes: OwnerVotes | NoisySums,
    X_public: Any,
    sensitive_features_public: Any,
    *,
    needs_groups: bool,
) -> FitInputs:
    """Check the public rows that owners voted on; there are no private rows here.

    Raises
    ------
    VotesRefused
        If the votes are about other rows.
    ValueError
        For groups that are not there, and classes that are not those of the votes.
    """
    check_callers(type(estimator).__name__, features_are_private=True)
    estimator.extractor_ = extractor_of(X_public)
    rows = checked_features(estimator, X_public, reset=True, name="X_public")
    if differences := votes.public.differences(PublicRows.of(rows)):
        raise VotesRefused(
            f"The votes are about other public rows than X_public: {differences}. Nothing was "
            f"spent. Pass the rows that the owners voted on, in their order."
        )
    groups = sensitive_features_public
    if groups is not None:
        groups = as_pandas(groups)
    nobody = np.zeros(0, dtype=np.int64)
    return FitInputs(
        X_private=None,
        y_private=nobody,
        X_public=rows,
        classes=classes_as(votes.classes, estimator.classes),
        groups_public=groups_of_public(rows, groups, needs_groups),
        units=None,
        set_aside=0,
        private_rows=nobody,
        extractor=estimator.extractor_,
        cast=votes,
    )


def _made_by(given: FitArguments) -> ExtractorRecord | None:
    """Return the extractor that made the rows, which must be one and the same."""
    found = extractor_of(given.X)
    for name in ("X_public", "X_calibration"):
        rows = getattr(given, name)
        if rows is not None and (other := extractor_of(rows)) != found:
            makers = ["no extractor" if one is None else str(one) for one in (found, other)]
            raise ValueError(
                f"X was made by {makers[0]}, and {name} by {makers[1]}: their columns mean "
                f"different things. Call extract(pictures, extractor) for both with the same "
                f"extractor."
            )
    return found


def _set_aside(
    estimator: Any,
    n: int,
    fraction: float | None,
    units: Array | None,
    n_is_public: bool,
    coins: Noise | None,
    rng: np.random.Generator,
) -> tuple[IntArray, IntArray]:
    if fraction is None:
        raise ValueError(
            f"{type(estimator).__name__} asks its teachers about public rows, and X_public is "
            f"missing. Pass X_public= (with sensitive_features_public=, the groups of its rows), "
            f"or public='synthetic', which pays for rows to ask about with a share of the budget. "
            f"Or set public_fraction=0.2 to set rows of X aside: their labels are not read, but "
            f"their features and groups are given away, as the guarantee will say: it does not "
            f"cover them."
        )
    _checks.open_unit("public_fraction", fraction)
    # Adding or removing one record or unit must not move others between public and private, as a
    # share counted off a shuffled list would: a keyed hash per unit, or a coin per row. The coins
    # must be unknown: one that a public seed gives to a *position* moves every row after one that
    # is taken away. A count is safe where neighbors agree on the number of rows (replace one).
    if units is not None:
        mask = chosen_units(units, fraction, rng.bytes(32))
    elif n_is_public:
        mask = np.zeros(n, dtype=np.bool_)
        mask[rng.permutation(n)[: max(1, round(fraction * n))]] = True
    elif coins is not None and coins.protects:
        mask = secret_coins(coins, n, fraction)
    else:
        mask = rng.random(n) < fraction
    if mask.all() or not mask.any():
        raise ValueError(
            f"public_fraction={fraction} sets aside {'all' if mask.any() else 'none'} of the rows: "
            f"both public and private rows are needed. Pass X_public=, or more rows."
        )
    return np.flatnonzero(mask), np.flatnonzero(~mask)


def _refuse_two_sources(given: FitArguments, fraction: float | None, has_groups: bool) -> None:
    """Refuse public rows of two sources, and groups of public rows that are not given."""
    if given.X_public is not None and fraction is not None:
        raise ValueError(
            f"X_public= and public_fraction={fraction!r} were both given. Leave public_fraction "
            f"out, which sets rows of X aside and gives them away; or X_public, where there are no "
            f"public rows."
        )
    if given.X_public is None and given.sensitive_features_public is not None and not has_groups:
        raise ValueError(
            "sensitive_features_public= was given without X_public=. Pass X_public=; or, where "
            "public_fraction sets rows of X aside, the groups of all rows of X: did you mean "
            "sensitive_features=?"
        )


def _refuse_beside(
    estimator: Any, given: FitArguments, fraction: float | None, settings: SyntheticRows
) -> None:
    """Refuse what makes no sense beside rows that are to be drawn, all of it at once."""
    name, public = type(estimator).__name__, f"public={estimator.public!r}"
    wrong = []
    if fraction is not None:
        wrong.append(
            "public_fraction= gives rows of X away, which drawn rows are to spare; pass X_public=, "
            "or leave it out"
        )
    if given.X_public is None and given.sensitive_features_public is not None:
        wrong.append(
            "sensitive_features_public= are the groups of X_public=, which is not given; the "
            "groups of X are sensitive_features="
        )
    if given.X_public is not None:
        wrong += [f"{said}; leave it out" for said in settings.useless_beside()]
        if why := estimator.no_labels_beside:
            wrong.append(f"beside X_public= the student learns chances of labels, and {why}")
    if wrong:
        raise ValueError(f"{name} has {public}: {'; '.join(wrong)}.")


def _groups_to_draw(of_private: Any) -> GroupCodes:
    """Return the groups of the private rows, between which rows are drawn apart."""
    groups = None if of_private is None else published_groups(of_private)
    _require_groups(groups, "sensitive_features", private_given=False, rows="private")
    assert groups is not None
    return groups


def groups_of_public(
    X_public: Any,
    given: Any,
    needed: bool,
    set_aside: IntArray | None = None,
    *,
    private_given: bool = False,
) -> GroupCodes | None:
    """Return the groups of the public rows, where there are any; ``set_aside`` are their places."""
    groups = None
    name = "sensitive_features_public" if set_aside is None else "sensitive_features"
    if given is not None:
        groups = encode_groups(given, argument=name, at=set_aside)
        _checks.same_length(X_public=X_public, sensitive_features_public=groups)
        if needed:
            refuse_many_values(given)
    if needed:
        _require_groups(groups, name, private_given=private_given)
    return groups


def _require_groups(
    groups: GroupCodes | None, name: str, *, private_given: bool, rows: str = "public"
) -> None:
    if groups is None:
        mistaken = (
            " sensitive_features= was given, which is the groups of the private rows: did you mean "
            "sensitive_features_public=?"
            if private_given
            else ""
        )
        raise ValueError(
            f"The margin is kept between groups, so it needs the group of every {rows} row, and "
            f"{name} is missing.{mistaken} Pass it, or use PATEClassifier for a run without a "
            f"fairness margin."
        )
    if groups.n_groups < 2:
        raise ValueError(
            f"The {rows} rows hold one group only, {_values.quoted(groups.names[0])}: there is "
            f"nothing to compare it with. Check the sensitive column, or use PATEClassifier."
        )

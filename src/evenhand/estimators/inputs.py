"""What ``fit`` was given: checked, and parted into private and public before anything is learnt."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np
import pandas as pd
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from evenhand import _checks, _values
from evenhand._frames import as_pandas, without_nulls
from evenhand._units import ids_of
from evenhand.datasets.cells import CellTable
from evenhand.datasets.columns import TypedTable
from evenhand.datasets.encoder import PublicEncoder
from evenhand.datasets.features.extraction import extractor_of
from evenhand.datasets.features.extractor import ExtractorRecord
from evenhand.datasets.images.files import PictureFiles
from evenhand.datasets.parquet import ParquetRows
from evenhand.datasets.pixels import PixelEncoder
from evenhand.estimators.callers import check_callers
from evenhand.estimators.fitted import columns_of
from evenhand.estimators.spec import CALIBRATION
from evenhand.estimators.synthetic_rows import DrawnRows, RowsToDraw, SyntheticRows
from evenhand.fairness.grouping import refuse_many_values
from evenhand.fairness.groups import GroupCodes, encode_groups
from evenhand.owners.collection import OwnerVotes, VotesRefused, classes_as
from evenhand.owners.digests import PublicRows
from evenhand.owners.noisy_sums import NoisySums
from evenhand.privacy import Guarantee, Ledger
from evenhand.privacy.noise import Noise
from evenhand.privacy.subsampled import secret_coins
from evenhand.teachers.partition import chosen_units
from evenhand.typing import Array, ArrayLike, IntArray

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called as ``progress(stage, done, total)``."""

PICTURES: Final = 4
"""Sides of an array of pictures: (n, channels, height, width)."""

NOT_TAKEN: Final[Mapping[str, str]] = {
    "sensitive_features": "it keeps no margin and reads no groups. Leave it out, or use "
    "FairSharesClassifier or FairPATEClassifier for a margin between groups",
    "X_public": "it takes the features of all rows as public, so they scale themselves. Leave it "
    "out",
    "sensitive_features_public": "it reads no groups of public rows. Leave it out, or use "
    "FairSharesClassifier or FairPATEClassifier, which keep their margin on public rows",
    **dict.fromkeys(
        CALIBRATION,
        "it reads no margin on calibration rows. Leave them out, or use FairSharesClassifier or "
        "FairPATEClassifier with a margin about true classes",
    ),
    "unit_ids": "it protects single rows, and no units that have several. Leave it out, with one "
    "row for each unit, or use PATEClassifier, FairSharesClassifier or FairPATEClassifier",
    "ledger": "it promises nothing, so there is nothing to charge. Leave it out",
    "progress": "it trains in one step. Leave it out",
}
"""Arguments of ``fit`` that not every method takes: why not, and what to do."""

_RANGES: Final = "evenhand.fairness.Grouping.of_public(public_columns, bins={{{name!r}: 4}})"


@dataclass(frozen=True, kw_only=True, eq=False)
class FitArguments:
    """The arguments of ``fit``, as given; ``ClassifierWithClaim.fit`` says what each of them is.

    With ``votes`` they are those of ``from_votes``, and there are no private rows.
    """

    X: Any
    y: ArrayLike
    sensitive_features: Any = None
    X_public: Any = None
    sensitive_features_public: Any = None
    X_calibration: Any = None
    y_calibration: ArrayLike | None = None
    sensitive_features_calibration: Any = None
    unit_ids: ArrayLike | None = None
    ledger: Ledger | None = None
    progress: Progress | None = None
    votes: OwnerVotes | NoisySums | None = None

    def stage(self, name: str) -> Callable[[int, int], None] | None:
        """Return ``progress`` of one stage: it is called with what is done, and of how much."""
        return stage(self.progress, name)

    def require(self, taken: tuple[str, ...], by: str) -> None:
        """Refuse arguments that a method does not take.

        Raises
        ------
        TypeError
            With the reason, and the way out.
        """
        for name, why in NOT_TAKEN.items():
            if getattr(self, name) is not None and name not in taken:
                raise TypeError(f"{by} does not take {name}=: {why}.")


@dataclass(frozen=True, kw_only=True, eq=False)
class Stream:
    """Private rows in files, and what their columns are for.

    Parameters
    ----------
    rows : ParquetRows
    label : str
    unit : str or None
        Column that says whose record a row is; None where each row is a record of its own.
    columns : tuple of str
        The features, which are those of the public rows.
    """

    rows: ParquetRows
    label: str
    unit: str | None
    columns: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class FitInputs:
    """The private rows with their labels, and the public rows without.

    Parameters
    ----------
    X_private, X_public : DataFrame or ndarray, shapes (n_private, n_columns), (n_public, n_columns)
    y_private : ndarray of int64, shape (n_private,)
        Class codes.
    classes : ndarray, shape (n_classes,)
        What the codes stand for. Public.
    groups_public : GroupCodes or None
        Groups of the public rows.
    units : ndarray or None, shape (n_private,)
        Unit ids of the private rows, as ``ids_of`` names them: 17 and "17" are one.
    set_aside : int
        Public rows that were taken from ``X`` itself, whose features the guarantee does not cover.
    private_rows : ndarray of int64, shape (n_private,)
        Which rows of ``X`` are private.
    sensitive_private : array-like, DataFrame or None
        Sensitive features of the private rows, as given. Private; read by teachers alone.
    extractor : ExtractorRecord or None
        The extractor that made the rows of pictures; None for other rows.
    cast : OwnerVotes, NoisySums or None
        Votes of teachers elsewhere; there are no private rows then.
    to_draw : RowsToDraw or None
        How rows are to be made of noisy counts, to ask about or beside the public ones; None where
        none are.
    drawn : DrawnRows or None
        Those rows, once they are made.
    stream : Stream or None
        Private rows that are read in batches; none is held here then.
    """

    X_private: Any
    y_private: IntArray
    X_public: Any
    classes: Array
    groups_public: GroupCodes | None
    units: Array | None
    set_aside: int
    private_rows: IntArray
    sensitive_private: Any = None
    extractor: ExtractorRecord | None = None
    cast: OwnerVotes | NoisySums | None = None
    to_draw: RowsToDraw | None = None
    drawn: DrawnRows | None = None
    stream: Stream | None = None

    def with_rows(self, drawn: DrawnRows) -> FitInputs:
        """Return the same with drawn rows, which are asked about where none are public."""
        if drawn.X is None:
            return replace(self, drawn=drawn)
        return replace(self, X_public=drawn.X, groups_public=drawn.groups, drawn=drawn)

    @property
    def made_by(self) -> tuple[str, ...]:
        """The extractor as a claim says it; empty for rows that none made."""
        return () if self.extractor is None else (str(self.extractor),)

    def known(self, *others: str) -> tuple[str, ...]:
        """Return what a claim takes as known: of public rows the features alone."""
        rows = (f"the features of the {self.n_public} public rows",) if self.n_public else ()
        return (*rows, *self.made_by, "the names of columns and classes", *others, "all settings")

    def not_covered(self, *others: str) -> tuple[str, ...]:
        """Return what a claim does not cover: of rows that were set aside, the features alone."""
        aside = f"the features of {self.set_aside} rows of the table, set aside as public"
        return (
            *((aside,) if self.set_aside else ()),
            *others,
            "a choice of settings or of a model made by looking at private data",
            "measurements on private or test rows",
        )

    @property
    def groups_private(self) -> GroupCodes:
        """Groups of the private rows by the names of the public ones, for teachers that read them.

        Raises
        ------
        ValueError
            If they are missing, or name a group that no public row has.
        """
        if self.sensitive_private is None:
            raise ValueError(
                "These teachers read the group of every private row, and sensitive_features is "
                "missing. Pass it to fit, or choose teachers or a point that read no groups."
            )
        return encode_groups(self.sensitive_private, names=self.required_groups.names)

    @property
    def required_groups(self) -> GroupCodes:
        """Groups of the public rows, where ``read_fit_inputs`` required them."""
        if self.groups_public is None:
            raise ValueError("The groups of the public rows are missing.")
        return self.groups_public

    @property
    def n_private(self) -> int:
        """Number of private rows."""
        return len(self.y_private) if self.stream is None else len(self.stream.rows)

    @property
    def by_unit(self) -> bool:
        """Whether rows name the unit whose they are: how many there are is private then."""
        return self.units is not None or (self.stream is not None and self.stream.unit is not None)

    @property
    def n_units(self) -> int:
        """Number of units that hold the private rows; each row is one where no ids were given.

        Of a stream the number of rows, which is not smaller: units are not counted there.
        """
        return self.n_private if self.units is None else len(np.unique(self.units))

    @property
    def n_public(self) -> int:
        """Number of rows to ask about, those that are still to be drawn included."""
        if self.to_draw is None or not self.to_draw.asked:
            return len(self.X_public)
        return self.to_draw.settings.n_rows

    @property
    def asks_drawn_rows(self) -> bool:
        """Whether the rows to ask about are drawn from noisy counts."""
        return self.to_draw is not None and self.to_draw.asked

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)


def without_groups_of(claim: Guarantee, aside: IntArray | None, n: int, labels: bool) -> Guarantee:
    """Return a claim that does not cover the groups of ``n`` rows, if they are those set aside.

    As many rows as ``public_fraction`` set aside are taken to be these; ``labels`` says that their
    labels are given away with their groups.
    """
    if aside is None or n != len(aside):
        return claim
    what = "groups and labels" if labels else "groups"
    said = f"the {what} of the {n} rows that were set aside as public"
    known = said, f"the features and groups of {n} rows of the table, set aside as public"
    if not labels and any(line in claim.not_covered for line in known):
        return claim
    return replace(claim, not_covered=(said, *claim.not_covered))


def calibration_given(given: Mapping[str, Any]) -> bool:
    """Return whether there are calibration rows.

    Raises
    ------
    ValueError
        If not all of them is given.
    """
    absent = [name for name in CALIBRATION if given[name] is None]
    if 0 < len(absent) < len(CALIBRATION):
        raise ValueError(
            f"Calibration rows need features, labels and groups, and {' and '.join(absent)} is "
            f"missing. Pass all three, or none."
        )
    return not absent


def stage(progress: Progress | None, name: str) -> Callable[[int, int], None] | None:
    """Return ``progress`` of one stage, where there is any."""
    return None if progress is None else lambda done, total: progress(name, done, total)


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
            units = np.asarray(as_pandas(units), dtype=object)
            _checks.same_length(X=X, unit_ids=units)
            units = ids_of(units)
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
    if drawn_alone:
        X_public = take(records.X, np.zeros(0, dtype=np.int64))
    elif given.X_public is not None:
        X_public = checked_features(estimator, given.X_public, reset=False, name="X_public")
    else:
        if records.sensitive is None and of_public is not None:
            raise ValueError(
                "sensitive_features_public= was given without X_public=. Pass X_public=; or, where "
                "public_fraction sets rows of X aside, the groups of all rows of X: did you mean "
                "sensitive_features=?"
            )
        public, private = _set_aside(
            estimator, n, public_fraction, records.units, n_is_public, coins, rng
        )
        aside, records = records.take(public), records.take(private)
        estimator.rows_set_aside_ = public
        X_public, of_public, set_aside = aside.X, aside.sensitive, len(public)
    known = None
    if drawn_alone:
        known = _groups_to_draw(records.sensitive, len(records.codes)) if needs_groups else None
        groups = None if known is None else encode_groups([], names=known.names)
    else:
        of_private = records.sensitive is not None
        groups = groups_of_public(
            X_public, of_public, needs_groups, set_aside, private_given=of_private
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


def encoded(X_public: Any, schema: Any) -> tuple[PublicEncoder | PixelEncoder, Any]:
    """Return what turns rows into numbers, learned from public rows alone, and these rows.

    Pictures stay what they are: networks read them.
    """
    if not isinstance(X_public, np.ndarray) or X_public.ndim == 2:
        public = TypedTable.of(X_public, "public table")
        encoder = PublicEncoder(schema).fit(public)
        return encoder, encoder.transform(public)
    if schema is not None:
        raise ValueError("Pictures have no columns, and schema= describes columns: leave it.")
    return PixelEncoder(X_public.shape[1:], str(X_public.dtype)), X_public


def checked_features(estimator: Any, X: Any, *, reset: bool, name: str = "X") -> Any:
    """Return ``X`` as a pandas DataFrame, or as a 2-D float array, where NaN is "missing".

    An estimator that reads pictures gets them as they are, (n, channels, height, width); those in
    files are decoded. A ``CellTable`` is what it is.

    Raises
    ------
    ValueError
        Also for pictures that the estimator does not read, with what it reads of them.
    """
    if isinstance(X, ParquetRows):
        raise TypeError(
            f"{name} is ParquetRows, which stream to the teachers of FairSharesClassifier, "
            f"FairPATEClassifier and PATEClassifier; {type(estimator).__name__} needs {name} in "
            f"memory: pandas.read_parquet(...)."
        )
    if isinstance(X, CellTable) and not reset:
        return X
    X = as_pandas(X)
    if may_be_pictures(X):
        if not getattr(estimator, "_reads_pictures", False):
            raise ValueError(
                f"{name} holds pictures, and {type(estimator).__name__} reads rows of numbers. "
                f"Pass their features, made by a public extractor: extract(pictures, "
                f"EfficientNetLite0.load()) of evenhand.datasets.features."
            )
        if isinstance(X, PictureFiles):
            X = np.asarray(X.channels_in_front())
        pictures = _checks.rows(name, X)
        validate_data(estimator, pictures, reset=reset, skip_check_array=True)
        return pictures
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        if not len(X):
            raise ValueError(f"{name} has 0 rows: found array with 0 sample(s).")
        try:
            validate_data(estimator, X, reset=reset, skip_check_array=True)
        except ValueError as error:
            raise ValueError(f"{name}: {error}{_nearest(estimator, X)}") from None
        return X
    try:
        array = check_array(
            X, dtype=np.float64, ensure_all_finite="allow-nan", input_name=name, estimator=estimator
        )
    except ValueError as error:
        if "could not convert" not in str(error):
            raise
        raise ValueError(
            f"{name} must hold numbers: could not convert string to float. Pass a DataFrame, whose "
            f"columns may hold text."
        ) from _values.cause(error)
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    return array


def may_be_pictures(X: Any) -> bool:
    """Whether rows look like pictures, each (channels, height, width): files, array or list."""
    if isinstance(X, np.ndarray | PictureFiles):
        return isinstance(X, PictureFiles) or X.ndim == PICTURES
    # A list of pictures, of different sizes perhaps: those have no shape together.
    return isinstance(X, list | tuple) and bool(len(X)) and np.ndim(X[0]) == 3


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


def take(rows: Any, index: IntArray) -> Any:
    """Return the rows ``index`` of a DataFrame, Series or array."""
    return rows.iloc[index] if hasattr(rows, "iloc") else rows[index]


def coded_labels(estimator: Any, y: ArrayLike) -> tuple[IntArray, Array]:
    """Return the codes of the labels, and the classes that these stand for."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None."
        )
    values = column_or_1d(without_nulls(as_pandas(y)), warn=True)
    missing = np.flatnonzero(pd.isna(values))
    if missing.size:
        raise ValueError(
            f"y has no label in {_values.rows(missing)}: input y contains NaN. Leave these rows "
            f"out: a teacher cannot learn from them."
        )
    check_classification_targets(values)
    labels = np.asarray(values)
    found = np.unique(labels)
    known = found if estimator.classes is None else np.unique(np.asarray(estimator.classes))
    strange = [value for value in found if value not in known]
    if strange:
        raise ValueError(
            f"y holds {_values.quoted(strange[0])}, which is not among classes={known.tolist()}."
            f"{_values.if_shown(_checks.did_you_mean(strange[0], known.tolist()))}"
        )
    return np.searchsorted(known, labels).astype(np.int64), known


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
            wrong.append(f"beside X_public= drawn rows have labels for the student, and {why}")
    if wrong:
        raise ValueError(f"{name} has {public}: {'; '.join(wrong)}.")


def _groups_to_draw(of_private: Any, n: int) -> GroupCodes:
    """Return the groups of the private rows, between which rows are drawn apart."""
    groups = None
    if of_private is not None:
        refuse_many_values(of_private, way_out=_RANGES)
        groups = encode_groups(of_private)
    _require_groups(groups, n, private_given=False, rows="private")
    assert groups is not None
    return groups


def groups_of_public(
    X_public: Any, given: Any, needed: bool, set_aside: int = 0, *, private_given: bool = False
) -> GroupCodes | None:
    """Return the groups of the public rows, where there are any."""
    groups = None
    if given is not None:
        groups = encode_groups(given)
        _checks.same_length(X_public=X_public, sensitive_features_public=groups)
        if needed:
            refuse_many_values(given, way_out=_RANGES)
    if needed:
        _require_groups(groups, set_aside, private_given=private_given)
    return groups


def _require_groups(
    groups: GroupCodes | None, set_aside: int, *, private_given: bool, rows: str = "public"
) -> None:
    if groups is None:
        name = "sensitive_features" if set_aside else "sensitive_features_public"
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
            f"The {rows} rows hold one group only ({_values.quoted(groups.names[0])}): there is "
            f"nothing to compare it with. Check the sensitive column, or use PATEClassifier."
        )


def frame_or_array(values: Any) -> Any:
    """Return values whose rows ``take`` can read."""
    values = as_pandas(values)
    return values if hasattr(values, "iloc") else np.asarray(values)


def _nearest(estimator: Any, X: Any) -> str:
    known = columns_of(estimator)
    given = [str(c) for c in X.columns]
    for name in given:
        if name not in known and (hint := _checks.did_you_mean(name, set(known) - set(given))):
            return f" Column {name!r}:{hint}"
    return ""

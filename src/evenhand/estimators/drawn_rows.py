"""Private rows as noisy counts see them, and the rows that are drawn from these counts."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy.special import ndtr

from evenhand import _checks, _values
from evenhand._numerals import text_of
from evenhand.datasets import Schema
from evenhand.datasets.columns import Column, TypedTable
from evenhand.datasets.encoder import PublicEncoder
from evenhand.datasets.schema import ColumnSchema
from evenhand.estimators.synthetic_rows import (
    OF_DRAWN_ROWS,
    SYNTHETIC,
    SyntheticRows,
    SyntheticRowsWarning,
)
from evenhand.fairness.groups import GroupCodes, encode_groups
from evenhand.generators.synthesizer import LEAST_SEEN
from evenhand.generators.tables.codec import OTHER
from evenhand.generators.tables.marginal import MarginalSynthesizer
from evenhand.generators.tables.private_table import PrivateTable
from evenhand.privacy import Budget, Guarantee, Ledger
from evenhand.typing import Array, FloatArray, IntArray

PURPOSE: Final = "noisy counts, from which the rows to ask about are drawn"
VOTES: Final = "answers about the drawn rows"
NO_ROWS: Final = (
    "no row: the {n:,} rows that the teachers are asked about were drawn from noisy counts, which "
    "the same budget pays for"
)
COUNTS: Final = "noisy counts of the private rows, by which the student learns chances of labels"
ANSWERS: Final = "answers about the public rows"
BY_PUBLIC: Final = (
    "the categories, bounds and bins of the columns by which private rows are counted, {whose}"
)

EVERYBODY: Final = "everybody"
TILT_SHARE: Final = 0.5
"""Of the counts' budget, for the odds of the labels that the student learns.

Chosen on ACS-Income of Maryland, whole and 5000 of its records, and on private rows of Bank, Credit
and ACS-Income of Connecticut (``reproductions/rows_and_counts.py``).
"""

WITHOUT_ODDS: Final = 0.25
"""Of the weight of chances where records are too few for the odds of labels: noise is most of them.

Set on German, and on 1000 and 2500 records of ACS-Income of Maryland (``rows_and_counts.py``).
"""

MARGIN_ROWS: Final = 10_000
"""Rows on which a margin is read, at the least: rates of groups are then known to about .01."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DrawnRows:
    """Rows that were drawn, and all that was released for them."""

    X: Any
    """To ask about, as the user's rows are; None where public rows are asked about. Shape (n_rows,
    n_columns).
    """
    groups: GroupCodes | None
    natural: Any
    groups_natural: GroupCodes | None
    """``natural`` and ``groups_natural``: to read a margin on, and for the student: others, drawn
    as they are and more of them, which nobody is asked about. None where the counts show one class
    alone, beside public rows.
    """
    chances: FloatArray | None
    """Of the classes of the natural rows, by the noisy counts. Shape (n_natural, n_classes)."""
    chances_public: FloatArray | None
    """Of the classes of the public rows, where there are some. Shape (n_public, n_classes)."""
    weight: float
    """What these chances weigh in the student's loss beside the answers; 0 where there are none."""
    schema: Schema
    """Of the columns, as declared and as released."""
    notes: tuple[str, ...]
    """What was released, and what must be known of it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RowsToDraw:
    """Private rows, read and checked for the noisy counts; nothing of them is released yet."""

    settings: SyntheticRows
    payload: PrivateTable
    columns: tuple[str, ...]
    """Features."""
    is_frame: bool
    """Whether the user's rows are a frame."""
    groups: tuple[str, ...] | None
    """Names of the groups, which are public; None where none are read."""
    classes: tuple[str, ...]
    """Names of the classes, in the order of their codes."""
    asked: bool = True
    """Whether the teachers are asked about these rows, and not about public ones."""
    declared: bool = False
    """Whether somebody declared the columns."""
    known_public: pd.DataFrame | None = None
    """The public rows beside which these are counted, by what is known of the columns."""

    @classmethod
    def of(
        cls,
        settings: SyntheticRows,
        X: Any,
        y: IntArray,
        classes: Array,
        groups: GroupCodes | None,
        units: Array | None,
        schema: Schema | None,
        X_public: Any = None,
    ) -> RowsToDraw:
        """Read the private rows; with ``X_public`` by what is known of its columns.

        Raises
        ------
        ValueError
            For rows that cannot be counted, such as pictures, and a schema that does not fit.
        """
        if not hasattr(X, "columns") and np.ndim(X) != 2:
            way_out = (
                "Pass X_public=, or set public_fraction=." if X_public is None else "Leave it out."
            )
            raise ValueError(
                f"public={SYNTHETIC!r} draws rows of a table, and X holds pictures. {way_out}"
            )
        _checks.per_unit(settings.per_unit, units is not None, whose="unit_ids=")
        is_frame = hasattr(X, "columns")
        frame = (
            X.reset_index(drop=True)
            if is_frame
            else pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
        )
        if schema is not None:
            schema.refuse_for_models()  # the encoder of drawn rows would, when they are paid for
        columns, declared, keep = tuple(map(str, frame.columns)), schema, settings.keep
        public: TypedTable | None = None
        known_public: pd.DataFrame | None = None
        if X_public is not None:
            public = TypedTable.of(X_public, "public table")
            schema, frame, known_public = _by_public_rows(frame, public, schema)
            is_frame, keep = True, (*keep, *(name for name in columns if name not in keep))
        label, group, unit = (_free(name, columns) for name in ("label", "group", "unit"))
        names = None if groups is None else groups.names
        of_groups = (EVERYBODY,) if names is None else names
        of_classes = tuple(text_of(value) for value in classes.tolist())
        more = {
            label: np.array(of_classes, dtype=object)[y],
            group: np.array(of_groups, dtype=object)[0 if groups is None else groups.codes],
        }
        frame = frame.assign(**more, **({} if units is None else {unit: units}))
        known = Schema(
            columns=(
                *(() if schema is None else schema.columns),
                _categories(label, list(of_classes)),
                _categories(group, list(of_groups)),
            )
        )
        synthesizer = MarginalSynthesizer(n_bins=settings.n_bins, pairs=settings.pairs)
        payload = synthesizer.read(
            frame,
            label=label,
            sensitive=group,
            schema=known,
            unit=None if units is None else unit,
            per_unit=settings.per_unit,
            keep=keep,
            keep_rare=True,  # a teacher can be asked about a row of which a column is not known
            public_rows=public,
        )
        return cls(
            settings=settings,
            payload=payload,
            columns=columns,
            is_frame=is_frame,
            groups=names,
            classes=of_classes,
            asked=X_public is None,
            declared=declared is not None,
            known_public=known_public,
        )

    @property
    def said(self) -> str:
        """How rows are drawn, in a sentence."""
        return self.settings.said(beside=not self.asked)

    @property
    def purposes(self) -> tuple[str, str]:
        """What the counts and the answers are for, in the ledger."""
        return (PURPOSE, VOTES) if self.asked else (COUNTS, ANSWERS)

    @property
    def delta_aside(self) -> float:
        """Share of delta that naming categories needs beside every ledger."""
        return self.payload.delta_aside[0]

    @property
    def public(self) -> tuple[str, ...]:
        """What the claim takes as public: of drawn rows no row of anybody."""
        if not self.asked:
            whose = "which are those of the public rows"
            if self.declared:
                whose = "as declared, and of the public rows"
            return (
                "the order and the dtypes of the columns",
                BY_PUBLIC.format(whose=whose),
            )
        return (
            NO_ROWS.format(n=self.settings.n_rows),
            "the order and the dtypes of the columns",
            *(() if self.groups is None else ("the names of the groups",)),
        )

    def promised(self, budget: Budget, account: Ledger | None) -> Budget:
        """Return what the ledger of the fit may spend: less delta than is claimed.

        Raises
        ------
        ValueError
            Where delta is needed beside an account that several fits share.
        """
        if not self.delta_aside:
            return budget
        if account is not None:
            raise ValueError(
                f"ledger= counts what several fits spend together, at one delta, and naming the "
                f"categories and bounds of {_values.listed(self.payload.wanted, 12)} needs delta "
                f"beside it. Declare these columns with schema= (--schema), or fit without an "
                f"account."
            )
        return Budget(epsilon=budget.epsilon, delta=budget.delta * (1.0 - self.delta_aside))

    def claim(self, claim: Guarantee, budget: Budget) -> Guarantee:
        """Return the claim of the whole fit from that of its ledger."""
        if not self.asked:
            share = self.settings.share
            parts = f"{COUNTS} ({share:.0%} of the budget), and {ANSWERS}"
            return replace(claim, accounting=f"{claim.accounting} of two releases: {parts}")
        if not self.delta_aside:
            return claim
        purpose = self.payload.delta_aside[1]
        said = f"{claim.accounting}, with {self.delta_aside:.0%} of delta for {purpose}"
        return replace(claim, delta=budget.delta, mu_squared=None, accounting=said)

    def draw(self, ledger: Ledger, delta: float, rng: np.random.Generator) -> DrawnRows:
        """Release the noisy counts, and draw rows from them.

        Parameters
        ----------
        ledger : Ledger
            Pays for the counts, all of it.
        delta : float
            What the whole fit promises.
        rng : Generator
            Draws the rows.

        Raises
        ------
        ValueError
            Before anything is charged for columns that cannot be counted, and for so few records
            of a class or group that the noisy counts will more likely than not know one alone; and
            where they do. What was drawn by then stays charged.

        Privacy
        -------
        That a fit was not refused for too few records is not covered by its claim.
        """
        maker = MarginalSynthesizer(
            neighbors=ledger.neighbors,
            n_bins=self.settings.n_bins,
            pairs=self.settings.pairs,
            noise=ledger.noise,
            random_state=rng.spawn(1)[0],
            tilt_share=TILT_SHARE if self.settings.label_weight else MarginalSynthesizer.tilt_share,
        )
        if self.asked:
            self._refuse_few(maker.least_sigma(self.payload, ledger))
        maker.fit_within(self.payload, ledger, delta=delta)
        X = groups = None
        if self.asked:
            shares = _shares(maker, self.settings.balance, groups=self.groups)
            X, groups, _ = self._drawn(maker, shares, self.settings.n_rows, rng.spawn(1)[0])
        natural = groups_natural = chances = chances_public = None
        weight = 0.0
        if few := _too_few(maker, self.groups):
            warnings.warn(
                f"{few} The student learns the answers alone; what was spent on the counts stays "
                f"spent. Raise epsilon or share=, or leave public= out.",
                SyntheticRowsWarning,
                stacklevel=6,
            )
        else:
            n_natural = max(self.settings.n_rows, MARGIN_ROWS)
            natural, groups_natural, rows = self._drawn(
                maker,
                _shares(maker, "none", groups=self.groups),
                n_natural,
                rng.spawn(1)[0],
            )
            weight = self.settings.label_weight * (WITHOUT_ODDS if maker.tilt_ is None else 1.0)
            chances = maker.label_chances(rows)  # whose labels are the classes, in their order
            if self.known_public is not None:
                everybody = {maker.conditions_.names[1]: EVERYBODY}
                chances_public = maker.label_chances(self.known_public.assign(**everybody))
        self._warn_of_columns(maker)
        notes = (*maker.notes_, *self._of_weight(weight))
        return DrawnRows(
            X=X,
            groups=groups,
            natural=natural,
            groups_natural=groups_natural,
            chances=chances,
            chances_public=chances_public,
            weight=weight,
            schema=self._schema(maker),
            notes=tuple(f"{OF_DRAWN_ROWS}{words}." for words in notes),
        )

    def _warn_of_columns(self, maker: MarginalSynthesizer) -> None:
        """Say of which columns the counts know little."""
        if left_out := set(maker.warnings_) - {maker.snr_.warning(maker.fewer_numbers)}:
            which = "the rows to ask about" if self.asked else "the drawn rows"
            way_out = (
                "Declare what is public of the columns with schema= (--schema), raise epsilon, or "
                "give public rows."
                if self.asked
                else "Raise epsilon, or the share of the counts."
            )
            warnings.warn(
                f"Of {which}: {'; '.join(sorted(left_out))}. {way_out}",
                SyntheticRowsWarning,
                stacklevel=7,
            )

    def _of_weight(self, weight: float) -> tuple[str, ...]:
        """Say where chances weigh less than was asked for: by released counts, so it is free."""
        asked_for = self.settings.label_weight
        if weight in (0.0, asked_for):
            return ()
        return (
            f"of the odds of labels nothing was released (that needs more records, or pairs of "
            f"fewer columns), so the chances of labels by the counts weigh {weight:g} times as "
            f"much as the answers, {WITHOUT_ODDS:g} of label_weight={asked_for:g}",
        )

    def _refuse_few(self, sigma: float) -> None:
        """Refuse records of which noise of ``sigma`` will hide all but one class or group."""
        rows = self.payload.records.table.frame
        label, group = (rows[name] for name in self.payload.records.roles.conditions)
        counts = pd.crosstab(label, group).to_numpy(dtype=np.float64)
        if few := _one_alone(
            _hides(counts, sigma), self.groups is not None and _hides(counts.T, sigma)
        ):
            raise ValueError(
                f"The noisy counts would more likely than not show {few} alone: their noise is "
                f"{sigma:.2g} records at the least. Nothing was charged or drawn. Raise epsilon or "
                f"share=, merge small groups, take more private rows, or give public rows."
            )

    def _drawn(
        self, maker: MarginalSynthesizer, shares: FloatArray, n_rows: int, rng: np.random.Generator
    ) -> tuple[Any, GroupCodes | None, pd.DataFrame]:
        """Draw rows; return them as the user's are, their groups, and all that was drawn."""
        frame = maker.sample(n_rows, shares=shares, random_state=rng)
        X, group = frame[list(self.columns)], maker.conditions_.names[1]
        groups = None
        if self.groups is not None:
            groups = encode_groups(frame[group], names=self.groups)
        return (X if self.is_frame else X.to_numpy(dtype=np.float64)), groups, frame

    def _schema(self, maker: MarginalSynthesizer) -> Schema:
        """Return the columns for the encoder; released "other" is no category that a row has.

        The teachers' own rows have the rare values themselves, which the encoder does not know: a
        drawn "other" must look to them, and to the student, as those do.
        """
        wanted = set(self.payload.wanted)
        columns = []
        for name in self.columns:
            column = maker.codec_[name].schema
            named = tuple(c for c in column.categories if c != OTHER)
            if name in wanted and named:
                column = replace(column, categories=named)
            columns.append(column)
        return Schema(columns=tuple(columns))


def _shares(
    maker: MarginalSynthesizer, balance: str, *, groups: tuple[str, ...] | None
) -> FloatArray:
    """Return the share of each combination of class and group; of what was not seen, none."""
    if few := _too_few(maker, groups):
        raise ValueError(
            f"{few} So no rows can be drawn that differ in this. What was drawn stays charged. "
            f"Raise epsilon or share=, merge small groups, or give public rows."
        )
    table = _seen(maker)
    seen = table > 0
    if balance == "both":
        table = seen.astype(np.float64)
    elif balance in ("label", "group"):
        axis = 1 if balance == "label" else 0
        total = table.sum(axis=axis, keepdims=True)
        table = np.divide(table, total, out=np.zeros_like(table), where=total > 0)
    shares: FloatArray = (table / table.sum()).reshape(-1)
    return shares


def _seen(maker: MarginalSynthesizer) -> FloatArray:
    """Return the noisy count of each class and group, 0 where it cannot be told from noise."""
    counts = np.maximum(maker.counts_, 0.0)
    counts[list(maker.unseen_)] = 0.0
    table: FloatArray = counts.reshape(maker.conditions_.sizes)
    return table


def _too_few(maker: MarginalSynthesizer, groups: tuple[str, ...] | None) -> str:
    """Say what the noisy counts know of one value alone; empty where that is nothing."""
    seen = _seen(maker) > 0
    few = _one_alone(seen.any(axis=1).sum() < 2, groups is not None and seen.any(axis=0).sum() < 2)
    return few and f"The noisy counts show {few} alone that stands out of the noise."


def _one_alone(of_class: bool, of_group: bool) -> str:
    """Say of what there is one alone; empty where there are two of each."""
    few = [what for what, alone in (("class", of_class), ("group", of_group)) if alone]
    return "one " + " and one ".join(few) if few else ""


def _hides(counts: FloatArray, sigma: float) -> bool:
    """Whether noise more likely than not hides all rows of counts but one."""
    each = ndtr(LEAST_SEEN - counts / sigma).prod(axis=1)
    return len(each) < 2 or bool(np.sort(each)[1] > 0.5)


def _by_public_rows(
    frame: pd.DataFrame, public: TypedTable, schema: Schema | None
) -> tuple[Schema, pd.DataFrame, pd.DataFrame]:
    """Return what is public of the columns, and private and public rows as the encoder knows them.

    Each value follows from its own row and from what is public.
    """
    encoder = PublicEncoder(schema).fit(public)
    private = encoder.schema_.select(TypedTable.of(frame, "private table", keeps=False))
    columns = []
    for column in encoder.schema_.columns:
        if column.kind == "numeric":
            whole = column.integer or pd.api.types.is_integer_dtype(private[column.name].dtype)
            bounds = column.bounds or _range(public[column.name].numbers)
            columns.append(replace(column, bounds=bounds, integer=whole))
        else:
            # The last one stands for what the encoder does not name, so it must not name it.
            known = (*column.categories, _free(OTHER, column.categories))
            columns.append(replace(column, categories=known))
    private_rows, public_rows = (
        pd.DataFrame({c.name: _known_values(encoder, c, table[c.name]) for c in columns})
        for table in (private, public)
    )
    names = list(map(str, frame.columns))
    return Schema(columns=tuple(columns)), private_rows[names], public_rows[names]


def _known_values(encoder: PublicEncoder, column: ColumnSchema, values: Column) -> Array:
    """Return the values of a column as the encoder knows them.

    A category that it does not name is "other", a number that is missing the median of the public
    rows, where these miss none: what it cannot tell apart is counted together.
    """
    if column.kind == "numeric":
        numbers = values.numbers
        if not column.missing:
            numbers = np.where(np.isnan(numbers), encoder.scales_[column.name].median, numbers)
        return numbers
    places = values.places(column.categories[:-1], as_numbers=True)
    texts = np.array(column.categories, dtype=object)[places]  # of -1 the last
    if column.missing:
        texts[values.missing] = None
    return texts


def _range(numbers: FloatArray) -> tuple[float, float]:
    """Return the smallest and the largest number; a little more where they are one."""
    low, high = float(np.nanmin(numbers)), float(np.nanmax(numbers))
    return low, high if high > low else low + 1.0


def _categories(name: str, categories: list[str]) -> ColumnSchema:
    return ColumnSchema(name=name, kind="categorical", categories=tuple(categories))


def _free(name: str, taken: tuple[str, ...]) -> str:
    """Return a name that no column has."""
    while name in taken:
        name = f"{name}_"
    return name

"""A labelled table with its sensitive attribute."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from evenhand import _values
from evenhand._checks import did_you_mean, same_length
from evenhand.datasets.columns import Column, TypedTable, refuse_repeated
from evenhand.datasets.findings import IN_PYTHON
from evenhand.datasets.inspection import inspect as look_at
from evenhand.datasets.split import Split, rows_of_split
from evenhand.typing import ArrayLike, RandomState


@dataclass(frozen=True, kw_only=True, eq=False)
class Table:
    """Records in rows; each part has one row per record, under the same index."""

    X: pd.DataFrame
    """The features."""
    y: pd.Series[Any] | None = None
    """The labels. None where they are not known, as in the public part of a split."""
    groups: pd.Series[Any] | pd.DataFrame | None = None
    """The sensitive attributes, in the form that ``sensitive_features=`` takes."""
    units: pd.Series[Any] | None = None
    """Whose record this is, where one person (or household, or firm) holds several records."""

    def __post_init__(self) -> None:
        known = {name: part for name, part in self._parts().items() if part is not None}
        same_length(**known)
        for name, part in known.items():
            if not part.index.equals(self.X.index):
                raise ValueError(
                    f"{name} must have the same index as X, in the same order. If row i of both "
                    f"is the same record, set it: {name}.index = X.index."
                )

    def __len__(self) -> int:
        return len(self.X)

    def take(self, rows: ArrayLike) -> Table:
        """Return the records at these positions, in this order."""
        positions = np.asarray(rows, dtype=np.int64)

        def chosen(part: Any) -> Any:
            return None if part is None else part.take(positions)

        return Table(
            X=self.X.take(positions),
            y=chosen(self.y),
            groups=chosen(self.groups),
            units=chosen(self.units),
        )

    def without_labels(self) -> Table:
        """Return the same records with ``y=None``."""
        return Table(X=self.X, groups=self.groups, units=self.units)

    def _parts(self) -> dict[str, Any]:
        return {"X": self.X, "y": self.y, "groups": self.groups, "units": self.units}


@dataclass(frozen=True, kw_only=True, eq=False)
class Dataset:
    """Records with labels and groups, ready to be split.

    Parameters
    ----------
    name : str
        What to call it in reports.
    X : DataFrame (n, n_columns)
        The features as they are, not encoded. The sensitive attribute is not among them unless
        somebody asked for it.
    y : Series (n,)
        The classes. No value is missing; at least two occur.
    groups : Series (n,) or DataFrame (n, n_sensitive)
        The sensitive attributes. No value is missing; at least two groups occur.
    units : Series (n,), optional
        Whose record it is, where one person holds several.
    label : str
        What the label means.
    sensitive : tuple of str
        Names of the sensitive attributes.
    positive : hashable, optional
        The class that counts as the favourable one. None for more than two classes.
    unit : str
        The noun for what holds the records: "record", or "person" when ``units`` is given.

    Examples
    --------
    >>> frame = pd.DataFrame({"age": [30, 41, 52, 63] * 5, "sex": list("FMMF") * 5,
    ...                       "repaid": ["no", "yes", "yes", "yes"] * 5})
    >>> data = Dataset.from_frame(frame, label="repaid", sensitive="sex")
    >>> data.classes, data.positive, list(data.X)
    (('no', 'yes'), 'yes', ['age'])
    >>> split = data.split(public=0.2, test=0.25, random_state=0)
    >>> len(split.private), len(split.public), len(split.test), split.public.y
    (12, 3, 5, None)
    """

    name: str
    X: pd.DataFrame
    y: pd.Series[Any]
    groups: pd.Series[Any] | pd.DataFrame
    units: pd.Series[Any] | None = None
    label: str
    sensitive: tuple[str, ...]
    positive: Hashable | None = None
    unit: str = "record"

    def __post_init__(self) -> None:
        if not len(self.X):
            raise ValueError(f"The data set {self.name!r} has no rows.")
        refuse_repeated(map(str, self.X.columns), f"data set {self.name!r}")
        _ = self.table  # checks lengths and index
        label = Column(self.y.rename(self.label))
        label.refuse_missing(
            "label",
            f"A record without a label cannot teach: leave those rows out, e.g. "
            f"frame.dropna(subset=[{self.label!r}]).",
        )
        groups = TypedTable(pd.DataFrame(self.groups))
        for column in groups.columns:
            column.refuse_missing(
                "sensitive attribute",
                "Whether a margin is kept cannot be said about an unknown group: leave those rows "
                "out, or make them a group of their own with fillna('unknown').",
            )
        if self.units is not None:
            Column(self.units).refuse_missing(
                "unit",
                f"Records of an unknown {self.unit} cannot be kept together: leave them out, or "
                f"give each an id of its own.",
            )
        label.refuse_amounts()
        label.refuse_one_class()
        for column in groups.columns:
            column.refuse_one_group("Name a column with at least two groups.")
        classes = self.classes
        if self.positive is not None and self.positive not in classes:
            raise ValueError(
                f"positive must be one of the classes of {self.label!r}, "
                f"{_values.listed(classes, 20)}; got {self.positive!r}."
                f"{_values.if_shown(did_you_mean(self.positive, classes))}"
            )

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        *,
        label: str,
        sensitive: str | Sequence[str],
        unit: str | None = None,
        drop: Iterable[str] = (),
        positive: Hashable | None = None,
        keep_sensitive: bool = False,
        name: str = "table",
        inspect: bool = False,
    ) -> Dataset:
        """Make a data set of a user's own table.

        Parameters
        ----------
        frame : DataFrame
            One row per record.
        label : str
            Column of the classes.
        sensitive : str or sequence of str
            Column or columns of the sensitive attribute. They are taken out of the features.
        unit : str, optional
            Column that says whose record it is. It is taken out of the features; splits keep all
            records of one unit on one side; its name is the noun of the guarantee.
        drop : iterable of str
            Columns to leave out, such as identifiers.
        positive : hashable, optional
            The favourable class. Default: the last one in sorted order if there are two.
        keep_sensitive : bool
            Leave the sensitive columns among the features as well.
        name : str
            What to call the data set in reports.
        inspect : bool
            Refuse features that would silently be learnt wrong, all at once: identifiers, copies
            of the label, dates and numbers in text. See ``evenhand.datasets.inspect``.

        Raises
        ------
        ValueError
            For a column that is not there (the nearest name is given), a column named twice, a
            table without rows, a missing label, group or unit (the rows are given), one class or
            one group only, a label that is not made of classes, and what ``inspect`` finds.
        """
        table = TypedTable.of(frame, keeps=False)
        if not len(table):
            raise ValueError("The table has no rows.")
        named = (sensitive,) if isinstance(sensitive, str) else tuple(sensitive)
        left_out = (drop,) if isinstance(drop, str) else tuple(drop)
        if not named:
            raise ValueError("sensitive names no column. Name at least one, e.g. sensitive='sex'.")
        roles = {"label": (label,), "sensitive": named, "unit": (unit,) if unit else ()}
        for argument, names in {**roles, "drop": left_out}.items():
            table.require(names, f"which {argument}= names")
        if label in named or label == unit:
            raise ValueError(
                f"The label {label!r} cannot be the sensitive attribute or the unit as well. "
                f"Copy the column under another name if that is what you mean."
            )
        away = {label, unit, *left_out} | (set() if keep_sensitive else set(named))
        frame = table.frame
        X = frame[[column for column in table if column not in away]]
        if not X.shape[1]:
            raise ValueError("No column is left for the features. Drop fewer columns.")
        y = frame[label]
        classes = _classes(y)
        if inspect:
            used = table.select(name for name in table if name not in left_out)
            look_at(used, label=label, sensitive=named, unit=unit).require("table", IN_PYTHON)
        if positive is None and len(classes) == 2:
            positive = classes[1]
        return cls(
            name=name,
            X=X,
            y=y,
            groups=frame[named[0]] if len(named) == 1 else frame[list(named)],
            units=None if unit is None else frame[unit],
            label=label,
            sensitive=named,
            positive=positive,
            unit=unit or "record",
        )

    def __len__(self) -> int:
        return len(self.X)

    @property
    def table(self) -> Table:
        """All records as one table."""
        return Table(X=self.X, y=self.y, groups=self.groups, units=self.units)

    @property
    def classes(self) -> tuple[Hashable, ...]:
        """The classes, sorted."""
        return _classes(self.y)

    def split(
        self, *, public: float = 0.2, test: float = 0.25, random_state: RandomState = 0
    ) -> Split[Table]:
        """Deal the records into private, public and test.

        First ``test`` of all records, then ``public`` of the rest; what remains is private. Rows
        come in a random order that depends on their number and ``random_state`` alone: nothing is
        stratified, because then one record would move others.

        With ``units``, all records of one unit stay on one side, which a keyed hash of its id
        chooses; the fractions are what it hits on average. Units come in the order of their hash.

        Parameters
        ----------
        public : float
            Part of the training records that is public, in [0, 1). Their labels are dropped.
        test : float
            Part of all records that is kept for the test, in [0, 1).
        random_state : int, Generator or None
            Seeds the order.

        Returns
        -------
        Split
            Tables ``private``, ``public`` (``y`` is None) and ``test``.

        Privacy
        -------
        Without units the side of a record is that of its position among all: safe for neighbors
        that *replace one* record of the whole table. Under "add or remove one" a record that is
        taken away moves nearly all others, so a claim for that relation is then about the private
        part as it stands, and not about the whole table. With units no unit moves another.
        """
        rows = rows_of_split(
            len(self),
            units=self.units,
            noun=self.unit,
            public=public,
            test=test,
            random_state=random_state,
        )
        whole = self.table
        return Split(
            private=whole.take(rows.private),
            public=whole.without_labels().take(rows.public),
            test=whole.take(rows.test),
        )


def _classes(y: pd.Series[Any]) -> tuple[Hashable, ...]:
    """Return the distinct values, sorted, as plain Python values."""
    values = y.dropna().unique().tolist()
    try:
        return tuple(sorted(values))
    except TypeError:
        raise TypeError(
            f"The label {y.name!r} mixes values that cannot be sorted, e.g. "
            f"{_values.listed(values)}. Write all classes as text: frame[{y.name!r}].astype(str)."
        ) from None

"""How sensitive columns become groups: numbers cut into ranges, small groups merged into one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pandas as pd

from evenhand import _checks
from evenhand.fairness.groups import GroupCodes, encode_groups, sensitive_columns
from evenhand.typing import FloatArray

MERGED: Final = "other (merged)"
"""Name of the group that small ones are merged into."""

MOST_VALUES: Final = 50
"""Values of a sensitive column above which they are no groups any more."""

RANGES: Final = "evenhand.fairness.Grouping.of_public(public_columns, bins={{{name!r}: 4}})"
"""How numbers become few groups in Python."""


@dataclass(frozen=True, kw_only=True)
class Grouping:
    """A fixed way from sensitive columns to groups, the same in training, testing and serving.

    Parameters
    ----------
    edges : mapping of str to tuple of float
        Columns of numbers that are cut into ranges: a value belongs to the range that begins at
        the largest edge not above it. Each tuple rises strictly.
    merged : tuple of str
        Groups that become the one group "other (merged)", by the names that ``encode_groups``
        gives them after the cuts. A group that is not among ``known`` joins them.
    known : tuple of str
        The groups that stay; empty where nothing is merged.

    Privacy
    -------
    Public: edges and merged groups are declared, or read from public rows by ``of_public``. Never
    make one from private rows.

    Examples
    --------
    >>> import pandas as pd
    >>> by_age = Grouping(edges={"age": (25.0, 45.0)})
    >>> list(by_age(pd.DataFrame({"age": [19, 25, 80]})))
    ['below 25', '25 to below 45', '45 and above']
    """

    edges: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    merged: tuple[str, ...] = ()
    known: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        checked = {str(name): _rising(name, cuts) for name, cuts in self.edges.items()}
        object.__setattr__(self, "edges", checked)
        object.__setattr__(self, "merged", tuple(map(str, self.merged)))
        object.__setattr__(self, "known", tuple(map(str, self.known)))
        if bool(self.merged) != bool(self.known):
            raise ValueError("merged and known belong together: name both, or neither.")

    @classmethod
    def of_public(
        cls,
        sensitive_features_public: Any,
        *,
        bins: Mapping[str, int | Sequence[float]] | None = None,
        merge_small: int = 0,
    ) -> Grouping:
        """Read a grouping from *public* rows.

        Parameters
        ----------
        sensitive_features_public : Series or DataFrame, n rows
            The sensitive columns of the public rows.
        bins : mapping of str to int or sequence of float, optional
            Per column: into how many ranges of about as many public rows it is cut, or the edges.
        merge_small : int
            Groups of fewer public rows than this are merged into one. 0: none.
        """
        frame = _frame(sensitive_features_public)
        edges = {}
        for column, asked in (bins or {}).items():
            values = _numbers(frame, column)
            edges[column] = _quantiles(column, values, asked) if isinstance(asked, int) else asked
        cut = cls(edges={name: tuple(cuts) for name, cuts in edges.items()})
        _checks.at_least("merge_small", merge_small, 0)
        codes = encode_groups(cut(frame))
        small = [name for name, n in zip(codes.names, codes.sizes, strict=True) if n < merge_small]
        if len(small) < 1:
            return cut
        known = tuple(name for name in codes.names if name not in small)
        if not known:
            raise ValueError(
                f"merge_small={merge_small} merges every group: the largest has "
                f"{int(codes.sizes.max()):,} public rows. Choose a smaller number."
            )
        if len(small) == 1:  # under another name it would be as small as before
            least, next_one = (int(n) for n in np.sort(codes.sizes)[:2])
            joined = f"merge_small={next_one + 1} merges the next smallest with it"
            raise ValueError(
                f"merge_small={merge_small} has nothing to merge {small[0]!r} ({least:,} public "
                f"rows) with: all other groups have {next_one:,} or more. "
                f"{f'Write more ({joined})' if len(known) > 1 else 'Give more public rows of it'}, "
                f"or leave merge_small out."
            )
        return cls(edges=cut.edges, merged=tuple(small), known=known)

    def __call__(self, sensitive_features: Any) -> pd.Series[Any] | pd.DataFrame:
        """Return the groups of rows, ready for ``fit``, ``predict`` and ``fairness_report``."""
        frame = _frame(sensitive_features).copy()
        for column, cuts in self.edges.items():
            values = _numbers(frame, column)
            place = np.searchsorted(cuts, values, side="right")
            frame[column] = np.array(ranges(cuts), dtype=object)[place]
        columns = frame.iloc[:, 0] if frame.shape[1] == 1 else frame
        if not self.merged:
            return columns
        codes = encode_groups(columns)
        stays = set(self.known)
        names = [name if name in stays else MERGED for name in codes.names]
        return pd.Series(np.array(names, dtype=object)[codes.codes], index=frame.index)

    def __bool__(self) -> bool:
        """Whether it changes anything."""
        return bool(self.edges or self.merged)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "edges": {name: list(cuts) for name, cuts in self.edges.items()},
            "merged": list(self.merged),
            "known": list(self.known),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Grouping:
        """Read what ``to_dict`` wrote."""
        edges = {str(name): tuple(cuts) for name, cuts in values["edges"].items()}
        return cls(edges=edges, merged=tuple(values["merged"]), known=tuple(values["known"]))


def ranges(cuts: Sequence[float]) -> list[str]:
    """Name the ranges between the edges, in their order.

    Examples
    --------
    >>> ranges([25, 45.5])
    ['below 25', '25 to below 45.5', '45.5 and above']
    """
    words = [f"{cut:.12g}" for cut in cuts]
    between = [f"{low} to below {high}" for low, high in itertools.pairwise(words)]
    return [f"below {words[0]}", *between, f"{words[-1]} and above"]


def refuse_many_values(sensitive_features: Any, *, way_out: str = RANGES) -> None:
    """Refuse a sensitive column with so many values that its groups say nothing, as ages do.

    Raises
    ------
    ValueError
        For a column of more than 50 values. How many there are is not said: the rows may be
        private.
    """
    for name, column in sensitive_columns(sensitive_features):
        if column.nunique() > MOST_VALUES:
            numeric = pd.to_numeric(column, errors="coerce").notna().all()
            raise ValueError(
                f"The sensitive column {name!r} has more than {MOST_VALUES} values: no margin can "
                f"be told from 0 in groups so small. "
                + (
                    f"Cut it into ranges: {way_out.format(name=name)}."
                    if numeric
                    else "Make fewer categories of it beforehand."
                )
            )


def published_groups(
    sensitive_features: Any, *, names: tuple[str, ...] | None = None
) -> GroupCodes:
    """Encode the groups of private rows, whose names are published.

    Those that ``names`` does not declare must be few, in each column and of all columns together:
    the names of a column of amounts are the amounts, and the combinations of several columns that
    occur are people.

    Raises
    ------
    ValueError
        For a column of more than 50 values, and more than 200 combinations.
    """
    if names is None:
        refuse_many_values(sensitive_features)
    known = encode_groups(sensitive_features, names=names)
    if names is None and known.n_groups > _checks.MOST_CLASSES:
        columns = ", ".join(repr(name) for name, _ in sensitive_columns(sensitive_features))
        raise ValueError(
            f"The sensitive columns {columns} have more than {_checks.MOST_CLASSES} combinations, "
            f"and each would be a group with a name that is published: of a rare one it says who "
            f"is there. Name fewer columns, or merge values beforehand."
        )
    return known


def _quantiles(column: str, values: FloatArray, n: int) -> tuple[float, ...]:
    _checks.at_least(f"bins of {column!r}", n, 2)
    inner = np.quantile(values, np.arange(1, n) / n, method="inverted_cdf")
    cuts = tuple(cut for cut in np.unique(inner).tolist() if cut > values.min())
    if not cuts:
        raise ValueError(
            f"The public rows of {column!r} cannot be cut into {n} ranges: nearly all have one "
            f"value. Name the edges instead."
        )
    return cuts


def _rising(column: str, cuts: Sequence[float]) -> tuple[float, ...]:
    found = tuple(float(cut) for cut in cuts)
    if not found or not all(map(math.isfinite, found)) or any(np.diff(found) <= 0):
        raise ValueError(
            f"The edges of {column!r} must be one or more finite numbers that rise, got "
            f"{list(found)}."
        )
    return found


def _frame(features: Any) -> pd.DataFrame:
    if isinstance(features, pd.DataFrame):
        return features
    if isinstance(features, pd.Series):
        return features.to_frame(name=features.name if features.name is not None else "group")
    raise TypeError(
        f"A grouping reads the sensitive columns by their names, from a pandas Series or "
        f"DataFrame, got {type(features).__name__}."
    )


def _numbers(frame: pd.DataFrame, column: str) -> FloatArray:
    if column not in frame.columns:
        raise ValueError(
            f"There is no sensitive column {column!r} to cut into ranges."
            f"{_checks.did_you_mean(column, map(str, frame.columns))} There are: "
            f"{', '.join(map(str, frame.columns))}."
        )
    values = pd.to_numeric(frame[column], errors="coerce").to_numpy(dtype=np.float64)
    if np.isnan(values).any():
        raise ValueError(
            f"The sensitive column {column!r} holds values that are no numbers or are missing (row "
            f"{int(np.isnan(values).argmax()) + 1}, counted from 1), so it cannot be cut into "
            f"ranges. Correct them, or leave these rows out."
        )
    return values

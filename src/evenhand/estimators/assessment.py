"""Assess decisions with every record private: one noisy table, all notions read from it.

Whoever audits decisions needs the sensitive attribute of the people they are about, and exact
tables give it away. Here one table of counts by group, true class and decision is released with
noise, on a budget of its own; every number of the assessment is computed from that table.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from evenhand import _checks, _values
from evenhand._folder import write_folder
from evenhand._frames import as_pandas, refuse_other_order
from evenhand._numerals import is_numeral
from evenhand.estimators.group_shares import pure_claim, release_table
from evenhand.fairness.grouping import refuse_many_values
from evenhand.fairness.groups import GroupCodes, encode_groups
from evenhand.fairness.intervals import Estimate
from evenhand.fairness.metrics import LEVEL
from evenhand.fairness.noisy_counts import NoisyCounts
from evenhand.privacy import Budget, DiscreteNoise, Guarantee, Ledger
from evenhand.privacy.noise import Noise
from evenhand.privacy.saved_claim import claim_record
from evenhand.privacy.table import LaplaceTable
from evenhand.typing import IntArray

DELTA: Final = 1e-5
"""At which the ledger counts; the table itself has delta 0."""

PURPOSE: Final = "a table of decisions by group"
FILE: Final = "assessment.json"
_MANY: Final = 20  # different numbers, from which on they are hardly classes
_RANGES: Final = "write these into a column of their own, as the names of groups are published"


@dataclass(frozen=True, kw_only=True, eq=False)
class View:
    """The noisy table by one grouping: a column, or all of them together."""

    by: str
    groups: tuple[str, ...]
    counts: NoisyCounts
    gaps: tuple[Estimate, ...]
    """Of every notion that the table allows."""
    selection: tuple[tuple[Estimate, ...], ...]
    """Rates of each class (one of two: the last), by group."""
    errors: tuple[Estimate, ...]
    """By group; empty where truth is not known."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for machines."""
        return {
            "by": self.by,
            "groups": list(self.groups),
            "noisy_counts": self.counts.counts.tolist(),
            "gaps": [gap.to_dict() for gap in self.gaps],
            "selection": [[rate.to_dict() for rate in rates] for rates in self.selection],
            "errors": [error.to_dict() for error in self.errors],
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class Assessment:
    """What may be published of decisions: noisy counts, gaps and rates with intervals, the claim.

    Privacy
    -------
    All of it is the released table and public facts; it may be published as it is.
    """

    classes: tuple[str, ...]
    views: tuple[View, ...]
    """By each column, and by all together where there are several."""
    guarantee_: Guarantee
    ledger_: Ledger
    scale: float
    """Of the noise on each released count, in records."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for machines."""
        return {
            "classes": list(self.classes),
            "noise_scale": self.scale,
            "level": LEVEL,
            "views": [view.to_dict() for view in self.views],
            "claim": claim_record(self.guarantee_, self.ledger_),
        }

    def save(self, path: str | Path) -> Path:
        """Write ``assessment.json`` into the new folder ``path``: all of it, or nothing."""
        text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

        def write(folder: Path) -> None:
            (folder / FILE).write_text(text, encoding="utf-8")

        return write_folder(Path(path), write)


def assess(
    decided: Sequence[Any],
    groups: Mapping[str, Sequence[Any]] | pd.DataFrame,
    *,
    epsilon: float,
    truth: Sequence[Any] | None = None,
    classes: Sequence[Any] | None = None,
    values: Mapping[str, Sequence[Any]] | None = None,
    reference: str = "pairwise",
    noise: Noise | None = None,
    account: Ledger | None = None,
) -> Assessment:
    """Release a noisy table of decisions by group, and compute everything from it.

    Parameters
    ----------
    decided : sequence of n labels
        What was decided about each person.
    groups : mapping of str to sequence of n values, or DataFrame
        The sensitive columns, by name.
    epsilon : float
        What the table may cost. Greater than 0.
    truth : sequence of n labels, optional
        What would have been right; without it only notions that read no truth are assessed.
    classes : sequence, optional
        All classes there are. Default: those that occur, which are then taken as public, and are
        200 at most.
    values : mapping of str to sequence, optional
        All values of each column. Default: those that occur, which are then taken as public, and
        of which a column has 50 at most: incomes or ages of single people are no groups.
    reference : {"rest", "pairwise", "overall"}
        What a group is compared with.
    noise : Noise, optional
        Default: exact discrete noise; an account draws its own.
    account : Ledger, optional
        Account of these people, for "add or remove one" record, that pays for all releases about
        them. It is charged the least Gaussian cost that lies below the table's at every delta.

    Returns
    -------
    Assessment

    Raises
    ------
    BudgetExceeded
        If the account does not cover it; nothing is charged then and nothing drawn.

    Privacy
    -------
    Neighbors : add or remove one record: group, truth and decision of it, and that it is there.
    Sensitivity : one record is in one cell of the table of all columns together, which moves by 1.
    Cost : epsilon with delta 0, charged to a ledger of its own, or to a run of the account, before
        the noise is drawn. Tables by single columns are sums of the released cells and cost
        nothing.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> sex, yes = rng.choice(["f", "m"], 4000), rng.random(4000) < 0.3
    >>> found = assess(np.where(yes, "yes", "no"), {"sex": sex}, epsilon=1.0)
    >>> [gap.name for gap in found.views[0].gaps]
    ['demographic_parity_pairwise']
    >>> found.guarantee_.epsilon, found.guarantee_.delta
    (1.0, 0.0)
    """
    _checks.positive("epsilon", epsilon)
    of_columns = groups.values() if isinstance(groups, Mapping) else [groups]
    for values_of in of_columns:
        refuse_other_order(decided=decided, truth=truth, groups=values_of)
    _refuse_missing("decided", decided)
    if truth is not None:
        _refuse_missing("truth", truth)
    if truth is not None and classes is None:
        _require_common_class(decided, truth)
    names = _names("classes", classes, decided if truth is None else [*decided, *truth])
    columns = _columns(groups, values)
    k = len(names)
    z = np.zeros(len(decided), dtype=np.int64)
    for column in columns.values():
        _checks.same_length(decided=decided, groups=column.codes)
        z = z * len(column.names) + column.codes
    places = list(product(*(range(len(column.names)) for column in columns.values())))
    code = {name: i for i, name in enumerate(names)}
    predicted = np.array([code[str(label)] for label in decided], dtype=np.int64)
    cells = z * k + predicted
    shape: tuple[int, ...] = (len(places), k)
    if truth is not None:
        _checks.same_length(decided=decided, truth=truth)
        true = np.array([code[str(label)] for label in truth], dtype=np.int64)
        cells = (z * k + true) * k + predicted
        shape = (len(places), k, k)
    exact = np.bincount(cells, minlength=int(np.prod(shape)))
    if account is not None and noise is not None:
        raise ValueError("noise= and account= were both given, and an account draws its own noise.")
    source = account.noise if account is not None else noise or DiscreteNoise()
    budget = Budget(epsilon=epsilon, delta=DELTA)
    ledger, noisy = release_table(exact, budget, source, purpose=PURPOSE, account=account)
    table = NoisyCounts(
        counts=np.rint(noisy).astype(np.int64).reshape(shape),
        scale=LaplaceTable.within(budget).scale,
        n_summed=(1,) * len(places),
        whole=isinstance(source, DiscreteNoise),
    )
    views = [_by_column(table, places, i, n, c.names) for i, (n, c) in enumerate(columns.items())]
    if len(columns) > 1:
        together = [
            ", ".join(
                f"{name}={column.names[i]}"
                for (name, column), i in zip(columns.items(), place, strict=True)
            )
            for place in places
        ]
        views.append((", ".join(columns), tuple(together), table))
    public = ("the names of the columns", "the values that a group can have", "the classes")
    claim = replace(
        pure_claim(ledger, epsilon),
        public=public,
        not_covered=("whether and when decisions are assessed", "the records of other tables"),
    )
    return Assessment(
        classes=names,
        views=tuple(_view(*view, reference) for view in views),
        guarantee_=claim,
        ledger_=ledger,
        scale=table.scale,
    )


def _columns(groups: Any, values: Mapping[str, Sequence[Any]] | None) -> dict[str, GroupCodes]:
    """Return the groups of each sensitive column, of which each has two at least."""
    frame = as_pandas(groups)
    if not isinstance(frame, Mapping) and not hasattr(frame, "columns"):
        raise TypeError(
            f"groups must name its columns, as {{'sex': values}} or a DataFrame does, got "
            f"{type(groups).__name__}."
        )
    if not list(frame):
        raise ValueError("groups must name one sensitive column at least.")
    columns = {}
    for name, column in frame.items():
        given, cells = _given(values, name), list(column)
        if given is None:
            refuse_many_values(pd.Series(cells, name=name, dtype=object), way_out=_RANGES)
        columns[name] = encode_groups(cells, names=given)
    for name, column in columns.items():
        if len(column.names) < 2:
            raise ValueError(
                f"{name} has one group only, {_values.quoted(column.names[0])}: there is nothing "
                f"to compare."
            )
    return columns


def _by_column(
    table: NoisyCounts, places: list[Any], i: int, name: str, groups: tuple[str, ...]
) -> tuple[str, tuple[str, ...], NoisyCounts]:
    codes: IntArray = np.array([place[i] for place in places])
    return name, groups, table.joined(codes, len(groups))


def _view(by: str, groups: tuple[str, ...], counts: NoisyCounts, reference: str) -> View:
    k = counts.n_classes
    shown = (1,) if k == 2 else tuple(range(k))
    return View(
        by=by,
        groups=groups,
        counts=counts,
        gaps=counts.gaps(reference),
        selection=tuple(counts.selection_rates(positive) for positive in shown),
        errors=counts.error_rates() if counts.knows_truth else (),
    )


def _names(name: str, given: Sequence[Any] | None, labels: Sequence[Any]) -> tuple[str, ...]:
    there = sorted({str(label) for label in labels})
    names = tuple(there) if given is None else tuple(str(label) for label in given)
    if given is None and len(names) < 2:
        raise ValueError(
            f"All rows have one class, {_values.listed(names)}: there is nothing to compare, and "
            f"nothing was released. Take the column of the decisions; if there are classes that "
            f"nobody got, name all of them with --classes A,B (in Python: classes=)."
        )
    if given is None and len(names) > _checks.MOST_CLASSES:
        raise ValueError(
            f"There are more than {_checks.MOST_CLASSES} classes, and the names of all would be "
            f"published; nothing was released. Write ranges of amounts, such as 'below 40', into a "
            f"column of their own; or name the classes with --classes A,B (in Python: classes=)."
        )
    if given is None and len(names) > _MANY and all(is_numeral(name) for name in names):
        warnings.warn(
            f"the classes are {len(names)} different numbers, as ages or amounts would be: each is "
            f"compared by itself, and few rows have it. Write ranges of them, such as 'below 40', "
            f"into a column of their own; or name the classes with --classes A,B (in Python: "
            f"classes=) if they are meant",
            stacklevel=3,
        )
    strange = [label for label in there if label not in names]
    if strange or len(names) < 2:
        raise ValueError(
            f"{name} must be all classes, two at least, got {', '.join(names)}"
            + (f", and the rows have {_values.listed(strange)} too" if strange else "")
            + "."
        )
    return names


def _refuse_missing(name: str, labels: Sequence[Any]) -> None:
    """Refuse labels that nobody gave: as text they would be a class called None."""
    gone = np.flatnonzero(pd.isna(np.array([*labels], dtype=object)))
    if gone.size:
        raise ValueError(
            f"{name} is missing in {_values.rows(gone)}. Leave these rows out, or give them a "
            f"class of their own, such as 'undecided'; nothing was released."
        )


def _require_common_class(decided: Sequence[Any], truth: Sequence[Any]) -> None:
    """Refuse truths in other words than decisions: every decision would count as an error."""
    given, right = (sorted({str(label) for label in labels}) for labels in (decided, truth))
    if not set(given) & set(right):
        raise ValueError(
            f"What was decided, {_values.listed(given)}, and what would have been right, "
            f"{_values.listed(right)}, have no class in common. Write the classes of both in the "
            f"same words; nothing was released."
        )


def _given(values: Mapping[str, Sequence[Any]] | None, name: str) -> tuple[str, ...] | None:
    found = None if values is None else values.get(name)
    return None if found is None else tuple(str(value) for value in found)

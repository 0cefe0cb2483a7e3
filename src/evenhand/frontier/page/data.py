"""What the page knows: columns of numbers, and every text once."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from evenhand.fairness import FairnessKind
from evenhand.fairness.intervals import clopper_pearson
from evenhand.frontier.page import estimates
from evenhand.frontier.page.estimates import LEVEL, Estimates
from evenhand.frontier.pareto import front_probability
from evenhand.frontier.run import OF_GENERATED, Plain, Run, Setting
from evenhand.privacy import Guarantee
from evenhand.report.measured import REFERENCES
from evenhand.typing import BoolArray, FloatArray, IntArray

FORMAT: Final = 1
DIGITS: Final = 6
MOST_RUNS: Final = 5000
DRAWS: Final = 100  # a probability to about 0.05
NO_CLAIM: Final = (
    "No complete claim is recorded with this run: its epsilon is a number without its terms."
)


def page_data(runs: Sequence[Run], *, most: int = MOST_RUNS) -> dict[str, Any]:
    """Return what the page draws and says, as plain values for JSON.

    Parameters
    ----------
    runs : sequence of Run
        In any order, seeds and methods mixed.
    most : int
        Runs that are shown at most. Beyond it the front of every method stays, with a sample of
        the other settings: whether limits can be met at all, and by which methods, is answered as
        if all were shown.

    Returns
    -------
    dict
        ``settings`` has one entry per setting in each column (means over seeds), ``runs`` one
        entry per run, in the order of their settings and seeds. An undefined number and an infinite
        epsilon are None. ``left_out`` counts the settings that are not shown; ``probability`` is
        that of being on the front of what is shown, see ``front_probability``.

    Notes
    -----
    Numbers are rounded to six digits in the direction that promises less: epsilon and the gap up,
    accuracy and coverage down. A setting that the page calls feasible is feasible.
    """
    if not runs:
        raise ValueError("runs is empty: a page needs at least one run. Run a sweep first.")
    owner = estimates.setting_numbers(runs)
    single = estimates.of_runs(runs)
    settings = estimates.of_settings(single, owner)
    one_each = [runs[i] for i in np.unique(owner, return_index=True)[1]]
    kinds, kind = _kinds(one_each)
    methods = np.unique([run.setting.method for run in one_each], return_inverse=True)[1]
    front = estimates.on_front(settings, kind)
    shown = _shown(settings, kind, methods, most)
    seeds = np.array([run.setting.seed for run in runs], dtype=np.int64)
    by_setting: IntArray = np.lexsort((seeds, owner))
    by_setting = by_setting[shown[owner[by_setting]]]
    kept = [runs[i] for i in by_setting.tolist()]
    _, starts = np.unique(owner[by_setting], return_index=True)
    first = [kept[i] for i in starts]
    place = np.cumsum(shown) - 1
    repeated = bool((settings.n_seeds[shown] > 1).any())
    texts = Texts()
    beside_run, beside = _beside(runs, owner)
    return {
        "format": FORMAT,
        "level": LEVEL,
        "left_out": int((~shown).sum()),
        "kinds": kinds,
        "settings": _columns(settings, shown)
        | {name: _plain(values[shown]) for name, values in beside.items()}
        | {
            "method": [texts(run.setting.method) for run in first],
            "kind": kind[shown].tolist(),
            "words": [texts(_listed(run.setting)) for run in first],
            "seeds": settings.n_seeds[shown].tolist(),
            "front": front[shown].astype(int).tolist(),
            "probability": _plain(_probabilities(kept, place[owner[by_setting]], kind[shown])),
        },
        # With one seed each, runs are settings: their columns are not written twice.
        "runs": (
            _columns(single, by_setting)
            | {name: _plain(values[by_setting]) for name, values in beside_run.items()}
            if repeated
            else {}
        )
        | _details(kept, texts)
        | {"setting": place[owner[by_setting]].tolist()},
        "texts": texts.all,
    }


class Texts:
    """A list in which every text stands once; a call returns where."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._places: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        """Return the place of ``text``, which joins the list if it is new."""
        place = self._places.setdefault(text, len(self.all))
        if place == len(self.all):
            self.all.append(text)
        return place


def _shown(settings: Estimates, kind: IntArray, methods: IntArray, most: int) -> BoolArray:
    """Choose whole settings: the fronts first, then the others in an order that means nothing."""
    shown = estimates.on_front(settings, kind * (methods.max() + 1) + methods)
    order = np.random.default_rng(0).permutation(settings.n)
    order = order[np.argsort(~shown[order], kind="stable")]
    shown[order[np.cumsum(settings.n_seeds[order]) <= most]] = True
    return shown


def _probabilities(runs: Sequence[Run], owner: IntArray, kind: IntArray) -> FloatArray:
    """Return each shown setting's probability to be on the front of its kind, in two digits."""
    out = np.full(len(kind), np.nan)
    for one in np.unique(kind):
        mine = [run for run, place in zip(runs, owner, strict=True) if kind[place] == one]
        # A seed of its own, so that the same runs give the same page.
        rng = np.random.default_rng(0)
        out[kind == one] = front_probability(mine, n_draws=DRAWS, rng=rng).round(2)
    return out


def _columns(found: Estimates, which: BoolArray | IntArray) -> dict[str, list[float | None]]:
    """Return the measurements in the page's words: accuracy in place of error."""
    error, up, down = "error", True, False
    parts: dict[str, FloatArray] = {
        "epsilon": _significant(found.epsilon),
        "gap": _rounded(found.value["gap"], up),
        "gap_low": _rounded(found.low["gap"], down),
        "gap_high": _rounded(found.high["gap"], up),
        "accuracy": _rounded(1 - found.value[error], down),
        "accuracy_low": _rounded(1 - found.high[error], down),
        "accuracy_high": _rounded(1 - found.low[error], up),
        "coverage": _rounded(found.value["coverage"], down),
        "coverage_low": _rounded(found.low["coverage"], down),
        "coverage_high": _rounded(found.high["coverage"], up),
        "disparity": _rounded(found.value["disparity"], up),
    }
    return {name: _plain(values[which]) for name, values in parts.items()}


def _beside(
    runs: Sequence[Run], owner: IntArray
) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
    """Return the accuracies to read a run's accuracy beside, and their means per setting."""
    of_run = {
        "majority": np.array([1 - run.majority_error for run in runs], float),
        "free": np.array([1 - run.error_without_margin for run in runs], float),
    }
    n = np.bincount(owner)
    return (
        {name: _rounded(values, False) for name, values in of_run.items()},
        {name: _rounded(np.bincount(owner, v) / n, False) for name, v in of_run.items()},
    )


def _details(runs: Sequence[Run], texts: Texts) -> dict[str, list[Any]]:
    sentences: dict[str, str] = {}
    tables, cells = _groups(runs, texts)
    return {
        "seed": [run.setting.seed for run in runs],
        "delta": _plain(np.array([run.delta for run in runs], float)),
        "claim": [texts(_sentence(run.guarantee, sentences)) for run in runs],
        "margin": [texts(_where(run.fairness_kind)) for run in runs],
        "command": [texts(run.command) for run in runs],
        "measured_on": [texts(run.measured_on) for run in runs],
        "learned_from": [texts(run.data_kind) for run in runs],
        "seconds": _plain(np.array([float(f"{run.seconds:.3g}") for run in runs], float)),
        "table": tables,
        "cells": cells,
    }


def _sentence(guarantee: Mapping[str, Any], known: dict[str, str]) -> str:
    """Return the claim as its one sentence; a set of terms that is not whole gets none."""
    key = json.dumps(guarantee, sort_keys=True, default=repr)
    if key not in known:
        try:
            known[key] = str(Guarantee.from_dict(guarantee))
        except (TypeError, ValueError):
            known[key] = NO_CLAIM
    return known[key]


def _kinds(first: Sequence[Run]) -> tuple[list[str], IntArray]:
    """Return what settings must share to be compared, in words, and which of it each one has."""
    seen: dict[tuple[str, str], int] = {}
    found = [seen.setdefault((run.setting.data, run.gap_name), len(seen)) for run in first]
    words = [f"{data}: {gap_words(name)}" for data, name in seen]
    return words, np.array(found, dtype=np.int64)


def gap_words(name: str) -> str:
    """Return the name of a gap as a reader says it.

    Examples
    --------
    >>> gap_words("equalized_odds_pairwise")
    'equalized odds, each group against each other group'
    """
    notion, _, reference = name.rpartition("_")
    return f"{notion.replace('_', ' ')}, each group against {REFERENCES[reference]}"


def _where(name: str) -> str:
    """Return where the margin sits, with what that means if the kind is one of ours."""
    if name not in list(FairnessKind):
        return name
    return f"{name[:1].upper()}{name[1:]}. {FairnessKind(name).words}"


def _listed(setting: Setting) -> str:
    return ", ".join(f"{name}={value}" for name, value in setting.words().items())


def _groups(runs: Sequence[Run], texts: Texts) -> tuple[list[int], list[list[float | None]]]:
    """Return per run the heading of its group table, and the cells: value, low and high of each.

    A rate among ``rows`` people gets the exact interval. The error is among those who were
    answered, so it gets the interval of that many rows; without rows there is none, nor of what
    was drawn.
    """
    heads, flat, rows = [], [], []
    for run in runs:
        rates = list(dict.fromkeys(key for group in run.groups for key in group))
        rates = [key for key in rates if key not in ("name", "rows")]
        names = [str(group.get("name", "")) for group in run.groups]
        sizes = [_number(group.get("rows")) for group in run.groups]
        heads.append(texts(json.dumps([names, [n if n == n else None for n in sizes], rates])))
        for group, size in zip(run.groups, sizes, strict=True):
            covered = _number(group.get("coverage", 1.0))
            for key in rates:
                flat.append(_number(group.get(key)))
                rows.append(_people(key, size, covered))
    value, low, high = _with_interval(np.array(flat, float), np.array(rows, float))
    cells = np.column_stack([value, low, high]).round(4) if flat else np.empty((0, 3))
    plain = [[None if math.isnan(x) else x for x in row] for row in cells.tolist()]
    out, at = [], 0
    for run, head in zip(runs, heads, strict=True):
        n = len(run.groups) * len(json.loads(texts.all[head])[2])
        out.append([x for row in plain[at : at + n] for x in row])
        at += n
    return heads, out


def _people(rate: str, size: float, covered: float) -> float:
    """Return among how many people a rate was found; NaN of a share of what was drawn."""
    if rate in OF_GENERATED:
        return math.nan
    return size * covered if rate in ("error", "selection_rate") else size


def _with_interval(value: FloatArray, rows: FloatArray) -> tuple[FloatArray, ...]:
    low, high = np.full(len(value), np.nan), np.full(len(value), np.nan)
    sure = (value >= 0) & (value <= 1) & (rows >= 0) & np.isfinite(rows)
    n = np.rint(rows[sure])
    low[sure], high[sure] = clopper_pearson(np.rint(value[sure] * n), n, error=1 - LEVEL)
    return value, low, high


def _number(value: Plain) -> float:
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if known and value is not None else math.nan


def _rounded(values: FloatArray, up: bool) -> FloatArray:
    # Nine digits first: 0.07 must not become 0.070001 for the sake of its seventeenth digit.
    scaled = np.round(values * 10**DIGITS, 3)
    return (np.ceil(scaled) if up else np.floor(scaled)) / 10**DIGITS


def _significant(values: FloatArray) -> FloatArray:
    """Round up to six significant digits."""
    out = values.copy()
    some = np.isfinite(values) & (values > 0)
    scale = 10.0 ** (DIGITS - 1 - np.floor(np.log10(values[some])))
    out[some] = np.ceil(np.round(values[some] * scale, 3)) / scale
    return out


def _plain(values: FloatArray) -> list[float | None]:
    return [x if math.isfinite(x) else None for x in values.tolist()]

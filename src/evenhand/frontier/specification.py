"""What is acceptable, in a short TOML; whether some run meets it, and what each bound costs."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

import numpy as np
from scipy import stats

from evenhand import _checks
from evenhand._notions import NOTIONS, called_now
from evenhand._words import REFERENCES
from evenhand.fairness import FairnessKind
from evenhand.fairness.notions import notion_named
from evenhand.frontier.pareto import by_setting
from evenhand.frontier.run import Run

_KEEPS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "epsilon": lambda value, bound: value <= bound,
    "delta": lambda value, bound: value <= bound,
    "gap": lambda value, bound: value <= bound,
    "accuracy": lambda value, bound: value >= bound,
    "coverage": lambda value, bound: value >= bound,
}
"""The bounds that are numbers, and what keeping each means. NaN keeps none."""


@dataclass(frozen=True, kw_only=True)
class Specification:
    """What is acceptable. A bound that is not given does not bind.

    Parameters
    ----------
    epsilon, delta, gap : float, optional
        The largest that is acceptable.
    accuracy, coverage : float, optional
        The smallest.
    fairness, reference : str
        What the gap is a gap of (the notion with hyphens or underscores, or
        ``"package.module:Class"``, which is imported); runs that measured
        another are not looked at where a gap is given.
    methods : tuple of str, optional
        The methods that are allowed.
    group_at_prediction : bool
        Whether a prediction may need the group of the person it is about.
    data : str, optional
        The data set; needed only if the frontier has several.
    """

    epsilon: float | None = None
    delta: float | None = None
    gap: float | None = None
    accuracy: float | None = None
    coverage: float | None = None
    fairness: str = "demographic_parity"
    reference: str = "rest"
    methods: tuple[str, ...] | None = None
    group_at_prediction: bool = True
    data: str | None = None

    def __post_init__(self) -> None:
        if self.epsilon is not None:
            _checks.positive("epsilon", self.epsilon, "No run on private data has epsilon 0.")
        if self.delta is not None:
            _checks.open_unit("delta", self.delta)
        for name in ("gap", "accuracy", "coverage"):
            if getattr(self, name) is not None:
                _checks.closed_unit(name, getattr(self, name))
        key = str(self.fairness).replace("-", "_")  # a grid spells it with hyphens
        if ":" in key:
            key = notion_named(self.fairness).name.replace("-", "_")
        object.__setattr__(self, "fairness", key)
        _checks.one_of("fairness", key, [name.replace("-", "_") for name in NOTIONS])
        _checks.one_of("reference", self.reference, REFERENCES)
        _checks.flag("group_at_prediction", self.group_at_prediction)
        if self.methods is not None:
            methods: Any = self.methods
            if isinstance(methods, str) or not all(isinstance(m, str) for m in methods):
                raise TypeError(f'methods must be a list of names, got {methods!r}. Write ["..."].')
            if not methods:
                raise ValueError("methods is empty, so nothing is allowed. Leave it out for all.")
            object.__setattr__(self, "methods", tuple(methods))

    @classmethod
    def read(cls, path: str | Path) -> Specification:
        """Read a TOML file; an unknown key or an impossible value names the file."""
        file = Path(path)
        try:
            with file.open("rb") as stream:
                values = tomllib.load(stream)
            known = [field.name for field in fields(cls)]
            for key in values:
                if key not in known:
                    hint = called_now(key) or _checks.did_you_mean(key, known)
                    raise ValueError(
                        f"there is no key {key!r}.{hint} The keys are {', '.join(known)}"
                    )
            return cls(**values)
        except (TypeError, ValueError, RecursionError) as error:  # tomllib's own is a ValueError
            raise ValueError(f"{file}: {error}") from error

    @property
    def gap_name(self) -> str:
        """The gap that is meant, in the names of ``Run.gap_name``."""
        return f"{self.fairness}_{self.reference}"

    @property
    def bounds(self) -> dict[str, float]:
        """The bounds that are numbers."""
        given = {name: getattr(self, name) for name in _KEEPS}
        return {name: float(value) for name, value in given.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A setting as a specification sees it: its mean over seeds, and how sure that is."""

    runs: tuple[Run, ...]
    """Its seeds."""
    values: Mapping[str, float]
    """Epsilon and delta at their largest over seeds, the rest at its mean."""
    intervals: Mapping[str, tuple[float, float]]
    """At 95 %: Student's over seeds; with one seed, of its test rows."""
    broken: tuple[str, ...]
    """What it does not keep: names of bounds, "methods", "group_at_prediction"."""
    unsure: tuple[str, ...]
    """Bounds that its interval straddles."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        first = self.runs[0]
        return {
            "method": first.setting.method,
            "arguments": dict(first.setting.arguments),
            "n_seeds": len(self.runs),
            "keys": [run.key for run in self.runs],
            "command": first.command,
            "values": {k: v if math.isfinite(v) else None for k, v in self.values.items()},
            "broken": list(self.broken),
            "unsure": list(self.unsure),
        }


@dataclass(frozen=True, kw_only=True)
class Price:
    """What moving one bound alone would do."""

    bound: str
    asked: Any
    """As the specification has it."""
    best: Any
    """The strictest value that some setting keeps together with all other bounds; None if no value
    of this one bound would help.
    """


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Whether some setting is acceptable, what binds, and what each bound costs."""

    feasible: bool
    acceptable: tuple[Candidate, ...]
    """The settings that keep every bound, the most accurate first."""
    nearest: Candidate | None
    """Where none does: the one that misses by least, allowed methods first. A miss is counted in
    points of a rate, and by the logarithm of the ratio for epsilon and delta; the largest of its
    misses counts.
    """
    binding: tuple[str, ...]
    """Bounds that alone stand in the way: moving one of them is enough. Where no single one is,
    those that the nearest setting breaks.
    """
    prices: tuple[Price, ...]
    """One per bound that is given."""
    notes: tuple[str, ...]
    """What must be known with the answer."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "feasible": self.feasible,
            "n_acceptable": len(self.acceptable),
            "best": self.acceptable[0].to_dict() if self.acceptable else None,
            "nearest": None if self.nearest is None else self.nearest.to_dict(),
            "binding": list(self.binding),
            "prices": [asdict(price) for price in self.prices],
            "notes": list(self.notes),
        }


def check(specification: Specification, runs: Sequence[Run]) -> Answer:
    """Return whether some setting keeps every bound, and the price of each bound.

    Parameters
    ----------
    specification : Specification
    runs : sequence of Run
        Points that others published are left out: nobody can train them here.

    Raises
    ------
    ValueError
        If there is nothing to look at, or a name in the specification is not in the runs.
    """
    chosen = _relevant(specification, runs)
    candidates = [
        _candidate(specification, tuple(chosen[i] for i in rows))
        for rows in by_setting(chosen).values()
    ]
    acceptable = sorted(
        (c for c in candidates if not c.broken),
        key=lambda c: (-c.values["accuracy"] if c.values["accuracy"] >= 0 else 1, c.runs[0].key),
    )
    nearest = None if acceptable else min(candidates, key=lambda c: _miss(specification, c))
    prices = tuple(_price(specification, candidates, name) for name in _given(specification))
    binding: tuple[str, ...] = ()
    if nearest is not None:
        alone = tuple(price.bound for price in prices if price.best is not None)
        binding = alone or nearest.broken
    shown = acceptable[0] if acceptable else nearest
    return Answer(
        feasible=bool(acceptable),
        acceptable=tuple(acceptable),
        nearest=nearest,
        binding=binding,
        prices=prices,
        notes=_notes(chosen, shown),
    )


def _relevant(specification: Specification, runs: Sequence[Run]) -> list[Run]:
    """Leave out what was published by others, other data, and gaps of another name."""
    chosen = [run for run in runs if run.data_kind != "published"]
    if not chosen:
        raise ValueError("There are no runs to check. Make a frontier first: evenhand frontier.")
    names = sorted({run.setting.data for run in chosen})
    if specification.data is not None:
        _checks.one_of("data", specification.data, names)
        chosen = [run for run in chosen if run.setting.data == specification.data]
    elif len(names) > 1:
        raise ValueError(
            f"This frontier is of several data sets: {', '.join(names)}. Say which one is meant, "
            f'with data = "{names[0]}".'
        )
    methods = sorted({run.setting.method for run in chosen})
    for method in specification.methods or ():
        _checks.one_of("methods", method, methods)
    if specification.gap is not None:
        gaps = sorted({run.gap_name for run in chosen})
        chosen = [run for run in chosen if run.gap_name == specification.gap_name]
        if not chosen:
            raise ValueError(
                f"No run measured the gap {specification.gap_name!r}; they measured "
                f"{', '.join(gaps)}. Set fairness and reference, or make a frontier for this one."
            )
    return chosen


def _candidate(specification: Specification, runs: tuple[Run, ...]) -> Candidate:
    values, intervals = {}, {}
    for name in _KEEPS:
        seen = np.array([_value(run, name) for run in runs])
        promised = name in ("epsilon", "delta")
        values[name] = float(seen.max() if promised else seen.mean())
        intervals[name] = _interval(runs, name, seen)
    broken = [n for n, b in specification.bounds.items() if not _KEEPS[n](values[n], b)]
    unsure = [
        n for n, (low, high) in intervals.items() if low < specification.bounds.get(n, low) < high
    ]
    if specification.methods is not None and runs[0].setting.method not in specification.methods:
        broken.append("methods")
    needs = any(FairnessKind(run.fairness_kind).needs_group for run in runs)
    if needs and not specification.group_at_prediction:
        broken.append("group_at_prediction")
    return Candidate(
        runs=runs,
        values=values,
        intervals=intervals,
        broken=tuple(broken),
        unsure=tuple(unsure),
    )


def _value(run: Run, name: str) -> float:
    return 1 - run.error if name == "accuracy" else float(getattr(run, name))


def _interval(runs: tuple[Run, ...], name: str, seen: Any) -> tuple[float, float]:
    """Return where the mean may be, at 95 %; its own value where there is nothing to tell."""
    mean, n = float(seen.mean()), len(runs)
    if name in ("epsilon", "delta"):
        return (mean, mean)
    if n > 1:
        half = float(stats.t.ppf(0.975, n - 1) * seen.std(ddof=1) / math.sqrt(n))
        return (max(0.0, mean - half), min(1.0, mean + half))
    if name == "accuracy":
        low, high = runs[0].error_interval
        return (1 - high, 1 - low)
    return runs[0].gap_interval if name == "gap" else (mean, mean)


def _given(specification: Specification) -> list[str]:
    """Return the names of the bounds that bind."""
    names = list(specification.bounds)
    names += ["methods"] if specification.methods is not None else []
    return names + ([] if specification.group_at_prediction else ["group_at_prediction"])


def _price(specification: Specification, candidates: Sequence[Candidate], name: str) -> Price:
    """Return how strict a bound could be for the settings that keep all the others."""
    others = [c for c in candidates if set(c.broken) <= {name}]
    best: Any = None
    if name == "methods":
        best = sorted({c.runs[0].setting.method for c in others}) or None
    elif name == "group_at_prediction":
        best = bool(all(c.broken for c in others)) if others else None
    else:
        seen = [c.values[name] for c in others if math.isfinite(c.values[name])]
        if seen:
            best = max(seen) if name in ("accuracy", "coverage") else min(seen)
    return Price(bound=name, asked=getattr(specification, name), best=best)


def _miss(specification: Specification, candidate: Candidate) -> tuple[bool, float, str]:
    """How far a setting is from being acceptable; a method that is not allowed is farthest."""
    worst = 0.0
    for name in candidate.broken:
        bound = specification.bounds.get(name)
        if bound is None:
            continue
        value = candidate.values[name]
        if math.isnan(value):
            miss = math.inf
        elif name in ("epsilon", "delta"):
            miss = math.log(value / bound)
        else:
            miss = abs(value - bound)
        worst = max(worst, miss)
    forbidden = bool({"methods", "group_at_prediction"} & set(candidate.broken))
    return (forbidden, worst, candidate.runs[0].key)


def _notes(runs: Sequence[Run], shown: Candidate | None) -> tuple[str, ...]:
    notes = []
    kinds = {run.data_kind for run in runs}
    if kinds != {"private"}:
        what = " and ".join(sorted(kinds - {"private"}))
        notes.append(
            f"{'Some of these' if 'private' in kinds else 'These'} runs were made on a {what}, not "
            f"on the private data: they say what may be expected there, not what is so."
        )
    if any(run.measured_on == "private holdout, not covered" for run in runs):
        notes.append(
            "Measured on private rows without noise: these numbers, and a choice by them, are not "
            "covered by any guarantee."
        )
    if shown is not None and shown.unsure:
        n = len(shown.runs)
        notes.append(
            f"The {'nearest' if shown.broken else 'best'} setting is judged by its mean over {n} "
            f"seed{'s' * (n > 1)}; its 95 % interval straddles the bound on "
            f"{' and '.join(shown.unsure)}, so another measurement may fall on the other side."
        )
    return tuple(notes)

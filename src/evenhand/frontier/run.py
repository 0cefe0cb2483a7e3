"""One point of the frontier: what was trained, its price, and what was measured on test rows."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, TypeAlias

from evenhand import _checks
from evenhand._notions import NOTIONS, called_now
from evenhand._words import REFERENCES
from evenhand.privacy.guarantee import AS_PRINTED

Plain: TypeAlias = str | int | float | bool | None

OBJECTIVES: Final = ("epsilon", "gap", "error", "coverage")
"""What a frontier trades off. Coverage is the better the larger, the others the smaller."""

OF_GENERATED: Final = ("share_asked", "share_shown", "recognised")
"""What is known of a group in drawn pictures."""

FORMAT: Final = 3
"""Version of what a key is made of, and of a stored run; up to 2 ``fairness`` was ``notion``."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What was asked for: everything that decides a run, its seed included."""

    data: str
    """Name of the data set or file."""
    fingerprint: str
    """Public fingerprint of what the data are: names of columns, roles and split. Never a hash of
    private rows, which would be a release.
    """
    method: str
    """As the command line names it: "fairpate", "pate", "dpsgd", ..."""
    arguments: Mapping[str, Plain]
    """Every argument that differs from the method's default, epsilon and margin included."""
    seed: int
    """Seeds split and models, never the privacy noise."""

    def __post_init__(self) -> None:
        for name in ("data", "fingerprint", "method"):
            if not isinstance(getattr(self, name), str) or not getattr(self, name):
                raise ValueError(f"{name} must be text that is not empty, got {name}={name!r}.")
        for name, value in self.arguments.items():
            if name == "notion":
                raise ValueError(
                    f"arguments has the key {name!r} of an earlier version.{called_now(name)}"
                )
            if not isinstance(value, Plain):
                raise TypeError(f"arguments must be plain values, got {name}={value!r}.")
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"arguments must be finite numbers, got {name}={value!r}.")
        object.__setattr__(self, "arguments", dict(sorted(self.arguments.items())))
        object.__setattr__(self, "seed", _checks.at_least("seed", self.seed, 0))

    @property
    def key(self) -> str:
        """A short name that two settings share only if they are the same (SHA-256, 32 digits)."""
        said = json.dumps([FORMAT, *self.to_dict().values()], separators=(",", ":"))
        return hashlib.sha256(said.encode()).hexdigest()[:32]

    @property
    def own_notion(self) -> bool:
        """Whether it names a notion of one's own, ``"package.module:Class"``."""
        return any(":" in str(self.arguments.get(name)) for name in ("fairness", "gap_of"))

    def words(self) -> dict[str, str]:
        """Return the values of its arguments in words, whole numbers without a point."""
        given = dict(self.arguments)
        own = json.loads(str(given.pop("setting", "") or "{}"))  # of a generator
        given |= {f"setting.{name}": value for name, value in own.items()}
        return {
            name: str(int(value) if isinstance(value, float) and value.is_integer() else value)
            for name, value in given.items()
        }

    def without_seed(self) -> tuple[str, str, str, str]:
        """Return what the repetitions of one setting over seeds have in common."""
        return (self.data, self.fingerprint, self.method, json.dumps(self.arguments))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, always in one order."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Setting:
        """Read what ``to_dict`` wrote."""
        return cls(**values)


@dataclass(frozen=True, kw_only=True)
class Run:
    """A setting, and what became of it.

    Parameters
    ----------
    setting : Setting
    epsilon : float
        Of the claim; infinite where nothing is promised, at ``delta``.
    delta : float
    error, gap, coverage : float
        On test rows, in [0, 1]: share of wrong labels among the answered, the gap that the run's
        notion names, share of rows that got a label. NaN where it is not defined.
    error_interval, gap_interval : tuple of (float, float)
        At 95 %, for the test rows of this run.
    mu_squared : float or None
        Cost of the model in Gaussian DP where it is known, for adding up.
    fairness_kind : str
        Where the margin sits, in the words of ``FairnessKind``.
    groups : tuple of mapping
        Per group: name, rows, error, selection rate and coverage, as plain values. Of drawn
        pictures also the share that was asked for, the share of those that show it to a classifier
        of real ones, and how many real ones of it that classifier recognises.
    guarantee : mapping
        ``Guarantee.to_dict()``.
    command : str
        The command that trains it.
    measured_on : {"public rows", "private holdout, not covered", "private holdout, with noise"}
        Whether showing the measurements tells something about private rows.
    seconds : float
        Wall clock of this run, shared work divided evenly; NaN where it is not known.
    gap_name : str
        What ``gap`` is a gap of, in the names of ``FairnessReport``: a notion and a reference.
    data_kind : {"private", "public stand-in", "synthetic stand-in", "published"}
        Whose rows the model learned from. "published" marks a point that others reported: we ran
        nothing, and claim nothing.
    majority_error, error_without_margin : float
        On the same rows: of always predicting their majority class, and of the same model without
        its margin where that is free. NaN where it is not known.
    no_better : bool or None
        Whether these rows do not show the model to be better than the majority class; None where
        nobody looked.

    Privacy
    -------
    On private data a run is a release of its own: ``m`` runs are ``m`` releases, and their
    measurements on a holdout are covered only where ``measured_on`` says so.
    """

    setting: Setting
    epsilon: float
    delta: float
    error: float
    gap: float
    coverage: float
    error_interval: tuple[float, float]
    gap_interval: tuple[float, float]
    mu_squared: float | None
    fairness_kind: str
    groups: tuple[Mapping[str, Plain], ...]
    guarantee: Mapping[str, Any]
    command: str
    measured_on: str
    seconds: float
    gap_name: str = "demographic_parity_rest"
    data_kind: str = "private"
    majority_error: float = math.nan
    error_without_margin: float = math.nan
    no_better: bool | None = None

    def __post_init__(self) -> None:
        for name in ("error", "gap", "coverage", *_YARDSTICK):
            value = getattr(self, name)
            if not (math.isnan(value) or 0 <= value <= 1):
                raise ValueError(f"{name} must lie in [0, 1], got {name}={value!r}.")
        if not self.epsilon > 0:
            raise ValueError(f"epsilon must be greater than 0, got epsilon={self.epsilon!r}.")
        _checks.one_of("measured_on", self.measured_on, MEASURED_ON)
        if not self.setting.own_notion:
            _checks.one_of("gap_name", self.gap_name, gap_names())
        _checks.one_of("data_kind", self.data_kind, DATA_KINDS)

    @property
    def key(self) -> str:
        """The key of its setting."""
        return self.setting.key

    @property
    def as_printed(self) -> bool:
        """Whether it ran a paper's method as it is printed, whose claim does not hold."""
        return AS_PRINTED in str(self.guarantee.get("accounting"))

    @property
    def disparity(self) -> float:
        """How far groups of drawn pictures are from the shares asked for: in [0, sqrt(2)], best 0.

        The L2 norm of the shares that they show, less those; NaN where it is not known.
        """
        pairs = [(group.get("share_shown"), group.get("share_asked")) for group in self.groups]
        known = [float(a) - float(b) for a, b in pairs if a is not None and b is not None]
        return math.hypot(*known) if known and len(known) == len(pairs) else math.nan

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; an infinite epsilon and NaN become None."""
        out = {field.name: getattr(self, field.name) for field in fields(self)}
        out["setting"] = self.setting.to_dict()
        for name in _MAY_BE_UNKNOWN:
            out[name] = out[name] if math.isfinite(out[name]) else None
        for name in ("error_interval", "gap_interval"):
            out[name] = [x if math.isfinite(x) else None for x in out[name]]
        out["groups"] = [dict(group) for group in self.groups]
        out["guarantee"] = dict(self.guarantee)
        return out

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Run:
        """Read what ``to_dict`` wrote."""
        given = dict(values)
        given["setting"] = Setting.from_dict(given["setting"])
        given["epsilon"] = math.inf if given["epsilon"] is None else given["epsilon"]
        for name in set(_MAY_BE_UNKNOWN) - {"epsilon"}:
            if name not in _YARDSTICK or name in given:  # runs kept by earlier versions lack these
                given[name] = math.nan if given[name] is None else given[name]
        for name in ("error_interval", "gap_interval"):
            low, high = (math.nan if x is None else x for x in given[name])
            given[name] = (low, high)
        given["groups"] = tuple(given["groups"])
        return cls(**given)


MEASURED_ON: Final = (
    "public rows",
    "private holdout, not covered",
    "private holdout, with noise",
)


def gap_names() -> list[str]:
    """Return what a gap can be called: the key of a notion and a reference."""
    return [f"{name.replace('-', '_')}_{of}" for name in NOTIONS for of in REFERENCES]


DATA_KINDS: Final = ("private", "public stand-in", "synthetic stand-in", "published")

_YARDSTICK: Final = ("majority_error", "error_without_margin")
_MAY_BE_UNKNOWN: Final = (
    "epsilon",
    "delta",
    "error",
    "gap",
    "coverage",
    "seconds",
    *_YARDSTICK,
)

"""The methods of a frontier: one line each, and the arguments that each of them reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from evenhand import _checks, estimators
from evenhand.estimators import POINTS
from evenhand.estimators.plan import ANSWERS
from evenhand.fairness.gate import RULES
from evenhand.fairness.notions import NOTIONS, REFERENCES, notion_named
from evenhand.frontier.run import Plain, Setting
from evenhand.privacy import Budget, ConfidentGNMax, FloatNoise, GNMax, InversionNoise
from evenhand.voting import Mechanism

DELTA: Final = 1e-5

_BUDGET: Final = ("epsilon", "delta")
_VOTES: Final = ("noise", "n_teachers", "sigma", "threshold", "sigma_check")
_MARGIN: Final = ("margin", "reference")


@dataclass(frozen=True, kw_only=True)
class Method:
    """What a sweep must know of an estimator.

    Parameters
    ----------
    estimator : str
        Its class in ``evenhand.estimators``.
    reads : tuple of str
        Arguments it reads, ``reject_margin`` aside, which is about any model's decisions.
    needs : tuple of str
        Those it cannot do without.
    """

    estimator: str
    reads: tuple[str, ...]
    needs: tuple[str, ...]


METHODS: Final[Mapping[str, Method]] = {
    "fairpate": Method(
        estimator="FairPATEClassifier",
        reads=(*_BUDGET, *_VOTES, *_MARGIN, "notion", "answers", "rule"),
        needs=("epsilon", "margin"),
    ),
    "pate": Method(
        estimator="PATEClassifier", reads=(*_BUDGET, *_VOTES, "answers"), needs=("epsilon",)
    ),
    "intervention": Method(
        estimator="InterventionClassifier",
        reads=(*_BUDGET, *_VOTES, *_MARGIN, "at"),
        needs=("epsilon", "margin", "at"),
    ),
    "dpsgd": Method(estimator="DPSGDClassifier", reads=(*_BUDGET, *_MARGIN), needs=("epsilon",)),
    "nonprivate": Method(estimator="NonPrivateClassifier", reads=(), needs=()),
    "fair-only": Method(estimator="FairOnlyClassifier", reads=_MARGIN, needs=("margin",)),
}
"""By the names of the command line. One more method is one more line here."""

WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "method": tuple(METHODS),
    "notion": tuple(NOTIONS),
    "reference": REFERENCES,
    "rule": RULES,
    "answers": ANSWERS,
    "noise": ("exact", "float"),
    "at": tuple(POINTS),
}
"""Arguments that are words, and which."""

NUMBERS: Final = (
    "epsilon",
    "delta",
    "margin",
    "n_teachers",
    "sigma",
    "threshold",
    "sigma_check",
    "reject_margin",
)
ARGUMENTS: Final = (*WORDS, *NUMBERS)
"""Everything that a grid may vary, in the order in which it varies: the last one fastest."""

DEFAULTS: Final[Mapping[str, Plain]] = {
    "delta": DELTA,
    "noise": "exact",
    "notion": "demographic-parity",
    "reference": "rest",
    "rule": "sound",
}


def check_value(name: str, value: Plain) -> Plain:
    """Return the value of an argument, or say what is wrong with it."""
    if name in WORDS:
        return _checks.one_of(name, str(value), WORDS[name])
    if isinstance(value, str) or value is None:
        raise TypeError(f"{name} must be a number, got {value!r}.")
    if name == "n_teachers":
        return _checks.at_least(name, value, 1)  # type: ignore[arg-type]  # it checks the type
    if name in ("margin", "reject_margin"):
        return _checks.closed_unit(name, value)
    if name == "delta":
        return _checks.open_unit(name, value)
    return _checks.positive(name, value)


def arguments_of(method: str, values: Mapping[str, Plain]) -> dict[str, Plain]:
    """Keep what the method reads and what differs from its default; refuse what is missing.

    Raises
    ------
    ValueError
        For an argument that the method needs, or half a noisy threshold.
    """
    known = METHODS[method]
    reads = (*known.reads, "reject_margin")
    kept = {
        name: value
        for name, value in values.items()
        if name in reads and value != DEFAULTS.get(name)
    }
    for name in known.needs:
        if name not in kept:
            raise ValueError(
                f"The method {method!r} needs {name}, and the grid gives none. Add a line such as "
                f"{name} = {_EXAMPLES[name]}."
            )
    half = {"threshold", "sigma_check"} & set(kept)
    if half and not {"threshold", "sigma_check", "sigma"} <= set(kept):
        raise ValueError(
            f"A noisy threshold needs threshold, sigma_check and sigma together; the grid gives "
            f"{', '.join(sorted(half | ({'sigma'} & set(kept))))} alone. Give all three, or sigma "
            f"alone for a noisy maximum without it."
        )
    if kept.get("answers") == "shares" and "sigma" in kept:
        raise ValueError(
            "answers = 'shares' spends the budget on all public rows alike, and sigma is the noise "
            "of labels. Leave out sigma, threshold and sigma_check, or answers."
        )
    return kept


def estimator_of(setting: Setting, *, teachers: Any = None) -> Any:
    """Return the unfitted estimator that a setting stands for.

    ``teachers`` train the ensemble, for the methods that have one.
    """
    known = METHODS[setting.method]
    given = {**DEFAULTS, **setting.arguments}
    made: dict[str, Any] = {"random_state": setting.seed}
    if "epsilon" in known.reads:
        made["budget"] = Budget(epsilon=float(given["epsilon"]), delta=float(given["delta"]))  # type: ignore[arg-type]  # checked when the grid was read
    if "noise" in known.reads:
        made["noise"] = InversionNoise() if given["noise"] == "exact" else FloatNoise()
    if "margin" in known.reads and "margin" in given:
        made["fairness"] = notion_of(setting)
    if "n_teachers" in known.reads:
        made |= {
            "n_teachers": given.get("n_teachers"),
            "mechanism": _mechanism(given),
            "teachers": teachers,
        }
    for name in ("answers", "rule", "at"):
        if name in known.reads and name in given:
            made[name] = given[name]
    return getattr(estimators, known.estimator)(**made)


def notion_of(setting: Setting) -> Any:
    """Return the notion whose gap is measured, with the margin, or 0 where none is kept."""
    given = {**DEFAULTS, **setting.arguments}
    kind = notion_named(str(given["notion"]))
    return kind(margin=float(given.get("margin") or 0.0), reference=str(given["reference"]))


def _mechanism(given: Mapping[str, Plain]) -> Mechanism | None:
    sigma, threshold, check = (given.get(n) for n in ("sigma", "threshold", "sigma_check"))
    if sigma is None:
        return None
    if threshold is None or check is None:
        return GNMax(sigma=float(sigma))
    return ConfidentGNMax(threshold=float(threshold), sigma_check=float(check), sigma=float(sigma))


_EXAMPLES: Final = {
    "epsilon": "[1, 2, 4]",
    "margin": "[0.02, 0.05, 0.1]",
    "at": '["aggregator", "S_in"]',
}

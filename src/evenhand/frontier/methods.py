"""The methods of a frontier: one line each, and the arguments that each of them reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from evenhand import _checks, methods
from evenhand.baselines import POINTS
from evenhand.estimators.plan import ANSWERS
from evenhand.fairness import SCORE_NOTION
from evenhand.fairness.gate.demographic_parity import RULES
from evenhand.fairness.notions import NOTIONS, REFERENCES, notion_named
from evenhand.frontier.run import Plain, Setting
from evenhand.privacy import Budget, ConfidentGNMax, FloatNoise, GNMax, InversionNoise
from evenhand.voting import Mechanism

DELTA: Final = 1e-5

_BUDGET: Final = ("epsilon", "delta")
_VOTES: Final = ("noise", "n_teachers", "sigma", "threshold", "sigma_check")
_MARGIN: Final = ("margin", "reference")
_CONSTRAINTS: Final = ("demographic-parity", "equalized-odds", "error-parity")


@dataclass(frozen=True, kw_only=True)
class Method:
    """What a sweep must know of an estimator.

    Parameters
    ----------
    estimator : str
        Its class in ``evenhand.estimators``.
    reads : tuple of str
        Arguments it reads, those aside that are about any model's decisions (``OF_ANY``).
    needs : tuple of str
        Those it cannot do without.
    notions : tuple of str
        What it can hold equal, where it holds anything.
    protects : {"record", "attribute"}
        What its guarantee is about, where it has one.
    in_words : bool
        Whether it is told margin and notion in words, and not by ``fairness=``.
    fixed : mapping
        Arguments that the name itself sets.
    """

    estimator: str
    reads: tuple[str, ...]
    needs: tuple[str, ...]
    notions: tuple[str, ...] = ("demographic-parity",)
    protects: str = "record"
    in_words: bool = False
    fixed: Mapping[str, str] = field(default_factory=dict)

    @property
    def private(self) -> bool:
        """Whether it promises privacy."""
        return "epsilon" in self.reads

    @property
    def teachers(self) -> bool:
        """Whether it asks teachers, whose records can be dealt by unit."""
        return "n_teachers" in self.reads

    @property
    def reads_groups(self) -> bool:
        """Whether its training may tell the groups of the private rows apart."""
        return bool({"margin", "fairness_weight"} & set(self.reads))


_SF_PATE: Final[Mapping[str, Any]] = {
    "estimator": "SFPATEClassifier",
    "reads": (*_BUDGET, "noise", "n_teachers", "margin", "notion"),
    "needs": ("epsilon", "margin"),
    "notions": (*_CONSTRAINTS, SCORE_NOTION),
    "protects": "attribute",
    "in_words": True,
}

METHODS: Final[Mapping[str, Method]] = {
    "fairpate": Method(
        estimator="FairPATEClassifier",
        reads=(*_BUDGET, *_VOTES, *_MARGIN, "notion", "answers", "rule"),
        needs=("epsilon", "margin"),
        notions=tuple(NOTIONS),
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
    "dp-fermi": Method(
        estimator="DPFERMIClassifier",
        reads=(*_BUDGET, "fairness_weight", "notion"),
        needs=("epsilon",),
        notions=("demographic-parity", "equalized-odds"),
        in_words=True,
    ),
    "dp-post-processing": Method(
        estimator="DPPostProcessingClassifier",
        reads=(*_BUDGET, "margin", "notion"),
        needs=("epsilon", "margin"),
        notions=("demographic-parity", "equalized-odds"),
        in_words=True,
    ),
    "sf-student": Method(fixed={"variant": "student"}, **_SF_PATE),
    "sf-teachers": Method(fixed={"variant": "teachers"}, **_SF_PATE),
    "m": Method(
        estimator="RandomizedResponseClassifier",
        reads=(*_BUDGET, *_MARGIN, "notion"),
        needs=("epsilon", "margin"),
        notions=_CONSTRAINTS,
        protects="attribute",
    ),
    "pf-ld": Method(
        estimator="PFLDClassifier",
        reads=(*_BUDGET, *_MARGIN, "notion"),
        needs=("epsilon", "margin"),
        notions=_CONSTRAINTS,
        protects="attribute",
    ),
    "nonprivate": Method(estimator="NonPrivateClassifier", reads=(), needs=()),
    "fair-only": Method(
        estimator="FairOnlyClassifier",
        reads=(*_MARGIN, "notion"),
        needs=("margin",),
        notions=_CONSTRAINTS,
    ),
}
"""By the names of the command line. One more method is one more line here."""

WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "method": tuple(METHODS),
    "notion": (*NOTIONS, SCORE_NOTION),
    "reference": REFERENCES,
    "rule": RULES,
    "answers": ANSWERS,
    "noise": ("exact", "float"),
    "at": tuple(POINTS),
    "gap_of": (*NOTIONS, SCORE_NOTION),
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
    "fairness_weight",
    "reject_margin",
)
OF_ANY: Final = ("gap_of", "reject_margin")
"""What is asked of any model: which gap is measured, and what is refused on the test rows."""

ARGUMENTS: Final = (*WORDS, *NUMBERS)
"""Everything that a grid may vary, in the order in which it varies: the last one fastest."""

DEFAULTS: Final[Mapping[str, Plain]] = {
    "delta": DELTA,
    "noise": "exact",
    "notion": "demographic-parity",
    "reference": "rest",
    "rule": "sound",
    "fairness_weight": 1.0,
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
    if name == "fairness_weight":
        return _checks.non_negative(name, value)
    if name == "delta":
        return _checks.open_unit(name, value)
    return _checks.positive(name, value)


def refuse_unread(methods: Sequence[str], run: Mapping[str, Sequence[Plain]]) -> None:
    """Raise ValueError for an argument that no method of a table reads."""
    for name, values in run.items():
        if name in ("method", *OF_ANY) or any(name in METHODS[m].reads for m in methods):
            continue
        readers = ", ".join(repr(m) for m, known in METHODS.items() if name in known.reads)
        raise ValueError(
            f"{name} = {_said(values)} is not read by method = {_said(methods)} beside it, but by "
            f"{readers}. Leave it out, or take one of them."
        )


def refuse_mixed(methods: Iterable[str]) -> None:
    """Raise ValueError if methods of one grid promise privacy of different things."""
    kinds: dict[str, str] = {}
    for method in methods:
        if METHODS[method].private:
            kinds.setdefault(METHODS[method].protects, method)
    if len(kinds) > 1:
        raise ValueError(
            f"method = {kinds['record']!r} protects the whole record and method = "
            f"{kinds['attribute']!r} the sensitive attribute alone: an epsilon of the one says "
            f"nothing of the other, and they cannot stand on one frontier. Make two grids."
        )


def arguments_of(method: str, values: Mapping[str, Plain]) -> dict[str, Plain]:
    """Keep what the method reads and what differs from its default; refuse what is missing.

    Raises
    ------
    ValueError
        For an argument that the method needs, a notion that it does not know, half a noisy
        threshold, and arguments that exclude each other.
    """
    known = METHODS[method]
    reads = (*known.reads, *OF_ANY)
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
    notion = str(values.get("notion", DEFAULTS["notion"]))
    if notion not in known.notions and ("notion" in known.reads or "margin" in kept):
        raise ValueError(
            f"The method {method!r} holds {' or '.join(map(repr, known.notions))} alone, got "
            f"notion = {notion!r}. Give it a table [[runs]] of its own, or take "
            + ("'sf-student', which knows it." if notion == SCORE_NOTION else "'fairpate', which ")
            + ("" if notion == SCORE_NOTION else "knows all.")
        )
    if "rule" in kept and notion != DEFAULTS["notion"]:
        raise ValueError(
            f"rule = {kept['rule']!r} is about the gate, and notion = {notion!r} has none: it "
            f"binds the student alone. Leave one of them out."
        )
    if kept.get("gap_of") == kept.get("notion", DEFAULTS["notion"]):
        del kept["gap_of"]  # what is measured anyhow
    if measured_notion(kept) == SCORE_NOTION:
        _refuse_without_score(method, kept)
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


def estimator_of(setting: Setting, *, teachers: Any = None, **shared: Any) -> Any:
    """Return the unfitted estimator that a setting stands for.

    ``teachers`` train the ensemble, and ``unit`` names its units, for the methods that have one;
    ``shared`` is told to every estimator.
    """
    known = METHODS[setting.method]
    given = {**DEFAULTS, **setting.arguments}
    unit = shared.pop("unit", None)
    made: dict[str, Any] = {"random_state": setting.seed, **shared, **known.fixed}
    if "epsilon" in known.reads:
        made["budget"] = Budget(epsilon=float(given["epsilon"]), delta=float(given["delta"]))  # type: ignore[arg-type]  # checked when the grid was read
    if "noise" in known.reads:
        made["noise"] = InversionNoise() if given["noise"] == "exact" else FloatNoise()
    if known.in_words:
        made["notion"] = str(given["notion"]).replace("-", "_")
        words = {"margin", "fairness_weight"} & set(known.reads)
        of_sf_pate = known.estimator == _SF_PATE["estimator"]
        spelt = {"margin": "alpha"} if of_sf_pate else {}
        made |= {spelt.get(name, name): float(given[name]) for name in words}  # type: ignore[arg-type]  # a number
        if "fairness_weight" in words and given["notion"] != DEFAULTS["notion"]:
            made["group_shares"] = "released"  # public rows tell no shares given the true label
    elif "margin" in known.reads and "margin" in given:
        made["fairness"] = notion_of(setting)
    if known.teachers:
        made |= {"unit": unit} if unit else {}
        made |= {"n_teachers": given.get("n_teachers"), "teachers": teachers}
        if known.protects == "record":
            made["mechanism"] = _mechanism(given)
        elif made["n_teachers"] is None:
            del made["n_teachers"]  # the estimator's own number
    for name in ("answers", "rule", "at"):
        if name in known.reads and name in given:
            made[name] = given[name]
    return methods.METHODS[known.estimator](**made)


def measured_notion(arguments: Mapping[str, Plain]) -> str:
    """Return the notion whose gap is measured: that which is held, if no other is asked for."""
    held = arguments.get("notion", DEFAULTS["notion"])
    return str(arguments.get("gap_of", held))


def gap_notion_of(setting: Setting) -> Any:
    """Return the notion of decisions whose gap is measured."""
    measured = measured_notion(setting.arguments)
    return notion_of(replace(setting, arguments={**setting.arguments, "notion": measured}))


def notion_of(setting: Setting) -> Any:
    """Return the notion that is held, with the margin, or 0 where none is kept."""
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


def _refuse_without_score(method: str, kept: Mapping[str, Plain]) -> None:
    """Raise ValueError where a model decides by more than the score whose law is compared."""
    by_group = {"dp-post-processing": "", "intervention": "S_post"}
    if by_group.get(method) == kept.get("at", ""):
        who = f"the method {method!r}" + (f" at {kept['at']!r}" if "at" in kept else "")
    elif "reject_margin" in kept:
        who = f"a reject option (reject_margin = {kept['reject_margin']!r})"
    else:
        return
    raise ValueError(
        f"{SCORE_NOTION!r} compares the laws of a model's score, and {who} decides by the group as "
        f"well. Leave out gap_of, or take a method that decides by its score."
    )


def _said(values: Sequence[Plain]) -> str:
    """Write values as they stand in a grid."""
    listed = [repr(value) for value in values]
    return listed[0] if len(listed) == 1 else f"[{', '.join(listed)}]"


_EXAMPLES: Final = {
    "epsilon": "[1, 2, 4]",
    "margin": "[0.02, 0.05, 0.1]",
    "at": '["aggregator", "S_in"]',
}

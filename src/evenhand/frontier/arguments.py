"""What a grid may vary: the arguments, their values, and the estimator that a setting makes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from evenhand import _checks
from evenhand._words import ADMIT_BY, ANSWERS, AUTO, NEIGHBORS, POINTS, REFERENCES
from evenhand.estimators.choosing import Case, choose, only_of_teachers
from evenhand.estimators.spec import MethodSpec
from evenhand.estimators.synthetic_rows import SyntheticRows
from evenhand.fairness.notion import RateNotion
from evenhand.fairness.notions import notion_named, spelled
from evenhand.frontier.generated import BY_JUDGE, GeneratedPictures, GeneratedRows
from evenhand.frontier.judged_rows import (
    BALANCES,
    EVEN_RATES,
    OF_ROWS,
    OF_TABLES,
    SAMPLERS,
    payload_of,
)
from evenhand.frontier.run import Plain, Setting
from evenhand.frontier.subjects import (
    PAYLOADS,
    SUBJECTS,
    draws_rows,
    generators_of,
    subject,
    subject_of,
)
from evenhand.generators.registry import GENERATORS
from evenhand.generators.settings import types_of
from evenhand.methods import METHODS, RENAMED, method_named
from evenhand.privacy import FloatNoise
from evenhand.privacy.noise import InversionNoise

DELTA: Final = 1e-5

WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "reference": REFERENCES,
    "answers": ANSWERS,
    "noise": ("exact", "float"),
    "at": POINTS,
    "admit_by": ADMIT_BY,
    "neighbors": NEIGHBORS,
    "balance": tuple(BALANCES),
    "judge": tuple(BY_JUDGE),
    "sampler": SAMPLERS,
}
"""Arguments that are words, and which."""

SETTING: Final = "setting"
"""The argument whose value is a table of settings of a generator; a setting has it as JSON."""

OF_GENERATORS: Final = ("neighbors", "n_teachers")
"""Settings of a generator that are arguments of a grid."""

OF_PAYLOAD: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    GeneratedRows.payload: {"judge": GeneratedRows.judges},
    GeneratedPictures.payload: {
        "judge": GeneratedPictures.judges,
        "balance": tuple(word for word, even in BALANCES.items() if even is not None),
        **dict.fromkeys(OF_TABLES, ()),
    },
}
"""The words that generators of a kind of data know of an argument, where they are not all."""

FLAGS: Final = ("answer_margin", "use_sensitive")
"""Arguments that are true or false."""

OF_NOTIONS: Final = ("fairness", "gap_of")
"""Arguments that name a notion of fairness, shipped or ``"package.module:Class"``."""

HIDDEN: Final = "hidden"
"""The argument whose value is a network's layers: a width, or a list of widths; 0 and an empty list
are logistic regression. A setting has the widths as text, ``"64,32"``."""

NO_LAYER: Final = "0"

WHOLE: Final[Mapping[str, int]] = {"n_teachers": 1, "n_rows": 1, "degree": 0}
"""Arguments that are whole numbers, and the smallest of each."""

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
    "blind_margin",
    "confidence",
    "gate_level",
    "synthetic_share",
    "amount",
    "n_rows",
    "degree",
)
OF_ANY: Final = ("gap_of", "reject_margin", "blind_margin")
"""What is asked of any model: which gap is measured, what is refused on the test rows, and the
margin that a blind rule around it keeps."""

OF_RULES: Final[Mapping[str, tuple[str, ...]]] = {
    "blind_margin": ("fairness", "reference", "confidence"),
    "reject_margin": ("fairness", "reference"),
}
"""What a rule around a model reads, whatever the method does."""

ARGUMENTS: Final = ("method", "fairness", *WORDS, *FLAGS, "gap_of", HIDDEN, SETTING, *NUMBERS)
"""Everything that a grid may vary, in the order in which it varies: the last one fastest."""

DEFAULTS: Final[Mapping[str, Plain]] = {
    "delta": DELTA,
    "noise": "exact",
    "fairness": "demographic-parity",
    "reference": "rest",
    "fairness_weight": 1.0,
    "answer_margin": True,
    "admit_by": "limit",
    "gate_level": 0.95,
    HIDDEN: NO_LAYER,
    **OF_ROWS,
}


def defaults_of(method: str) -> Mapping[str, Plain]:
    """Return the values that stand for what a setting of a method leaves out."""
    if draws_rows(method):
        return DEFAULTS
    return {name: value for name, value in DEFAULTS.items() if name not in OF_ROWS}


def check_value(name: str, value: Plain | Sequence[int] | Mapping[str, Any]) -> Plain:
    """Return the value of an argument, or say what is wrong with it."""
    if name == "method":
        if str(value) in RENAMED:
            return method_named(name, str(value)).name
        return _checks.one_of(name, str(value), (*SUBJECTS, AUTO))  # those of others came since
    if name in OF_NOTIONS:
        return spelled(str(value))
    if name in WORDS:
        return _checks.one_of(name, str(value), WORDS[name])
    if name in FLAGS:
        return _checks.flag(name, value)
    if name == HIDDEN:
        return _layers(value)
    if name == SETTING:
        return _settings(value)
    if isinstance(value, Sequence | Mapping) or value is None:
        raise TypeError(f"{name} must be a number, got {value!r}.")
    if name in WHOLE:
        return _checks.at_least(name, value, WHOLE[name])  # type: ignore[arg-type]  # it checks the type
    if name in ("margin", "reject_margin", "blind_margin", "amount"):
        return _checks.closed_unit(name, value)
    if name == "fairness_weight":
        return _checks.non_negative(name, value)
    if name in ("delta", "confidence", "gate_level", "synthetic_share"):
        return _checks.open_unit(name, value)
    return _checks.positive(name, value)


def _layers(value: Any) -> str:
    """Return the widths of hidden layers as a setting has them."""
    widths = value if isinstance(value, list | tuple) else [value]
    if isinstance(value, str):  # as it stands in a setting
        widths = [int(width) if width.isdecimal() else width for width in value.split(",")]
    way_out = "One layer is a width such as 16, several are a list in the list: [[64, 32]]."
    checked = [_checks.at_least(HIDDEN, width, 0, way_out) for width in widths]
    return ",".join(str(width) for width in checked if width) or NO_LAYER


def _settings(value: Any) -> str:
    """Return settings of a generator as a setting has them: JSON, sorted by name."""
    given = json.loads(value) if isinstance(value, str) and value.startswith("{") else value
    if not isinstance(given, Mapping):
        raise TypeError(
            f"{SETTING} must be a table of names and values, got {value!r}. For example "
            f"{SETTING} = {{ n_steps = 100 }}; several tables in a list are several values."
        )
    return json.dumps(dict(sorted(given.items()))) if given else ""


def of_payload(run: Mapping[str, Sequence[Plain]], payload: str) -> Mapping[str, Sequence[Plain]]:
    """Return a product of what generators of this kind of data know, with a judge of theirs.

    Raises
    ------
    ValueError
        For a word that is of other data.
    """
    if not any(draws_rows(str(method)) for method in run["method"]):
        return run
    for name, words in OF_PAYLOAD[payload].items():
        for value in run.get(name, ()):
            if value not in words:
                able = f"Take one of {', '.join(map(repr, words))}."
                raise ValueError(
                    f"{name} = {value!r} is not for {PAYLOADS[payload]}, which [data] holds. "
                    f"{able if words else 'Leave it out.'}"
                )
    return (
        run if payload == GeneratedRows.payload else {"judge": GeneratedPictures.judges[:1], **run}
    )


def refuse_unread(methods: Sequence[str], run: Mapping[str, Sequence[Plain]]) -> None:
    """Raise ValueError for an argument that no method of a table reads."""
    payload = payload_of({name: values[0] for name, values in run.items()})
    known = {name: subject(name, payload) for name in methods}
    if "amount" in run and EVEN_RATES not in run.get("balance", ()):
        raise ValueError(
            f"amount = {_said(run['amount'])} says how far of the way to even rates to go, and no "
            f"balance is {EVEN_RATES!r}. Add balance = {EVEN_RATES!r}, or leave amount out."
        )
    for name, values in run.items():
        if _of_a_rule(name, run):
            continue
        if name in ("method", *OF_ANY) or any(_varies(known[m], name) for m in methods):
            continue
        if all(any(known[m].promises(name, value) for m in methods) for value in values):
            continue
        able = (*METHODS, *generators_of(payload))
        readers = ", ".join(repr(m) for m in able if _varies(subject(m, payload), name))
        raise ValueError(
            f"{name} = {_said(values)} is not read by method = {_said(methods)} beside it, but by "
            f"{readers}. Leave it out, or take one of them."
        )


def chosen_methods(
    run: Mapping[str, Sequence[Plain]], units: bool
) -> list[tuple[dict[str, Sequence[Plain]], str]]:
    """Return a product with the methods that fit its cases in the place of ``"auto"``, and why.

    A notion about true classes may need another method than one about decisions, so each has a
    product of its own. ``units`` says whether a unit may have several records. Where no method was
    to be chosen, there is no reason.
    """
    if AUTO not in run["method"]:
        return [(dict(run), "")]
    found: list[tuple[dict[str, Sequence[Plain]], str]] = []
    for notion in run.get("fairness", (DEFAULTS["fairness"],)):
        case = Case(
            margin="margin" in run,
            of_decisions_alone=notion == DEFAULTS["fairness"],
            for_teachers=any(
                only_of_teachers({name: value})
                for name, values in run.items()
                if name not in ("method", *OF_ANY) and not _of_a_rule(name, run)
                for value in values
            ),
            units=units,
        )
        choice = choose(case)
        methods = tuple(dict.fromkeys(choice.method if m == AUTO else m for m in run["method"]))
        own = {name: values for name, values in run.items() if name != "fairness"}
        if notion != DEFAULTS["fairness"]:
            own["fairness"] = (notion,)
        found.append(({**own, "method": methods}, choice.said))
    return found


def refuse_mixed(methods: Iterable[str]) -> None:
    """Raise ValueError if methods of one grid promise privacy of different things."""
    kinds: dict[str, str] = {}
    for method in methods:
        if SUBJECTS[method].private:
            kinds.setdefault(SUBJECTS[method].protects, method)
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
    known = subject_of(method, values)
    if draws_rows(method):
        values = _of_rows(method, values)
    kept = {
        name: value
        for name, value in values.items()
        if value != defaults_of(method).get(name)
        and (name in OF_ANY or _varies(known, name) or _of_a_rule(name, values))
    }
    for name in known.needs:
        if name not in kept:
            raise ValueError(
                f"The method {method!r} needs {name}, and the grid gives none. Add a line such as "
                f"{name} = {_EXAMPLES[name]}."
            )
    notion = str(values.get("fairness", DEFAULTS["fairness"]))
    held = notion_named(notion).name
    holds = _varies(known, "fairness") or "margin" in kept
    if draws_rows(method):  # else they are asked for as often as they are wanted
        holds = kept.get("balance") == EVEN_RATES
    if held not in known.notions and holds:
        able = next(name for name, other in SUBJECTS.items() if held in other.notions)
        raise ValueError(
            f"The method {method!r} holds {' or '.join(map(repr, known.notions))} alone, got "
            f"fairness = {notion!r}. Give it a table [[runs]] of its own, or take {able!r}, which "
            f"knows it."
        )
    if kept.get("gap_of") == kept.get("fairness", DEFAULTS["fairness"]):
        del kept["gap_of"]  # what is measured anyhow
    if of_score(kept):
        _refuse_without_score(method, kept)
    if "reject_margin" in kept and not issubclass(notion_named(notion), RateNotion):
        raise ValueError(
            f"reject_margin refuses decisions, and fairness = {notion!r} compares the "
            f"distributions of a score. Take a notion of decisions, or leave out reject_margin."
        )
    of_gate = [name for name in ("admit_by", "gate_level") if name in kept]
    if of_gate and kept.get("answer_margin") is False:
        raise ValueError(
            f"{' and '.join(of_gate)} {'is' if len(of_gate) == 1 else 'are'} about the gate, and "
            f"answer_margin = false opens none. Give it a table [[runs]] of its own."
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


def _of_rows(method: str, values: Mapping[str, Plain]) -> dict[str, Plain]:
    """Leave out what a generator does not read, so that two settings differ in what is done."""
    if "blind_margin" in values:
        raise ValueError(
            f"blind_margin puts a rule around a classifier, and {method!r} draws rows. Give it a "
            f"table [[runs]] of its own."
        )
    _refuse_settings(method, values)
    given = dict(values)
    if given.get("balance") != EVEN_RATES:
        given.pop("amount", None)
        if "reject_margin" not in given:  # the notion says no more than which gap is measured
            given["gap_of"] = measured_notion(given)
            given.pop("fairness", None)
    return given


def _refuse_settings(method: str, values: Mapping[str, Plain]) -> None:
    """Raise what is wrong with names and types of the settings of a generator."""
    if not values.get(SETTING):
        return
    types = types_of(GENERATORS[payload_of(values), method])
    for name, value in json.loads(str(values[SETTING])).items():
        if name in OF_GENERATORS:
            raise ValueError(
                f"{SETTING} has {name}, which is an argument of a grid. Write it beside: {name} = "
                f"{value!r}."
            )
        if name not in types:
            raise ValueError(
                f"{SETTING} has {name}, which the method {method!r} does not know."
                f"{_checks.did_you_mean(name, types)} Its settings: {', '.join(types)}."
            )
        types[name].check(f"{SETTING} {name}", value)


def estimator_of(setting: Setting, *, unit: str | None = None, **values: Any) -> Any:
    """Return the unfitted estimator that a setting stands for.

    ``unit`` names the units of methods that deal records to teachers by them; ``values`` are
    further arguments of the estimators that have them.
    """
    known = subject_of(setting.method, setting.arguments)
    given: dict[str, Any] = {**defaults_of(setting.method), **setting.arguments}
    if unit:
        values["unit"] = unit
    if "noise" in known.reads:
        values["noise"] = InversionNoise() if given["noise"] == "exact" else FloatNoise()
    held = known.margin == "weight" or (known.margin != "none" and "margin" in given)
    if HIDDEN in given:
        given[HIDDEN] = tuple(filter(None, map(int, str(given[HIDDEN]).split(","))))
    if share := given.get("synthetic_share"):
        values["public"] = SyntheticRows(share=float(share))
    return known.make(
        given,
        fairness=notion_of(setting) if held else None,
        random_state=setting.seed,
        **values,
    )


def measured_notion(arguments: Mapping[str, Plain]) -> str:
    """Return the notion whose gap is measured: that which is held, if no other is asked for."""
    held = arguments.get("fairness", DEFAULTS["fairness"])
    return str(arguments.get("gap_of", held))


def of_score(arguments: Mapping[str, Plain]) -> bool:
    """Return whether the gap that is measured is one of scores, and not of decisions."""
    return not issubclass(notion_named(measured_notion(arguments)), RateNotion)


def gap_notion_of(setting: Setting) -> Any:
    """Return the notion of decisions whose gap is measured."""
    given = {**DEFAULTS, **setting.arguments}
    given.pop("confidence", None)
    return _notion(measured_notion(setting.arguments), given, str(given["reference"]))


def rule_of(setting: Setting) -> Any:
    """Return the notion that a blind rule around the model keeps; None where none was asked for."""
    return _notion_within("blind_margin", {**DEFAULTS, **setting.arguments})


def reject_of(setting: Setting) -> Any:
    """Return the notion that a reject option on the test rows keeps; None where there is none."""
    return _notion_within("reject_margin", {**DEFAULTS, **setting.arguments, "confidence": None})


def notion_of(setting: Setting) -> Any:
    """Return the notion that is held, with the margin, or 0 where none is kept."""
    given = {**DEFAULTS, **setting.arguments}
    reference = SUBJECTS[setting.method].reference or str(given["reference"])
    return _notion(str(given["fairness"]), given, reference)


def _notion_within(margin: str, given: Mapping[str, Any]) -> Any:
    if margin not in given:
        return None
    within = {**given, "margin": given[margin]}
    return _notion(str(given["fairness"]), within, str(given["reference"]))


def _notion(name: str, given: Mapping[str, Plain], reference: str) -> Any:
    return notion_named(name).of(
        margin=float(given.get("margin") or 0.0),
        reference=reference,
        confidence=given.get("confidence"),
    )


def _of_a_rule(name: str, values: Mapping[str, Any]) -> bool:
    """Return whether a rule around the model reads an argument."""
    return any(rule in values and name in read for rule, read in OF_RULES.items())


def _varies(known: MethodSpec, name: str) -> bool:
    """Return whether settings of a method can differ in an argument."""
    if name == "synthetic_share":
        return known.accepts(name)
    return len(known.notions) > 1 if name == "fairness" else name in known.reads


def _refuse_without_score(method: str, kept: Mapping[str, Plain]) -> None:
    """Raise ValueError where a model decides by more than the score that is compared."""
    if subject_of(method, kept).kind_for(kept).needs_group:
        who = f"the method {method!r}" + (f" at {kept['at']!r}" if "at" in kept else "")
    elif "reject_margin" in kept:
        who = f"a reject option (reject_margin = {kept['reject_margin']!r})"
    else:
        return
    raise ValueError(
        f"{measured_notion(kept)!r} compares the distributions of a model's score, and {who} "
        f"decides by the group as well. Leave out gap_of, or take a method that decides by its "
        f"score."
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

"""What goes together in a training run, and the estimator that its options stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from evenhand import _words
from evenhand._checks import non_negative, one_of
from evenhand._notions import NOTIONS, OF_DECISIONS
from evenhand.cli import vocabulary
from evenhand.methods import METHODS

if TYPE_CHECKING:
    from evenhand.cli.tables import TrainingTables
    from evenhand.cli.train_options import TrainOptions
    from evenhand.estimators.spec import MethodSpec
    from evenhand.fairness.notion import Notion


def check(given: TrainOptions) -> None:
    """Refuse options that do not go together, before any file is read."""
    known = given.spec
    _refuse_protection(known, given.protect)
    _refuse_useless(known, given.given)
    _check_words(given)
    _refuse_notion(known, given.fairness)
    if known.private and given.epsilon is None:
        raise ValueError(
            "--epsilon is missing. Say how much privacy loss is allowed, for example "
            "--epsilon 3; for a reference that is not private at all: --method non-private."
        )
    if known.private:
        _budget(given)
    _check_margin(given)
    _check_public(given)
    mechanism = vocabulary.mechanism(
        sigma=given.sigma, threshold=given.threshold, sigma_check=given.sigma_check
    )
    if given.answers == "shares" and mechanism is not None:
        raise ValueError(
            f"--answers shares spends the budget on all public rows alike, and {mechanism!r} "
            f"draws labels. Leave out --sigma, --threshold and --sigma-check."
        )


def estimator_of(given: TrainOptions, tables: TrainingTables) -> Any:
    """Return the estimator that the options stand for."""
    margin = given.margin if given.trains_within_margin else 0.0  # by a weight: equal rates
    own_noise = given.ledger is None and given.noise is not None
    settings = vars(given) | {"hidden": tuple(given.hidden or ())}
    return given.spec.make(
        settings,
        fairness=fairness_of(given, margin, tables) if given.trains_by_groups else None,
        any_public=tables.X_public is not None or given.public_fraction is not None,
        schema=tables.schema,
        random_state=given.seed,
        public_fraction=given.public_fraction,
        noise=vocabulary.noise(given.noise) if own_noise and given.noise else None,
        teachers=None if given.teacher == "logistic" else vocabulary.teachers(given.teacher),
        unit=given.unit_name,
    )


def fairness_of(
    given: TrainOptions, margin: float | None, tables: TrainingTables | None = None
) -> Notion:
    """Return the notion; once the classes are known, also for the class that is meant."""
    from evenhand.fairness.notions import notion_named

    positive = None
    if given.positive is not None and tables is not None:
        from evenhand.datasets.columns import text_of

        classes = sorted(tables.y.unique().tolist())
        positive = [text_of(value) for value in classes].index(given.positive)
    reference = given.spec.reference or given.reference
    return notion_named(given.fairness).of(
        margin=margin or 0.0, reference=reference, positive=positive
    )


def relation_of(given: TrainOptions) -> tuple[str, str]:
    """Return whose what an account of these runs guards, and against which change."""
    from evenhand.privacy import attribute_of
    from evenhand.privacy.relation import GROUP_AND_CLASS_LABEL, GROUP_LABEL

    if given.spec.protects == "attribute":
        both = given.spec.fixed.get("variant") == "teachers" and given.pull == 0
        unit = attribute_of(given.unit_name, and_class_label=both)
        return unit, GROUP_AND_CLASS_LABEL if both else GROUP_LABEL
    by_unit = given.unit is not None
    return (given.unit_name, "add or remove one") if by_unit else ("record", "replace one")


def _budget(given: TrainOptions) -> None:
    """Check epsilon and delta."""
    from evenhand.privacy import Budget

    assert given.epsilon is not None
    Budget(epsilon=given.epsilon, delta=given.delta)


def _check_words(given: TrainOptions) -> None:
    """Refuse a word that an option does not know, and a weight below zero."""
    allowed = {
        "at": _words.POINTS,
        "rule": _words.RULES,
        "reference": _words.REFERENCES,
        "noise": vocabulary.NOISES,
        "teacher": vocabulary.TEACHERS,
        "answers": _words.ANSWERS,
    }
    if ":" not in given.fairness:
        one_of("--fairness", given.fairness, NOTIONS)
    for name, known in allowed.items():
        if (word := getattr(given, name)) is not None:
            one_of(f"--{name}", word, known)
    if given.pull is not None:
        non_negative("--pull", given.pull)
    non_negative("--fairness-weight", given.fairness_weight)


def _check_margin(given: TrainOptions) -> None:
    """Refuse a margin without groups, a missing one, and one that nothing keeps."""
    if (given.trains_by_groups or given.group_thresholds) and not given.sensitive:
        raise ValueError(
            "--sensitive is missing: rates are compared between groups. Name the column of "
            "the groups, or train without a margin: --method pate."
        )
    if not (given.trains_within_margin or given.group_thresholds):
        if given.margin is not None:
            raise ValueError(
                f"--method {given.method} keeps no margin, got --margin {given.margin:g}. Leave "
                f"one of them out, or add --group-thresholds."
            )
        return
    if given.margin is None:
        raise ValueError(
            "--margin is missing. Say how far apart the groups' rates may be, for example "
            "--margin 0.05; or train without a margin: --method pate."
        )
    notion = fairness_of(given, given.margin)
    if given.group_thresholds and notion.needs_labels:
        raise ValueError(
            f"--group-thresholds keep demographic parity, got --fairness {given.fairness}. "
            f"Leave one of them out."
        )
    if given.calibration is not None and not notion.needs_labels:
        raise ValueError(
            f"--calibration brings true classes, and --fairness {given.fairness} is about "
            f"predictions alone. Leave it out, or name another --fairness: "
            f"{', '.join(list(OF_DECISIONS)[1:])}."
        )


def _check_public(given: TrainOptions) -> None:
    """Refuse public rows that are missing, or given twice."""
    has_public = given.public is not None
    if given.group_thresholds and not has_public:
        raise ValueError(
            "--group-thresholds are set on public rows whose groups are known, and --public is "
            "missing. Give --public FILE."
        )
    if given.spec.protects == "attribute":
        return  # the features are public: there is nothing to ask for
    if not given.spec.teachers:
        if has_public and given.public_fraction is not None:
            raise ValueError("Give either --public FILE or --public-fraction SHARE, got both.")
        if not (has_public or given.schema is not None or given.public_fraction is not None):
            raise ValueError(
                "Columns are scaled by public knowledge, and there is none. Give --public "
                "FILE, --public-fraction SHARE, or --schema FILE with bounds."
            )
    elif has_public == (given.public_fraction is not None):
        raise ValueError(
            "Teachers are asked about public rows: give either --public FILE or "
            f"--public-fraction SHARE, got {'both' if has_public else 'neither'}."
        )


NOT_ALWAYS_READ: Final = {
    **dict.fromkeys(
        (
            "n_teachers",
            "teacher",
            "unit",
            "unit_name",
            "ledger",
            "account",
            "account_epsilon",
        ),
        "asks no teachers and keeps no account",
    ),
    **dict.fromkeys(("epsilon", "delta", "noise"), "promises no privacy"),
    **dict.fromkeys(("sigma", "threshold", "sigma_check"), "asks for no noisy labels"),
    "answers": "gates labels, releases shares alone, or asks no teachers",
    "fairness": "keeps no margin",
    "calibration": "reads no calibration rows",
    **dict.fromkeys(
        ("public", "public_fraction"),
        "takes all features as public, and scales them by themselves",
    ),
    "group_thresholds": "has a place of its own for fairness",
    "reference": "compares each group with everybody",
    **dict.fromkeys(("hidden", "rule", "fairness_weight", "at", "pull"), "does not read it"),
}
"""Settings that not every method reads, and why one does not."""


def _refuse_useless(known: MethodSpec, given: frozenset[str]) -> None:
    """Raise ValueError for an option that was given and that the method would not read."""
    of_notions = () if known.notions else ("fairness", "calibration")
    for option in NOT_ALWAYS_READ:
        if option in given and not known.accepts(option):
            word = "--teachers" if option == "n_teachers" else f"--{option.replace('_', '-')}"
            why = NOT_ALWAYS_READ["fairness" if option in of_notions else option]
            raise ValueError(f"--method {known.name} {why}, got {word}. Leave one of them out.")


def _refuse_protection(known: MethodSpec, protect: str | None) -> None:
    """Raise ValueError where the promise would be about less, or more, than was asked for.

    A method that protects the attribute alone needs this to be said in so many words, and an
    attribute that a method does not protect by itself is not promised.
    """
    if protect is not None:
        one_of("--protect", protect, vocabulary.PROTECTS)
    if known.protects == "attribute" and protect != "attribute":
        raise ValueError(
            f"--method {known.name} protects the sensitive attribute of each person and nothing "
            f"else: features and labels are taken as public. If that is what you need, say so: "
            f"--protect attribute. To protect the whole record choose another method, such as "
            f"--method dpsgd."
        )
    if protect == "attribute" and known.protects != "attribute":
        able = ", ".join(name for name, m in METHODS.items() if m.protects == "attribute")
        raise ValueError(
            f"--protect attribute was given, and --method {known.name} "
            + ("protects the whole record" if known.private else "promises no privacy")
            + f". Leave it out, or choose a method that protects the attribute alone: {able}."
        )


def _refuse_notion(known: MethodSpec, notion: str) -> None:
    """Raise ValueError for a notion that the method cannot hold equal."""
    from evenhand.fairness.notions import notion_named

    held = notion_named(notion).name
    if known.notions and held not in known.notions:
        able = next(m for m in METHODS.values() if held in m.notions)
        said = "--protect attribute " if able.protects == "attribute" else ""
        raise ValueError(
            f"--method {known.name} knows {' and '.join(known.notions).replace('-', ' ')} alone, "
            f"got --fairness {notion}. Choose another notion, or {said}--method {able.name}, which "
            f"knows this one."
        )

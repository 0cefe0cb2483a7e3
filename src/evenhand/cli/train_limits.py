"""What a method of ``evenhand train`` does not read, protect or hold equal, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evenhand.methods import METHODS

if TYPE_CHECKING:
    from evenhand.estimators.spec import MethodSpec

AFTER: Final = ("blind_rule", "group_thresholds")
"""What may keep the margin around the fitted model."""

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
    "neighbors": "makes a claim about one change of the data alone",
    **dict.fromkeys(("epsilon", "delta", "noise"), "promises no privacy"),
    **dict.fromkeys(("sigma", "threshold", "sigma_check"), "asks for no noisy labels"),
    "answers": "gates labels, releases shares alone, or asks no teachers",
    "fairness": "keeps no margin",
    "calibration": "reads no calibration rows",
    "answer_margin": "has no gate that could be left out",
    **dict.fromkeys(("admit_by", "gate_level"), "has no gate that reads true classes"),
    "confidence": "chooses no model by rows that were held out",
    **dict.fromkeys(
        ("public", "public_fraction"),
        "takes all features as public, and scales them by themselves",
    ),
    "synthetic_share": "asks no teachers about rows that are drawn",
    "check_drift": "asks no teachers about public rows",
    **dict.fromkeys(AFTER, "has a place of its own for fairness"),
    "reference": "compares groups in one way of its own",
    **dict.fromkeys(
        ("hidden", "degree", "architecture", "score_counts", "fairness_weight", "at", "pull"),
        "does not read it",
    ),
}
"""Settings that not every method reads, and why one does not."""

READ_AFTER: Final = ("fairness", "calibration", "confidence", "reference")
"""Settings that what comes after training reads, whatever the method does."""


def read_after(given: frozenset[str]) -> tuple[str, ...]:
    """Return the settings that are read after training."""
    return () if given.isdisjoint(AFTER) else READ_AFTER


def refuse_unread(known: MethodSpec, given: frozenset[str]) -> None:
    """Raise ValueError for an option that was given and that the method would not read."""
    of_notions = () if known.notions else ("fairness", "calibration")
    after = read_after(given) if known.accepts("blind_rule") else ()
    for option in NOT_ALWAYS_READ:
        if option in after:
            continue
        if option in given and not known.accepts(option):
            word = {"n_teachers": "--teachers", "answer_margin": "--no-answer-margin"}.get(
                option, f"--{option.replace('_', '-')}"
            )
            why = NOT_ALWAYS_READ["fairness" if option in of_notions else option]
            raise ValueError(f"--method {known.name} {why}, got {word}. Leave one of them out.")


def refuse_protection(known: MethodSpec, protect: str | None) -> None:
    """Raise ValueError where the promise would be about less, or more, than was asked for.

    A method that protects the attribute alone needs this to be said in so many words, and an
    attribute that a method does not protect by itself is not promised.
    """
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


def refuse_notion(known: MethodSpec, held: str, written: str) -> None:
    """Raise ValueError for a notion that the method cannot hold equal, as it was written."""
    if known.notions and held not in known.notions:
        able = next(m for m in METHODS.values() if held in m.notions)
        said = "--protect attribute " if able.protects == "attribute" else ""
        raise ValueError(
            f"--method {known.name} knows {' and '.join(known.notions).replace('-', ' ')} alone, "
            f"got --fairness {written}. Choose another notion, or {said}--method {able.name}, "
            f"which knows this one."
        )

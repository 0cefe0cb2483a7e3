"""The methods of ``evenhand train``: one line each, and which options they have no use for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from evenhand.cli.settings import NOTIONS, SCORE_NOTION


@dataclass(frozen=True, kw_only=True)
class Method:
    """What the command line must know of an estimator before any file is read.

    Parameters
    ----------
    estimator : str
        Its class in ``evenhand.estimators``.
    private : bool
        Whether it has a guarantee, and so a budget and noise.
    protects : {"record", "attribute"}
        What its guarantee is about: the whole record, or the group alone, where features and
        labels are public.
    teachers : bool
        Whether it asks teachers about public rows.
    margin : {"none", "weight", "optional", "needed"}
        Whether its training keeps a margin; by ``"weight"`` it is drawn towards equal rates, and
        names no margin.
    groups : {"public", "private"}
        Whose groups the training reads, where it does either.
    notions : tuple of str
        What it can hold equal.
    calibration : bool
        Whether it reads true classes on calibration rows.
    thresholds : bool
        Whether thresholds per group may stand around it.
    takes : tuple of str
        Arguments that not every estimator has, as ``Asked.words`` spells them. One that takes
        ``margin`` or ``alpha`` is told the margin and the notion in words, the others by
        ``fairness=``.
    also : tuple of str
        Options of teachers and of accounts that it reads though it asks about no public rows.
    fixed : mapping
        Arguments that the word itself sets.
    """

    estimator: str
    private: bool = True
    protects: Literal["record", "attribute"] = "record"
    teachers: bool = False
    margin: Literal["none", "weight", "optional", "needed"] = "none"
    groups: Literal["public", "private"] = "private"
    notions: tuple[str, ...] = NOTIONS[:1]
    calibration: bool = False
    thresholds: bool = True
    takes: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)

    def refuse_useless(self, name: str, given: Iterable[str]) -> None:
        """Raise ValueError for an option that was given and that the method would not read."""
        for option in given:
            if option in OF_TEACHERS and not self.teachers and option not in self.also:
                why = "asks no teachers and keeps no account"
            elif option in OF_PRIVACY and not self.private:
                why = "promises no privacy"
            elif option in OF_NOTIONS and self.margin == "none":
                why = "keeps no margin"
            elif option == "calibration" and not self.calibration:
                why = "reads no calibration rows"
            elif option in PUBLIC_ROWS and self.protects == "attribute":
                why = "takes all features as public, and scales them by themselves"
            elif option == "group_thresholds" and not self.thresholds:
                why = "has a place of its own for fairness"
            elif option == "reference" and "alpha" in self.takes:
                why = "compares each group with everybody"
            elif option in OWN and option not in self.takes:
                why = "does not read it"
            else:
                continue
            word = "--teachers" if option == "n_teachers" else f"--{option.replace('_', '-')}"
            raise ValueError(f"--method {name} {why}, got {word}. Leave one of them out.")

    def refuse_protection(self, name: str, protect: str | None) -> None:
        """Raise ValueError where the promise would be about less, or more, than was asked for.

        Raises
        ------
        ValueError
            For a method that protects the attribute alone, unless this was said in so many words,
            and for an attribute that a method does not protect by itself.
        """
        if self.protects == "attribute" and protect != "attribute":
            raise ValueError(
                f"--method {name} protects the sensitive attribute of each person and nothing "
                f"else: features and labels are taken as public. If that is what you need, say so: "
                f"--protect attribute. To protect the whole record choose another method, such as "
                f"--method dpsgd."
            )
        if protect == "attribute" and self.protects != "attribute":
            able = ", ".join(word for word, m in METHODS.items() if m.protects == "attribute")
            raise ValueError(
                f"--protect attribute was given, and --method {name} "
                + ("protects the whole record" if self.private else "promises no privacy")
                + f". Leave it out, or choose a method that protects the attribute alone: {able}."
            )

    def refuse_unknown(self, name: str, notion: str) -> None:
        """Raise ValueError for a notion that the method cannot hold equal."""
        if notion not in self.notions:
            known = " and ".join(self.notions).replace("-", " ")
            raise ValueError(
                f"--method {name} knows {known} alone, got --notion {notion}. Choose another "
                f"notion, or {_WHO_KNOWS[notion == SCORE_NOTION]}."
            )


_WHO_KNOWS: Final = (
    "--method fairpate, which knows all",
    "--protect attribute --method sf-student, which knows this one",
)
_ACCOUNTS: Final = ("unit", "unit_name", "ledger", "account", "account_epsilon")
_SF: Final[Mapping[str, Any]] = {
    "estimator": "SFPATEClassifier",
    "notions": (*NOTIONS[:3], SCORE_NOTION),
    "takes": ("alpha", "notion", "n_teachers", "teachers", "unit", "pull"),
    "also": ("n_teachers", "teacher", *_ACCOUNTS),
    "protects": "attribute",
    "margin": "needed",
    "thresholds": False,
}

METHODS: Final[Mapping[str, Method]] = {
    "fairpate": Method(
        estimator="FairPATEClassifier",
        teachers=True,
        margin="needed",
        groups="public",
        notions=NOTIONS,
        calibration=True,
        takes=("rule",),
    ),
    "pate": Method(estimator="PATEClassifier", teachers=True),
    "dpsgd": Method(estimator="DPSGDClassifier", margin="optional", takes=("hidden",)),
    "dp-fermi": Method(
        estimator="DPFERMIClassifier",
        margin="weight",
        notions=NOTIONS[:2],
        takes=("fairness_weight", "notion", "group_shares"),
    ),
    "dp-post-processing": Method(
        estimator="DPPostProcessingClassifier",
        margin="needed",
        notions=NOTIONS[:2],
        thresholds=False,
        takes=("margin", "notion"),
    ),
    "intervention": Method(
        estimator="InterventionClassifier",
        teachers=True,
        margin="needed",
        groups="public",
        thresholds=False,
        takes=("at",),
    ),
    "sf-student": Method(fixed={"variant": "student"}, **_SF),
    "sf-teachers": Method(fixed={"variant": "teachers"}, **_SF),
    "m": Method(
        estimator="RandomizedResponseClassifier",
        protects="attribute",
        margin="needed",
        notions=NOTIONS[:3],
        thresholds=False,
    ),
    "pf-ld": Method(
        estimator="PFLDClassifier",
        protects="attribute",
        margin="needed",
        notions=NOTIONS[:3],
        thresholds=False,
        takes=("hidden",),
    ),
    "nonprivate": Method(estimator="NonPrivateClassifier", private=False),
    "fair-only": Method(
        estimator="FairOnlyClassifier", private=False, margin="needed", notions=NOTIONS[:3]
    ),
}
"""The words of ``--method``. One more method is one more line here."""

OF_TEACHERS: Final = (
    "n_teachers",
    "teacher",
    "answers",
    "sigma",
    "threshold",
    "sigma_check",
    "unit",
    "unit_name",
    "ledger",
    "account",
    "account_epsilon",
)
PUBLIC_ROWS: Final = ("public", "public_fraction")
OF_NOTIONS: Final = ("notion", "calibration")
OF_PRIVACY: Final = ("epsilon", "delta", "noise")
OWN: Final = ("hidden", "rule", "fairness_weight", "at", "pull")

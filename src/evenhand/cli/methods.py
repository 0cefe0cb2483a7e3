"""The methods of ``evenhand train``: one line each, and which options they have no use for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True, kw_only=True)
class Method:
    """What the command line must know of an estimator before any file is read.

    Parameters
    ----------
    estimator : str
        Its class in ``evenhand.estimators``.
    private : bool
        Whether it has a guarantee, and so a budget and noise.
    teachers : bool
        Whether it asks teachers about public rows.
    margin : {"none", "optional", "needed"}
        Whether its training keeps a margin (``fairness=``).
    groups : {"public", "private"}
        Whose groups the training reads, where it keeps a margin.
    notions : bool
        Whether its margin may be of any notion, read on calibration rows.
    takes : tuple of str
        Arguments of its own, of the same name as the option.
    """

    estimator: str
    private: bool = True
    teachers: bool = False
    margin: Literal["none", "optional", "needed"] = "none"
    groups: Literal["public", "private"] = "private"
    notions: bool = False
    takes: tuple[str, ...] = ()

    def refuse_useless(self, name: str, given: Iterable[str]) -> None:
        """Raise ValueError for an option that was given and that the method would not read."""
        for option in given:
            if option in OF_TEACHERS and not self.teachers:
                why = "asks no teachers and keeps no account"
            elif option in OF_PRIVACY and not self.private:
                why = "promises no privacy"
            elif option in OF_NOTIONS and not self.notions:
                why = "knows demographic parity alone" if self.margin != "none" else NO_MARGIN
            elif option in OWN and option not in self.takes:
                why = "does not read it"
            else:
                continue
            word = "--teachers" if option == "n_teachers" else f"--{option.replace('_', '-')}"
            raise ValueError(f"--method {name} {why}, got {word}. Leave one of them out.")


METHODS: Final[Mapping[str, Method]] = {
    "fairpate": Method(
        estimator="FairPATEClassifier",
        teachers=True,
        margin="needed",
        groups="public",
        notions=True,
        takes=("rule",),
    ),
    "pate": Method(estimator="PATEClassifier", teachers=True),
    "dpsgd": Method(estimator="DPSGDClassifier", margin="optional", takes=("hidden",)),
    "nonprivate": Method(estimator="NonPrivateClassifier", private=False),
    "fair-only": Method(estimator="FairOnlyClassifier", private=False, margin="needed"),
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
OF_NOTIONS: Final = ("notion", "calibration")
NO_MARGIN: Final = "keeps no margin"
OF_PRIVACY: Final = ("epsilon", "delta", "noise")
OWN: Final = ("hidden", "rule")

"""One record for each method: what it reads, needs, protects and holds equal, beside its class."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeVar

from evenhand.fairness import FairnessKind
from evenhand.fairness.notion import Notion
from evenhand.privacy import Budget, ConfidentGNMax, GNMax
from evenhand.voting.blocks import Mechanism

Settings = Mapping[str, Any]
"""What a user chose, by the names of a grid's arguments."""

BUDGET: Final = ("epsilon", "delta")
TEACHERS: Final = ("noise", "n_teachers", "teacher", "neighbors")
VOTES: Final = (*TEACHERS, "sigma", "threshold", "sigma_check")
ACCOUNT: Final = ("unit", "unit_name", "ledger", "account", "account_epsilon")
PUBLIC_ROWS: Final = ("public", "public_fraction")
CALIBRATION: Final = ("X_calibration", "y_calibration", "sensitive_features_calibration")
"""Arguments of ``fit``: public rows with labels and groups."""

BY_NAME: Final = (
    "n_teachers",
    "neighbors",
    "answers",
    "at",
    "hidden",
    "degree",
    "score_counts",
    "fairness_weight",
    "pull",
    "answer_margin",
    "admit_by",
    "gate_level",
)
"""Settings that a constructor takes by the same name."""


@dataclass(frozen=True, kw_only=True)
class MethodSpec:
    """What the command line, a frontier and a saved model must know of a method."""

    name: str
    """Its word: of ``--method``, and of ``method`` in a grid."""
    words: str
    """What it does, in a line of a help page."""
    reads: tuple[str, ...]
    """Settings that it reads, of those that not every method reads."""
    needs: tuple[str, ...] = ()
    """Those of them that it cannot do without."""
    protects: Literal["record", "attribute"] = "record"
    """What its guarantee is about, where it has one: the whole record, or the sensitive attribute
    alone, where features and labels are public.
    """
    notions: Collection[str] = ()
    """What it can hold equal; none for a method without a margin."""
    kind: FairnessKind | Callable[[Settings], FairnessKind] = FairnessKind.NONE
    """Where the margin sits in a fitted model."""
    public_groups: bool | Callable[[Settings], bool] = False
    """Whether training reads the groups of the public rows."""
    private_groups: bool | Callable[[Settings], bool] = False
    """Whether training reads the groups of the private rows, once there is a margin."""
    neighbors: str = ""
    """The change that its claim is about, where it is about no other; empty where that is to be
    chosen, or not of a record.
    """
    reference: str | None = None
    """What a group is compared with, where that is not to be chosen."""
    claim_holds: bool = True
    """False for a method that runs as a paper printed it, whose claim does not hold."""
    shares_votes: bool = False
    """Whether several settings can be fitted on the votes of one ensemble (``fit_many``)."""
    fixed: Settings = field(default_factory=dict)
    """Constructor arguments that the name sets."""
    more: Callable[[Settings, bool], Settings] = lambda settings, any_public: {}
    """Constructor arguments that follow from several settings."""
    estimator: Any = None
    """The class; ``registered`` fills it in."""

    @property
    def private(self) -> bool:
        """Whether it promises privacy."""
        return "epsilon" in self.reads

    @property
    def teachers(self) -> bool:
        """Whether it trains teachers, each on private records of its own."""
        return "n_teachers" in self.reads

    @property
    def reads_pictures(self) -> bool:
        """Whether it learns from pixels, by networks, and not from features alone."""
        return bool(getattr(self.estimator, "_reads_pictures", False))

    @property
    def draws_rows(self) -> bool:
        """Whether rows for its teachers can be drawn where there are no public ones."""
        return self.teachers and "public" in self.reads and self.claim_holds

    @property
    def margin(self) -> Literal["none", "weight", "optional", "needed"]:
        """Whether training keeps a margin; by ``"weight"`` rates are drawn together without one."""
        if "margin" in self.reads:
            return "needed" if "margin" in self.needs else "optional"
        return "weight" if "fairness_weight" in self.reads else "none"

    @property
    def takes(self) -> tuple[str, ...]:
        """Arguments of ``fit`` beside ``X`` and ``y``."""
        known = {
            # A reference keeps the names of the groups, also where it reads no more of them.
            "sensitive_features": bool(self.notions) or not self.private,
            "X_public": "public" in self.reads,
            "sensitive_features_public": bool(self.public_groups),
            **dict.fromkeys(CALIBRATION, "calibration" in self.reads),
            "unit_ids": "unit" in self.reads,
            "ledger": self.private,
            "progress": self.private,
        }
        return tuple(name for name, takes in known.items() if takes)

    def accepts(self, setting: str) -> bool:
        """Return whether the method has a use for a setting."""
        if setting == "fairness":
            return bool(self.notions)
        if setting in ("synthetic_share", "check_drift"):
            return self.draws_rows
        if setting == "blind_rule":  # what comes after training, as thresholds do
            return "group_thresholds" in self.reads
        if setting == "noise":  # also where there is one kind alone: its estimator says which
            return self.private
        if setting == "reference":
            return self.reference is None
        return setting in self.reads

    def promises(self, setting: str, value: Any) -> bool:
        """Return whether the claim says anyway what is asked for by this value of a setting."""
        return setting == "neighbors" and value == self.neighbors

    def kind_for(self, settings: Settings) -> FairnessKind:
        """Return where the margin sits in a model of these settings."""
        return self.kind if isinstance(self.kind, FairnessKind) else self.kind(settings)

    def reads_private_groups(self, settings: Settings) -> bool:
        """Return whether training with a margin reads the groups of the private rows."""
        return _asks(self.private_groups, settings)

    def reads_public_groups(self, settings: Settings) -> bool:
        """Return whether training reads the groups of the public rows."""
        return _asks(self.public_groups, settings)

    def make(
        self,
        settings: Settings,
        *,
        fairness: Notion | None = None,
        any_public: bool = True,
        **values: Any,
    ) -> Any:
        """Return the unfitted estimator.

        Parameters
        ----------
        settings : mapping
            Checked words and numbers. One that is None or left out is the estimator's to choose.
        fairness : Notion, optional
            The margin that training keeps.
        any_public : bool
            Whether there are public rows.
        **values
            Further constructor arguments, such as ``random_state``, ``schema``, ``noise`` and
            ``teachers``; those that this estimator does not have are left out.
        """
        takes = inspect.signature(self.estimator).parameters
        made = {name: value for name, value in values.items() if name in takes}
        made |= self.fixed
        for name in BY_NAME:
            if name in self.reads and settings.get(name) is not None:
                made[name] = settings[name]
        if self.private:
            made["budget"] = Budget(
                epsilon=float(settings["epsilon"]), delta=float(settings["delta"])
            )
        if "sigma" in self.reads:
            made["mechanism"] = mechanism_of(settings)
        if "fairness" in takes and fairness is not None:
            made["fairness"] = fairness
        return self.estimator(**{**made, **self.more(settings, any_public)})


def _asks(asks: bool | Callable[[Settings], bool], settings: Settings) -> bool:
    return asks if isinstance(asks, bool) else asks(settings)


def mechanism_of(settings: Settings) -> Mechanism | None:
    """Return the mechanism that three numbers describe, or None for the estimator's own."""
    sigma, threshold, check = (settings.get(n) for n in ("sigma", "threshold", "sigma_check"))
    if sigma is None:
        return None
    if threshold is None or check is None:
        return GNMax(sigma=float(sigma))
    return ConfidentGNMax(threshold=float(threshold), sigma_check=float(check), sigma=float(sigma))


def _show_own_arguments_first(estimator: type) -> None:
    """Let help pages show what is special of a class before what all classes have."""
    init = vars(estimator).get("__init__")
    if init is None:
        return
    names = [name for kind in estimator.__mro__ for name in vars(kind).get("__annotations__", ())]
    known = inspect.signature(init)
    shown = sorted(
        known.parameters.values(),
        key=lambda p: (p.kind, names.index(p.name) if p.kind is p.KEYWORD_ONLY else 0),
    )
    init.__signature__ = known.replace(parameters=shown)


REGISTERED: Final[dict[str, MethodSpec]] = {}
"""The records of the modules that were imported; ``evenhand.methods.METHODS`` holds all."""

_Class = TypeVar("_Class", bound=type)


def registered(*specs: MethodSpec) -> Callable[[_Class], _Class]:
    """Register an estimator under the name of each record; its ``fit`` reads what it takes."""

    def keep(estimator: _Class) -> _Class:
        for spec in specs:
            REGISTERED[spec.name] = replace(spec, estimator=estimator)
        estimator.TAKES = specs[0].takes  # type: ignore[attr-defined]
        estimator.READS_CONFIDENCE = "confidence" in specs[0].reads  # type: ignore[attr-defined]
        _show_own_arguments_first(estimator)
        return estimator

    return keep

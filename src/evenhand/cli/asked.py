"""The settings of a run, checked together before any file is read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from evenhand._checks import non_negative, one_of
from evenhand.cli import settings
from evenhand.methods import METHODS, method_named

if TYPE_CHECKING:
    from evenhand.cli.tables import Roles, TrainingTables
    from evenhand.estimators.spec import MethodSpec
    from evenhand.fairness import Notion
    from evenhand.privacy import Budget


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The settings of a run, in the words of the command line."""

    method: str
    protect: str | None
    epsilon: float | None
    delta: float
    notion: str
    margin: float | None
    positive: str | None
    reference: str
    rule: str
    n_teachers: int | None
    teacher: str
    answers: str | None
    noise: str | None
    sigma: float | None
    threshold: float | None
    sigma_check: float | None
    public_fraction: float | None
    unit_name: str
    seed: int | None
    hidden: tuple[int, ...]
    fairness_weight: float
    at: str
    group_thresholds: bool
    pull: float | None = None

    @property
    def chosen(self) -> MethodSpec:
        """The record of the method."""
        return method_named("--method", self.method)

    @property
    def trains_within_margin(self) -> bool:
        """Whether the training itself keeps the margin; if it need not, thresholds keep it."""
        asked = self.margin is not None and not self.group_thresholds
        return self.chosen.margin == "needed" or (self.chosen.margin == "optional" and asked)

    @property
    def trains_by_groups(self) -> bool:
        """Whether the training itself tells groups apart."""
        return self.trains_within_margin or self.chosen.margin == "weight"

    @property
    def reads_groups_of(self) -> tuple[str, ...]:
        """Whose groups are read: of the public rows, of the private rows."""
        known = self.chosen
        public = self.group_thresholds or known.teachers or self.trains_by_public_groups
        public &= known.protects == "record"
        private = self.trains_by_groups and known.reads_private_groups(asdict(self))
        return ("public",) * public + ("private",) * private

    @property
    def trains_by_public_groups(self) -> bool:
        """Whether training reads the groups of the public rows, where there are some."""
        weighs = self.chosen.margin == "weight"  # by shares that public rows hold for one notion
        own = self.chosen.public_groups and not (weighs and self.notion != settings.NOTIONS[0])
        return own and self.trains_by_groups

    def relation(self, *, by_unit: bool) -> tuple[str, str]:
        """Return whose what an account of these runs guards, and against which change."""
        from evenhand.privacy import GROUP_AND_CLASS_LABEL, GROUP_LABEL, attribute_of

        if self.chosen.protects == "attribute":
            both = self.chosen.fixed.get("variant") == "teachers" and self.pull == 0
            unit = attribute_of(self.unit_name, and_class_label=both)
            return unit, GROUP_AND_CLASS_LABEL if both else GROUP_LABEL
        return (self.unit_name, "add or remove one") if by_unit else ("record", "replace one")

    def check(
        self, roles: Roles, *, has_public: bool, has_schema: bool, given: Iterable[str]
    ) -> None:
        """Refuse settings that do not go together, before any file is read.

        ``given`` are the options that stood in the command, by the names of their parameters.
        """
        known = self.chosen
        if self.protect is not None:
            one_of("--protect", self.protect, settings.PROTECTS)
        _refuse_protection(known, self.protect)
        _refuse_useless(known, given)
        one_of("--notion", self.notion, (*settings.NOTIONS, settings.SCORE_NOTION))
        if self.pull is not None:
            non_negative("--pull", self.pull)
        _refuse_notion(known, self.notion)
        one_of("--at", self.at, settings.POINTS)
        non_negative("--fairness-weight", self.fairness_weight)
        one_of("--rule", self.rule, settings.RULES)
        one_of("--reference", self.reference, settings.REFERENCES)
        one_of("--noise", self.noise or "exact", settings.NOISES)
        one_of("--teacher", self.teacher, settings.TEACHERS)
        if self.answers is not None:
            one_of("--answers", self.answers, settings.ANSWERS)
        if self.chosen.private:
            self._budget()
        if (self.trains_by_groups or self.group_thresholds) and not roles.sensitive:
            raise ValueError(
                "--sensitive is missing: rates are compared between groups. Name the column of "
                "the groups, or train without a margin: --method pate."
            )
        if self.trains_within_margin or self.group_thresholds:
            if self.margin is None:
                raise ValueError(
                    "--margin is missing. Say how far apart the groups' rates may be, for example "
                    "--margin 0.05; or train without a margin: --method pate."
                )
            if known.reference is not None:
                non_negative("--margin", self.margin)
                return
            notion = self._fairness(None)
            if self.group_thresholds and notion.needs_labels:
                raise ValueError(
                    f"--group-thresholds keep demographic parity, got --notion {self.notion}. "
                    f"Leave one of them out."
                )
            if "calibration" in given and not notion.needs_labels:
                raise ValueError(
                    f"--calibration brings true classes, and --notion {self.notion} is about "
                    f"predictions alone. Leave it out, or name another --notion: "
                    f"{', '.join(settings.NOTIONS[1:])}."
                )
        elif self.margin is not None:
            raise ValueError(
                f"--method {self.method} keeps no margin, got --margin {self.margin:g}. Leave one "
                f"of them out, or add --group-thresholds."
            )
        self._check_public(has_public, has_schema)
        mechanism = settings.mechanism(
            sigma=self.sigma, threshold=self.threshold, sigma_check=self.sigma_check
        )
        if self.answers == "shares" and mechanism is not None:
            raise ValueError(
                f"--answers shares spends the budget on all public rows alike, and {mechanism!r} "
                f"draws labels. Leave out --sigma, --threshold and --sigma-check."
            )

    def _check_public(self, has_public: bool, has_schema: bool) -> None:
        if self.group_thresholds and not has_public:
            raise ValueError(
                "--group-thresholds are set on public rows whose groups are known, and --public is "
                "missing. Give --public FILE."
            )
        if self.chosen.protects == "attribute":
            return  # the features are public: there is nothing to ask for
        if not self.chosen.teachers:
            if has_public and self.public_fraction is not None:
                raise ValueError("Give either --public FILE or --public-fraction SHARE, got both.")
            if not (has_public or has_schema or self.public_fraction is not None):
                raise ValueError(
                    "Columns are scaled by public knowledge, and there is none. Give --public "
                    "FILE, --public-fraction SHARE, or --schema FILE with bounds."
                )
        elif has_public == (self.public_fraction is not None):
            raise ValueError(
                "Teachers are asked about public rows: give either --public FILE or "
                f"--public-fraction SHARE, got {'both' if has_public else 'neither'}."
            )

    def estimator(self, tables: TrainingTables, *, has_account: bool) -> Any:
        """Return the estimator that was asked for."""
        decides = self.notion != settings.SCORE_NOTION  # else the estimator reads its name
        return self.chosen.make(
            asdict(self),
            fairness=self._fairness(tables) if self.trains_within_margin and decides else None,
            any_public=tables.X_public is not None or self.public_fraction is not None,
            schema=tables.schema,
            random_state=self.seed,
            public_fraction=self.public_fraction,
            noise=None if has_account or self.noise is None else settings.noise(self.noise),
            teachers=None if self.teacher == "logistic" else settings.teachers(self.teacher),
            unit=self.unit_name,
        )

    def with_thresholds(self, model: Any, tables: TrainingTables) -> Any:
        """Return the fitted model under group-aware thresholds, if they were asked for."""
        if not self.group_thresholds:
            return model
        from evenhand.cli.tables import sensitive_features

        assert tables.groups is not None
        return model.with_group_thresholds(
            tables.X_public, sensitive_features(tables.groups), fairness=self._fairness(tables)
        )

    def _budget(self) -> Budget:
        from evenhand.privacy import Budget

        if self.epsilon is None:
            raise ValueError(
                "--epsilon is missing. Say how much privacy loss is allowed, for example "
                "--epsilon 3; for a reference that is not private at all: --method non-private."
            )
        return Budget(epsilon=self.epsilon, delta=self.delta)

    def _fairness(self, tables: TrainingTables | None) -> Notion:
        """Return the margin; once the classes are known, also for the class that is meant."""
        from evenhand.fairness import FalsePositiveParity, notion_named

        kind = notion_named(self.notion)
        made_of: dict[str, Any] = {"margin": self.margin or 0.0, "reference": self.reference}
        if kind is FalsePositiveParity and self.positive is not None and tables is not None:
            from evenhand.datasets.columns import text_of

            classes = sorted(tables.y.unique().tolist())
            made_of["positive"] = [text_of(value) for value in classes].index(self.positive)
        made: Notion = kind(**made_of)
        return made


NOT_ALWAYS_READ = {
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
    "answers": "gates labels, or asks no teachers",
    "notion": "keeps no margin",
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


def _refuse_useless(known: MethodSpec, given: Iterable[str]) -> None:
    """Raise ValueError for an option that was given and that the method would not read."""
    of_notions = () if known.notions else ("notion", "calibration")
    for option in given:
        if option in NOT_ALWAYS_READ and not known.accepts(option):
            word = "--teachers" if option == "n_teachers" else f"--{option.replace('_', '-')}"
            why = NOT_ALWAYS_READ["notion" if option in of_notions else option]
            raise ValueError(f"--method {known.name} {why}, got {word}. Leave one of them out.")


def _refuse_protection(known: MethodSpec, protect: str | None) -> None:
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


def _refuse_notion(known: MethodSpec, notion: str) -> None:
    """Raise ValueError for a notion that the method cannot hold equal."""
    if known.notions and notion not in known.notions:
        able = next(m for m in METHODS.values() if notion in m.notions)
        said = "--protect attribute " if able.protects == "attribute" else ""
        raise ValueError(
            f"--method {known.name} knows {' and '.join(known.notions).replace('-', ' ')} alone, "
            f"got --notion {notion}. Choose another notion, or {said}--method {able.name}, which "
            f"knows this one."
        )

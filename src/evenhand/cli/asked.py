"""The settings of a run, checked together before any file is read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from evenhand._checks import non_negative, one_of
from evenhand.cli import settings
from evenhand.cli.methods import METHODS, Method

N_TEACHERS: Final = 300
"""Of sf-student and sf-teachers, as the paper has it."""

if TYPE_CHECKING:
    from evenhand.cli.tables import Roles, TrainingTables
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
    def chosen(self) -> Method:
        """What the command line knows of the method."""
        return METHODS[self.method]

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
    def shares_are_public(self) -> bool:
        """Whether the shares of the groups, where a method needs them, can be read for free."""
        return "group_shares" in self.chosen.takes and self.notion == settings.NOTIONS[0]

    @property
    def reads_groups_of(self) -> tuple[str, ...]:
        """Whose groups are read: of the public rows, of the private rows."""
        from evenhand.baselines import POINTS

        public = self.group_thresholds or self.chosen.teachers or self.shares_are_public
        public &= self.chosen.protects == "record"
        private = self.trains_by_groups and self.chosen.groups == "private"
        private |= "at" in self.chosen.takes and POINTS[self.at].reads_private_groups
        return ("public",) * public + ("private",) * private

    def words(self, *, any_public: bool) -> dict[str, Any]:
        """Return what only some estimators are told, by the names of their arguments."""
        free = self.shares_are_public and any_public
        return {
            "rule": self.rule,
            "hidden": self.hidden,
            "at": self.at,
            "fairness_weight": self.fairness_weight,
            "margin": self.margin,
            "notion": self.notion.replace("-", "_"),
            "group_shares": None if free else "released",
            "alpha": self.margin,
            "pull": self.pull,
            "n_teachers": N_TEACHERS if self.n_teachers is None else self.n_teachers,
            "teachers": None if self.teacher == "logistic" else settings.teachers(self.teacher),
            "unit": self.unit_name,
        }

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
        one_of("--method", self.method, METHODS)
        if self.protect is not None:
            one_of("--protect", self.protect, settings.PROTECTS)
        self.chosen.refuse_protection(self.method, self.protect)
        self.chosen.refuse_useless(self.method, given)
        one_of("--notion", self.notion, (*settings.NOTIONS, settings.SCORE_NOTION))
        if self.pull is not None:
            non_negative("--pull", self.pull)
        self.chosen.refuse_unknown(self.method, self.notion)
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
            if "alpha" in self.chosen.takes:
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
        from evenhand import methods

        arguments: dict[str, Any] = {
            "schema": tables.schema,
            "random_state": self.seed,
            **self.chosen.fixed,
        }
        if self.chosen.protects == "record":
            arguments["public_fraction"] = self.public_fraction
        any_public = tables.X_public is not None or self.public_fraction is not None
        words = self.words(any_public=any_public)
        arguments |= {name: words[name] for name in self.chosen.takes}
        if self.chosen.private:
            own = not has_account and self.noise is not None
            arguments["budget"] = self._budget()
            arguments["noise"] = settings.noise(self.noise or "exact") if own else None
        if self.chosen.teachers:
            arguments |= {
                "n_teachers": self.n_teachers,
                "teachers": settings.teachers(self.teacher),
                "mechanism": settings.mechanism(
                    sigma=self.sigma, threshold=self.threshold, sigma_check=self.sigma_check
                ),
                "unit": self.unit_name,
            }
            if self.answers is not None:
                arguments["answers"] = self.answers
        if self.trains_within_margin and not {"margin", "alpha"} & set(self.chosen.takes):
            arguments["fairness"] = self._fairness(tables)
        return methods.METHODS[self.chosen.estimator](**arguments)

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
                "--epsilon 3; for a reference that is not private at all: --method nonprivate."
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

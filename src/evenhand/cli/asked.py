"""The settings of a run, checked together before any file is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evenhand._checks import one_of
from evenhand.cli import settings

if TYPE_CHECKING:
    from evenhand.cli.tables import Roles, TrainingTables
    from evenhand.fairness import DemographicParity


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The settings of a run, in the words of the command line."""

    method: str
    epsilon: float
    delta: float
    margin: float | None
    reference: str
    rule: str
    n_teachers: int | None
    teacher: str
    answers: str | None
    noise: str
    sigma: float | None
    threshold: float | None
    sigma_check: float | None
    public_fraction: float | None
    unit_name: str
    seed: int | None

    def check(self, roles: Roles, *, has_public: bool) -> None:
        """Refuse settings that do not go together, before any file is read."""
        from evenhand.privacy import Budget

        one_of("--method", self.method, settings.METHODS)
        one_of("--rule", self.rule, settings.RULES)
        one_of("--reference", self.reference, settings.REFERENCES)
        one_of("--noise", self.noise, settings.NOISES)
        one_of("--teacher", self.teacher, settings.TEACHERS)
        if self.answers is not None:
            one_of("--answers", self.answers, settings.ANSWERS)
        Budget(epsilon=self.epsilon, delta=self.delta)
        if self.method == "fairpate":
            if not roles.sensitive:
                raise ValueError(
                    "--sensitive is missing: a margin is kept between groups. Name the column of "
                    "the groups, or train without a margin: --method pate."
                )
            if self.margin is None:
                raise ValueError(
                    "--margin is missing. Say how far apart the groups' rates may be, for example "
                    "--margin 0.05; or train without a margin: --method pate."
                )
            self._fairness()
        elif self.margin is not None:
            raise ValueError(
                f"--method pate keeps no margin, got --margin {self.margin:g}. Leave one of them "
                f"out."
            )
        if has_public == (self.public_fraction is not None):
            raise ValueError(
                "Teachers are asked about public rows: give either --public FILE or "
                f"--public-fraction SHARE, got {'both' if has_public else 'neither'}."
            )
        given = settings.mechanism(
            sigma=self.sigma, threshold=self.threshold, sigma_check=self.sigma_check
        )
        if self.answers == "shares" and given is not None:
            raise ValueError(
                f"--answers shares spends the budget on all public rows alike, and {given!r} draws "
                f"labels. Leave out --sigma, --threshold and --sigma-check."
            )

    def estimator(self, tables: TrainingTables, *, has_account: bool) -> Any:
        """Return the estimator that was asked for."""
        from evenhand.estimators import FairPATEClassifier, PATEClassifier
        from evenhand.privacy import Budget

        common: dict[str, Any] = {
            "budget": Budget(epsilon=self.epsilon, delta=self.delta),
            "n_teachers": self.n_teachers,
            "answers": self.answers,
            "teachers": settings.teachers(self.teacher),
            "mechanism": settings.mechanism(
                sigma=self.sigma, threshold=self.threshold, sigma_check=self.sigma_check
            ),
            "schema": tables.schema,
            "public_fraction": self.public_fraction,
            "unit": self.unit_name,
            "noise": None if has_account else settings.noise(self.noise),
            "random_state": self.seed,
        }
        if self.method == "pate":
            return PATEClassifier(**common)
        return FairPATEClassifier(**common, fairness=self._fairness(), rule=self.rule)

    def _fairness(self) -> DemographicParity:
        from evenhand.fairness import DemographicParity

        return DemographicParity(margin=self.margin or 0.0, reference=self.reference)

"""SF-PATE: a fair model from teachers, where each person's group is private and nothing else is."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Final

import numpy as np

from evenhand import _checks
from evenhand._notions import NOTIONS
from evenhand._random import as_generator
from evenhand.estimators.attribute_privacy import AttributePrivacyClassifier, PeopleInputs
from evenhand.estimators.fitted import FittedModel, TrueGroups
from evenhand.estimators.inputs import FitArguments, Progress
from evenhand.estimators.ledgers import open_run
from evenhand.estimators.plan import histogram_for
from evenhand.estimators.sf_pate.groups import ANSWERS, QueriedRows
from evenhand.estimators.sf_pate.learning import (
    Learned,
    Problem,
    after_fair_votes,
    with_estimated_groups,
)
from evenhand.estimators.spec import ACCOUNT, BUDGET, MethodSpec, registered
from evenhand.estimators.teaching import as_teachers
from evenhand.fairness import DemographicParity, FairnessKind
from evenhand.fairness.notion import Notion, require_reference
from evenhand.privacy import Budget, BudgetExceeded, Guarantee, Ledger, attribute_of
from evenhand.privacy.gaussian import epsilon_from_mu
from evenhand.privacy.guarantee import delta_warning
from evenhand.privacy.relation import GROUP_AND_CLASS_LABEL, GROUP_LABEL
from evenhand.students import NetworkStudent
from evenhand.teachers import GroupMissingInPartition, by_position, by_unit
from evenhand.teachers.coverage import groups_of_teachers
from evenhand.teachers.fair import constrained
from evenhand.teachers.partition import Partition
from evenhand.typing import ArrayLike
from evenhand.voting import Shares, Votes
from evenhand.voting.shares import Rounds, release_shares

DEFAULT: Final = DemographicParity(margin=0.01, reference="overall")

VARIANTS: Final = ("student", "teachers")

DEFAULT_QUERIES: Final = 2000
"""Rows that are queried by default; 500 and 20,000 do as well (``sf_pate_choices.py`` among the
reproductions, on ACS-Income and German)."""

PULLS: Final = {"student": 0.001, "teachers": 0.3}
"""lambda by default: of the squared distance of weights, and of scores."""


_PRIVATE: Final = ("groups_of_teachers_", "expected_rates_")


_SPEC: Final = MethodSpec(
    name="",
    words="",
    reads=(*BUDGET, *ACCOUNT, "margin", "n_teachers", "noise", "pull", "teacher"),
    needs=("epsilon", "margin"),
    protects="attribute",
    notions=NOTIONS,
    kind=FairnessKind.WEIGHTS,
    private_groups=True,
    reference="overall",
)


@registered(
    replace(
        _SPEC,
        name="sf-student",
        words="Teachers who read groups alone, and a student that is held within the margin.",
        fixed={"variant": "student"},
    ),
    replace(
        _SPEC,
        name="sf-teachers",
        words="Teachers who read groups and are each held within the margin, and a student.",
        fixed={"variant": "teachers"},
    ),
)
@dataclass(eq=False, repr=False)
class SFPATEClassifier(AttributePrivacyClassifier):
    """Train a fair classifier without its model telling anybody's group (SF-PATE).

    Features and class labels are public; only the sensitive attribute is private. Teachers read the
    groups, each of its own part of the rows, and noisy votes are all that leaves them. The model
    needs no group at prediction.

    Parameters
    ----------
    budget : Budget
        The (epsilon, delta) that the whole fit may spend. Needed.
    variant : {"student", "teachers"}
        Who is trained under the constraint. ``"student"`` (SF_S): teachers learn to tell the group
        from the features, and the student learns the true labels under the constraint with the
        groups that they tell. ``"teachers"`` (SF_T): each teacher is a classifier that is fair on
        its own rows, and the student learns their noisy vote, under the constraint with groups that
        noisy sums tell (``calibration``).
    fairness : Notion
        What shall be equal, with the largest difference between a group and the whole population
        as its margin and ``reference="overall"``: any notion of decisions,
        ``GeneralizedDemographicParity``, or ``FunctionParity(h=...)``: no notion needs any privacy
        work. Default: demographic parity with a margin of 0.01.
    n_teachers : int
        Each reads the groups of its own rows. At most the number of rows.
    teachers : Teachers, classifier, torch.nn.Module or callable, optional
        As for ``PATEClassifier``. Default: logistic regression. With ``variant="teachers"``
        ``LogisticTeachers`` and ``MLPTeachers`` are trained under the constraint;
        ``BlackBoxFairTeachers`` takes any fair classifier.
    n_queries : int, optional
        How many rows the teachers vote on, chosen at random. Default: 2000, or all.
    answers : {"smoothed", "shares", "labels"}
        What the student makes of the noisy shares of the votes, with ``variant="student"``.
        ``"smoothed"``: probabilities of the groups for every row, by a regression on the noisy
        shares that knows their noise. ``"shares"``: the shares themselves, as unbiased weights of
        the queried rows. ``"labels"``: the group with the largest noisy share, as in the
        paper.
    pull : float, optional
        lambda: weight of the squared distance to theta*, the model of the public features and
        labels without a constraint, beside a mean loss; of weights with ``variant="student"``
        (default .001), of scores, in the mean over the rows, with ``"teachers"`` (default .3). With
        ``variant="teachers"`` and ``pull=0`` labels are never read outside the teachers, and are
        protected too.
    student : NetworkStudent, optional
        Default: logistic regression.
    step : float
        Of the multipliers of a linear student.
    calibration : float, optional
        Share of the budget (without that of the certificate), in (0, 1), to spend on noisy sums
        over each group, of its rows and of how a model without a constraint scores them. With
        ``variant="student"`` the smoothed groups are made to agree with them: votes tell who is of
        which group, but not how sure that is (only with ``answers="smoothed"``). With
        ``"teachers"`` they are all that the student knows of groups, and hold it to the margin: a
        vote of fair teachers is not fair. None: as in the paper, votes are taken at their word.
    certificate : float, optional
        Share of the budget, in (0, 1), to spend on a table of true and noisy groups, from which the
        true violation is bounded (``bounds_``). Only with ``variant="student"``.
    groups : sequence of str, optional
        All groups that can occur. Default: those that do; their names are then public.
    unit : str, default "person"
        Whose attribute it is, in the words of the guarantee.
    schema, classes, noise, random_state
        As for ``PATEClassifier``. Features are public here, so the rows scale themselves.

    Attributes
    ----------
    guarantee_ : Guarantee
        Of the sensitive attribute of one person, and no more; says what is public.
    answers_ : Shares
        Noisy shares of the votes on the queried rows: of groups (student), or of classes
        (teachers).
    noisy_violation_ : float
        Violation of the decisions (or probabilities) on the rows, with groups as the answers and
        sums tell them; NaN for a student that knows no groups: ``variant="teachers"`` without
        ``calibration``, or with a notion about labels where these are protected.
    within_alpha_ : bool
        Whether that is at most the margin; True where it is NaN.
    bounds_ : tuple of Bound
        What SF-PATE's bounds say about this model, computed from released and public values.
    expected_rates_ : ExpectedRates
        Exact rates of the noisy vote by true group (``variant="teachers"``). **Private**.
    groups_of_teachers_ : GroupsOfTeachers
        Which teacher holds which groups. **Private**.
    groups_, ledger_, classes_, student_, encoder_, mechanism_, n_teachers_, fairness_kind_

    Privacy
    -------
    Neighbors : change the group label of one person (of all rows of one unit, with ``unit_ids``).
        With ``variant="teachers"`` and ``pull=0``: group and class label.
    Sensitivity : who learns from whom depends on positions (or unit ids) alone, so one teacher's
        groups change, and one vote for each queried row: 1 for two groups (or classes),
        sqrt(2) for more.
    Cost : at most the budget: ``n_queries`` noisy histograms, noisy sums over groups, and the table
        of the certificate. All that the student does with them is post-processing. The sums are of
        public features and of what was released before; with ``variant="teachers"`` and ``pull=0``
        no class label enters them.

    References
    ----------
    Tran, Zhu, Fioretto and Van Hentenryck 2023, "SF-PATE: Scalable, Fair, and Private Aggregation
    of Teacher Ensembles", problems (2) and (5).

    Examples
    --------
    >>> from evenhand.privacy import SeededNoise
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.integers(2, size=3000)
    >>> X = rng.normal(size=(3000, 3)) + sex[:, None] * [[0.0, 1.5, 1.5]]
    >>> y = (X[:, 0] + X[:, 1] + rng.normal(size=3000) > 0.75).astype(int)
    >>> clf = SFPATEClassifier(
    ...     Budget(epsilon=1.0, delta=1e-5), n_teachers=60, random_state=0,
    ...     fairness=DemographicParity(margin=0.02, reference="overall"),
    ... ).fit(X, y, sensitive_features=sex)
    >>> clf.guarantee_.unit, clf.guarantee_.neighbors
    ('sensitive attribute of one person', 'change one group label')
    """

    variant: str = "student"
    _: KW_ONLY
    fairness: Notion | None = None
    n_teachers: int = 300
    teachers: Any = None
    n_queries: int | None = None
    answers: str = "smoothed"
    pull: float | None = None
    student: NetworkStudent | None = None
    step: float = 1.0
    calibration: float | None = 0.2
    certificate: float | None = None
    groups: Sequence[str] | None = None
    unit: str = "person"

    @property
    def notion(self) -> Notion:
        """What is held: ``fairness``, or its default."""
        return DEFAULT if self.fairness is None else self.fairness

    def __getstate__(self) -> dict[str, Any]:
        """Leave what only the curator may see out of a pickle and of a copy."""
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name not in _PRIVATE}

    def _learn(self, given: FitArguments) -> None:
        budget, notion = self._checked_settings()
        rng = as_generator(self.random_state)
        names = None if self.groups is None else tuple(str(name) for name in self.groups)
        people = self._read_people(given, rng, names=names)
        partition = self._deal(people, given.unit_ids, rng)
        run = self._open(budget, given.ledger)
        whole = run.remaining * (1.0 - 1e-9)  # a sum of three parts must not exceed it
        queried = self._ask(people, partition, notion, run, whole, rng, given.progress)
        problem = Problem(
            people=people,
            queried=queried,
            notion=notion,
            pull=self._pull,
            step=self.step,
            student=self.student,
            ledger=run,
            sums=self._shares[1] * whole,
            table=self._shares[2] * whole,
            unit_ids=given.unit_ids,
            rng=rng,
        )
        if self.variant == "student":
            self._keep(with_estimated_groups(problem, self.answers))
        else:
            public = not self._labels_are_private
            self._keep(after_fair_votes(problem, labels_are_public=public))
        self._conclude(people, partition, queried, run)

    def _describe(self) -> FittedModel:
        return replace(
            super()._describe(),
            n_teachers=self.n_teachers_,
            answers=self.answers_,
            choices=self.choices_,
            true_groups=TrueGroups(
                notion=self.notion.title,
                margin=self.notion.margin,
                by_teachers=self.variant == "teachers",
                violation=self.noisy_violation_,
                met=self.within_alpha_,
                bounds=self.bounds_,
            ),
        )

    def _take(self, fitted: FittedModel) -> None:
        super()._take(fitted)
        assert fitted.n_teachers is not None
        assert isinstance(fitted.answers, Shares)
        assert fitted.true_groups is not None
        self.n_teachers_, self.answers_ = fitted.n_teachers, fitted.answers
        self.choices_, self.bounds_ = fitted.choices, fitted.true_groups.bounds
        self.noisy_violation_ = fitted.true_groups.violation
        self.within_alpha_ = fitted.true_groups.met

    def _aim(self) -> tuple[str | None, float | None]:
        return self.notion.name, self.notion.margin

    def _checked_settings(self) -> tuple[Budget, Notion]:
        budget = self._checked_budget()
        _checks.one_of("variant", self.variant, VARIANTS)
        _checks.one_of("answers", self.answers, ANSWERS)
        _checks.at_least("n_teachers", self.n_teachers, 1)
        if self.pull is not None:
            _checks.non_negative("pull", self.pull)
        if self.n_queries is not None:
            _checks.at_least("n_queries", self.n_queries, 1)
        if self.calibration is not None:
            _checks.open_unit("calibration", self.calibration)
        if self.certificate is not None:
            _checks.open_unit("certificate", self.certificate)
            if self.variant != "student":
                raise ValueError(
                    "certificate= compares true groups with noisy ones, and teachers that vote on "
                    "classes tell none. Leave it out, or use variant='student'."
                )
        if self.student is not None and not isinstance(self.student, NetworkStudent):
            raise ValueError(
                f"student must be a NetworkStudent, or None for logistic regression, got "
                f"{self.student!r}. To be trained under the constraint it must be known how."
            )
        return budget, require_reference(self.notion, "overall", "SF-PATE")

    @property
    def _labels_are_private(self) -> bool:
        return self.variant == "teachers" and self.pull == 0

    @property
    def _pull(self) -> float:
        return PULLS[self.variant] if self.pull is None else self.pull

    @property
    def _shares(self) -> tuple[float, float, float]:
        """Parts of the budget: for votes, for sums that the groups agree with, for the table."""
        table = self.certificate or 0.0
        calibrated = self.answers == "smoothed"
        if self.variant == "teachers":
            # Where nobody may read a class label, nothing that is about labels can be held equal.
            calibrated = not (self._labels_are_private and self.notion.needs_labels)
        sums = (1.0 - table) * (self.calibration or 0.0) if calibrated else 0.0
        return 1.0 - table - sums, sums, table

    @property
    def _relation(self) -> tuple[str, str]:
        """Unit and neighbors of the guarantee."""
        both = self._labels_are_private
        unit = attribute_of(self.unit, and_class_label=both)
        return unit, GROUP_AND_CLASS_LABEL if both else GROUP_LABEL

    def _deal(
        self, people: PeopleInputs, unit_ids: ArrayLike | None, rng: np.random.Generator
    ) -> Partition:
        """Assign rows to teachers by position or unit: no group is looked at."""
        seed = rng.spawn(1)[0]
        if unit_ids is None:
            return by_position(people.data.n_private, self.n_teachers, seed)
        _checks.same_length(X=people.X_encoded, unit_ids=np.asarray(unit_ids))
        if self.certificate is not None:
            raise ValueError(
                f"certificate= counts rows, and with unit_ids one {self.unit} may have many, whose "
                f"counts would all move together. Leave one of them out."
            )
        return by_unit(unit_ids, self.n_teachers, seed.bytes(32), unit=self.unit)

    def _open(self, budget: Budget, ledger: Ledger | None) -> Ledger:
        unit, neighbors = self._relation
        run = open_run(
            budget,
            ledger,
            self.noise,
            unit=unit,
            neighbors=neighbors,
            way_out=f"Open an account with unit={unit!r} and neighbors={neighbors!r} for runs that "
            f"protect no more than that.",
            purpose=type(self).__name__,
        )
        if run.remaining < budget.mu_squared * (1.0 - 1e-6):
            left = max(run.remaining, 1e-300)
            raise BudgetExceeded(
                f"The account has epsilon={epsilon_from_mu(math.sqrt(left), budget.delta):.3f} "
                f"left, and this run asks for epsilon={budget.epsilon:g} at "
                f"delta={budget.delta:g}. Ask for less, or open another account for other people. "
                f"Nothing was charged."
            )
        return run

    def _ask(
        self,
        people: PeopleInputs,
        partition: Partition,
        notion: Notion,
        run: Ledger,
        whole: float,
        rng: np.random.Generator,
        progress: Progress | None,
    ) -> QueriedRows:
        """Train the teachers and release noisy shares of their votes on some of the rows."""
        n = people.data.n_private
        wanted = DEFAULT_QUERIES if self.n_queries is None else self.n_queries
        rows = np.sort(rng.permutation(n)[: min(n, wanted)])
        by_group = self.variant == "student"
        n_said = people.groups.n_groups if by_group else people.data.n_classes
        histogram = histogram_for(run, len(rows), n_said, whole * self._shares[0])
        z, names = people.groups.codes, people.groups.names
        self.groups_of_teachers_, all_held = groups_of_teachers(z, partition, names)
        if not by_group and not all_held:
            warnings.warn(
                f"At least one of {partition.n_teachers} teachers holds no record of some group, "
                f"and is trained without comparing it. This warning depends on private groups: it "
                f"is for the curator, and not to be published. groups_of_teachers_."
                f"reveal_to_curator() names the teachers, and how many teachers would do.",
                GroupMissingInPartition,
                stacklevel=3,
            )
        teachers = self.teachers
        more: dict[str, Any] = {}
        if by_group:
            teachers = as_teachers(
                teachers, n_features=people.X_encoded.shape[1], n_classes=n_said, rng=rng
            )
        else:
            teachers = constrained(teachers, notion)
            more = {"groups": z, "n_groups": people.groups.n_groups}
        ensemble = teachers.fit(
            people.X_encoded,
            z if by_group else people.data.y_private,
            partition,
            n_said,
            rng.spawn(1)[0],
            progress=None if progress is None else _of(progress, "teachers"),
            **more,
        )
        votes = Votes.of(ensemble.vote(people.X_encoded[rows]), n_said)
        plan = Rounds.once(histogram, len(rows))
        self.mechanism_ = plan
        shares = release_shares(votes, plan, run)
        return QueriedRows(rows=rows, shares=shares, votes=votes, sigma=histogram.sigma)

    def _keep(self, learned: Learned) -> None:
        self.student_, self.bounds_ = learned.student, learned.bounds
        self.noisy_violation_ = learned.violation
        self.within_alpha_ = not learned.violation > self.notion.margin
        if learned.expected is not None:
            self.expected_rates_ = learned.expected

    def _conclude(
        self, people: PeopleInputs, partition: Partition, queried: QueriedRows, run: Ledger
    ) -> None:
        self.answers_ = queried.shares
        self.encoder_, self.classes_ = people.encoder, people.data.classes
        self.groups_ = people.groups.names
        self.n_teachers_ = partition.n_teachers
        what = "groups" if self.variant == "student" else "classes"
        choices = [
            f"{partition.n_teachers:,} teachers vote on the {what} of {len(queried.rows):,} rows, "
            f"with noise of {queried.sigma:.3g} votes: what the budget pays for."
        ]
        if self.variant == "teachers" and self.calibration and not self._shares[1]:
            choices.append(
                "The student is not held to the margin: the notion is about class labels, which "
                "are protected here."
            )
        self.choices_ = tuple(choices)
        self.ledger_ = run
        self.fairness_kind_ = FairnessKind.WEIGHTS
        self.guarantee_ = self._relation_claim(people, partition, run)

    def _relation_claim(self, people: PeopleInputs, partition: Partition, run: Ledger) -> Guarantee:
        n = people.data.n_private
        what = "features" if self._labels_are_private else "features and class labels"
        whose = (
            "that each row is another person"
            if partition.neighbors == "replace one"
            else f"whose row each is (the {self.unit} of each row)"
        )
        warning = delta_warning(run.budget.delta, n)
        return run.guarantee(
            public=(
                f"the {what} of all {n} rows",
                whose,
                "the names of the groups and classes",
                "all settings",
            ),
            not_covered=(
                f"what the public {what} tell of the attribute",
                "a choice of settings or of a model made by looking at the groups",
                "measurements that read the groups",
            ),
            warnings=(warning,) if warning else (),
        )


def _of(progress: Progress, stage: str) -> Any:
    return lambda done, total: progress(stage, done, total)

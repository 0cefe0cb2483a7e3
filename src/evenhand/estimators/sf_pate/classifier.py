"""SF-PATE: a fair model from teachers, where each person's group is private and nothing else is."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Final, Self

import numpy as np

from evenhand import _checks
from evenhand._notions import NOTIONS
from evenhand._random import as_generator
from evenhand._units import ids_of
from evenhand.estimators.attribute_privacy import AttributePrivacyClassifier, PeopleInputs
from evenhand.estimators.blind_rule import put_around
from evenhand.estimators.fitted import FittedModel
from evenhand.estimators.given_rows import checked_features
from evenhand.estimators.inputs import FitArguments, Progress, calibration_given, stage
from evenhand.estimators.margins import TrueGroups
from evenhand.estimators.rows_after import PublicRows, read_public_rows
from evenhand.estimators.sf_pate.groups import ANSWERS, QueriedRows
from evenhand.estimators.sf_pate.learning import Problem, first_network, solved
from evenhand.estimators.sf_pate.protected import Protected
from evenhand.estimators.sf_pate.steps import PeopleGiven, PeoplePlan, PeopleTaught
from evenhand.estimators.spec import ACCOUNT, BUDGET, MethodSpec, registered
from evenhand.estimators.teaching import as_teachers
from evenhand.fairness import DemographicParity, FairnessKind, GeneralizedDemographicParity
from evenhand.fairness.notion import Notion, RateNotion, rates_of, require_reference
from evenhand.privacy import Ledger
from evenhand.students.learned_features import LearnedFeatures, as_network
from evenhand.students.module import ModuleStudent
from evenhand.students.network import TrainedStudent
from evenhand.teachers import GroupMissingInPartition, by_position, by_unit
from evenhand.teachers.coverage import groups_of_teachers
from evenhand.teachers.fair import constrained
from evenhand.teachers.partition import Partition
from evenhand.typing import ArrayLike
from evenhand.voting import Shares, Votes
from evenhand.voting.shares import Rounds, histogram_for, release_shares

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
    reads=(
        *BUDGET,
        *ACCOUNT,
        "calibration",
        "confidence",
        "margin",
        "n_teachers",
        "noise",
        "pull",
        "teacher",
    ),
    needs=("epsilon", "margin"),
    protects="attribute",
    notions=NOTIONS,
    kind=lambda settings: (
        FairnessKind.WEIGHTS if settings.get("confidence") is None else FairnessKind.BLIND_RULE
    ),
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
        work. Default: demographic parity with a margin of 0.01. With ``confidence`` the student
        that was trained under it gets a blind rule, chosen by calibration rows: the upper limit of
        the gap on rows that the rule was not set on is held within the margin, and
        ``margin_supported_`` is the least margin that so many rows support.
    n_teachers : int
        Each reads the groups of its own rows. At most the number of rows.
    teachers : Teachers, classifier, torch.nn.Module or callable, optional
        As for ``PATEClassifier``. Default: logistic regression. With ``variant="teachers"``
        ``LogisticTeachers``, ``MLPTeachers`` and ``NetworkTeachers`` (an architecture, too) are
        trained under the constraint; ``BlackBoxFairTeachers`` takes any fair classifier.
    n_queries : int, optional
        How many rows the teachers vote on, chosen at random. Default: 2000, or all.
    answers : {"smoothed", "shares", "labels"}
        What the student makes of the noisy shares of the votes. With ``variant="teachers"``
        ``"labels"`` is problem (5) as printed: the student learns the class with the largest noisy
        share, knows no groups, and is pulled to theta* by the norm of weights (theta* is that of
        the queried rows); else it learns the shares. With ``variant="student"``:
        ``"smoothed"``: probabilities of the groups for every row, by a regression on the noisy
        shares that knows their noise. ``"shares"``: the shares themselves, as unbiased weights of
        the queried rows. ``"labels"``: the group with the largest noisy share, as in the
        paper.
    pull : float, optional
        lambda: weight of the squared distance to theta*, the model of the public features and
        labels without a constraint, beside a mean loss; of weights with ``variant="student"`` or
        ``answers="labels"`` (default .001), of scores, in the mean over the rows, with
        ``"teachers"`` (default .3). With
        ``variant="teachers"`` and ``pull=0`` labels are never read outside the teachers, and are
        protected too.
    student : NetworkStudent, ModuleStudent, Architecture or torch.nn.Module, optional
        Default: logistic regression. Where ``X`` holds pictures (n, channels, height, width) it
        must be a network that reads them and ends with a linear layer: theta* is that network, and
        the last layer is held to the margin.
    step : float
        Of the multipliers of a linear student.
    calibration : float, optional
        Share of the budget (without that of the certificate), in (0, 1), to spend on noisy sums
        over each group, of its rows and of how a model without a constraint scores them. With
        ``variant="student"`` the smoothed groups are made to agree with them: votes tell who is of
        which group, but not how sure that is. With ``"teachers"`` they are all that the student
        knows of groups, and hold it to the margin: a vote of fair teachers is not fair. None: as in
        the paper, votes are taken at their word; so it is with ``answers="labels"``, and of a
        student with ``"shares"``, where another share than the default is refused.
    certificate : float, optional
        Share of the budget, in (0, 1), to spend on a table of true and noisy groups, from which the
        true violation is bounded (``bounds_``). Only with ``variant="student"``, for a notion that
        compares means over all rows of a group, and without ``confidence``.
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
        What SF-PATE's bounds say about this model, computed from released and public values. These
        three are of the student, not of a rule or thresholds that were put around it.
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
    >>> import numpy as np
    >>> from evenhand import Budget, DemographicParity
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

    _reads_pictures = True

    variant: str = "student"
    _: KW_ONLY
    fairness: Notion | None = None
    n_teachers: int = 300
    teachers: Any = None
    n_queries: int | None = None
    answers: str = "smoothed"
    pull: float | None = None
    student: Any = None
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
        """Train teachers on the groups, ask them with noise, fit the student."""
        read = self.read(given)
        plan = self.plan(read, given.ledger)
        taught = self.teach(read, given.progress)
        self.conclude(taught, plan, self.ask(taught, plan))

    def read(self, given: FitArguments) -> PeopleGiven:
        """Check the arguments, assign rows to teachers, and draw the rows that they vote on."""
        self._check_settings()
        rng = as_generator(self.random_state)
        names = None if self.groups is None else tuple(str(name) for name in self.groups)
        people = self._read_people(given, rng, names=names)
        if people.are_pictures and not isinstance(self._network, ModuleStudent):
            raise ValueError(
                f"X holds pictures of shape {people.X_encoded.shape[1:]}, which a network reads. "
                f"Pass one, for example student=Convolutional(), and teachers=Convolutional(); or "
                f"train on features of the pictures."
            )
        if self.certificate is not None:
            _require_mean_of_all(self.notion, people.data.n_classes)
        partition = self._deal(people, given.unit_ids, rng.spawn(1)[0])
        n = people.data.n_private
        wanted = DEFAULT_QUERIES if self.n_queries is None else self.n_queries
        rows = np.sort(rng.permutation(n)[: min(n, wanted)])
        return PeopleGiven(
            people=people,
            partition=partition,
            rows=rows,
            unit_ids=given.unit_ids,
            rng=rng,
            held_out=self._held_out(given, people),
        )

    def _held_out(self, given: FitArguments, people: PeopleInputs) -> PublicRows | None:
        """Return the rows with known groups by which a rule is chosen; None for no confidence."""
        has_rows, confidence = calibration_given(vars(given)), _confidence(self.notion)
        if confidence is None:
            if has_rows:
                raise ValueError(
                    f"Calibration rows choose among rules for a margin with a confidence, and "
                    f"fairness={self.notion!r} has none. Leave them out, or name one: "
                    f"confidence=0.95."
                )
            return None
        if not has_rows:
            raise ValueError(
                f"confidence={confidence:g} is about rows that had no part in training and whose "
                f"groups are known, and every group of X is private. Pass X_calibration, "
                f"y_calibration and sensitive_features_calibration, public rows with labels and "
                f"groups, or leave confidence out."
            )
        assert isinstance(self.notion, RateNotion)
        X = checked_features(self, given.X_calibration, reset=False, name="X_calibration")
        return read_public_rows(
            people.encoder.transform(X),
            given.sensitive_features_calibration,
            given.y_calibration,
            self.notion,
            people.data.classes,
            name="y_calibration",
        )

    def plan(self, given: PeopleGiven, ledger: Ledger | None = None) -> PeoplePlan:
        """Open this run's ledger, and part the budget between votes, sums and table.

        Raises
        ------
        BudgetExceeded
            If the account does not cover the budget. Nothing is spent then.
        """
        run = self._protected.open(
            self._checked_budget(), ledger, self.noise, purpose=type(self).__name__
        )
        whole = run.remaining * (1.0 - 1e-9)  # a sum of three parts must not exceed it
        votes, sums, table = (share * whole for share in self._shares)
        histogram = histogram_for(run, len(given.rows), self._n_votable(given.people), votes)
        rounds = Rounds.once(histogram, len(given.rows))
        return PeoplePlan(ledger=run, mechanism=rounds, sums=sums, table=table)

    def teach(self, given: PeopleGiven, progress: Progress | None = None) -> PeopleTaught:
        """Train the teachers, on groups or under the constraint, and let all of them vote."""
        people, partition = given.people, given.partition
        z, names = people.groups.codes, people.groups.names
        holdings, all_held = groups_of_teachers(z, partition, names)
        n_votable = self._n_votable(people)
        shape = people.X_encoded.shape[1:]
        teachers = self.teachers
        if teachers is not None or self.variant == "student":
            teachers = as_teachers(
                teachers,
                n_features=shape if people.are_pictures else shape[0],
                n_classes=n_votable,
                rng=given.rng,
            )
        target, more = z, {}
        if self.variant == "teachers":
            if not all_held:
                _warn_of_missing_groups(partition.n_teachers)
            target, teachers = people.data.y_private, constrained(teachers, self.notion)
            more = {"groups": z, "n_groups": people.groups.n_groups}
        ensemble = teachers.fit(
            people.X_encoded,
            target,
            partition,
            n_votable,
            given.rng.spawn(1)[0],
            progress=stage(progress, "teachers"),
            **more,
        )
        votes = Votes.of(ensemble.vote(people.X_encoded[given.rows]), n_votable)
        return PeopleTaught(
            given=given,
            votes=votes,
            groups_of_teachers=holdings,
            first=self._first(people, given.rng),
        )

    def _first(self, people: PeopleInputs, rng: np.random.Generator) -> LearnedFeatures | None:
        """Train theta* of pictures, where labels are public."""
        network = self._network
        if not people.are_pictures or self._labels_are_private:
            return None
        assert isinstance(network, ModuleStudent)
        return first_network(network, people, rng.spawn(1)[0])

    def ask(self, taught: PeopleTaught, plan: PeoplePlan) -> Shares:
        """Release noisy shares of the votes, charged before they are drawn."""
        return release_shares(taught.votes, plan.mechanism, plan.ledger)

    def conclude(self, taught: PeopleTaught, plan: PeoplePlan, answers: Shares) -> Self:
        """Fit the student on the answers, and write down what was claimed and spent."""
        given = taught.given
        people, partition = given.people, given.partition
        problem = Problem(
            people=people,
            queried=QueriedRows(
                rows=given.rows, shares=answers, votes=taught.votes, sigma=plan.sigma
            ),
            notion=self.notion,
            pull=self._default_pull if self.pull is None else self.pull,
            step=self.step,
            student=self._network,
            ledger=plan.ledger,
            sums=plan.sums,
            table=plan.table,
            unit_ids=given.unit_ids,
            rng=given.rng,
        )
        learned = solved(
            problem,
            self.variant,
            self.answers,
            labels_are_public=not self._labels_are_private,
            first=taught.first,
        )
        self.student_, self.bounds_ = learned.student, learned.bounds
        self.noisy_violation_ = learned.violation
        self.within_alpha_ = not learned.violation > self.notion.margin
        if learned.expected is not None:
            self.expected_rates_ = learned.expected
        self.groups_of_teachers_ = taught.groups_of_teachers
        self.answers_, self.ledger_ = answers, plan.ledger
        self.mechanism_ = plan.mechanism
        self.encoder_, self.classes_ = people.encoder, people.data.classes
        self.groups_, self.n_teachers_ = people.groups.names, partition.n_teachers
        self.choices_ = self._choices(partition.n_teachers, problem.queried)
        self.fairness_kind_ = FairnessKind.WEIGHTS
        self.guarantee_ = self._protected.claim(people, partition, plan.ledger)
        self.student_margin_ = self.student_without_margin_ = None
        if given.held_out is not None:
            assert isinstance(self.notion, RateNotion)
            put_around(self, self.student_, given.held_out, self.notion)
        self._fitted = self._describe()
        return self

    def _describe(self) -> FittedModel:
        return replace(
            super()._describe(),
            n_teachers=self.n_teachers_,
            answers=self.answers_,
            true_groups=TrueGroups(
                notion=self.notion.title,
                margin=self.notion.margin,
                by_teachers=self.variant == "teachers",
                violation=self.noisy_violation_,
                met=self.within_alpha_,
                bounds=self.bounds_,
                beneath=self.fairness_kind_ is not FairnessKind.WEIGHTS,
            ),
        )

    def _take(self, fitted: FittedModel) -> None:
        super()._take(fitted)
        assert fitted.n_teachers is not None
        assert isinstance(fitted.answers, Shares)
        assert fitted.true_groups is not None
        self.n_teachers_, self.answers_ = fitted.n_teachers, fitted.answers
        self.bounds_ = fitted.true_groups.bounds
        self.noisy_violation_ = fitted.true_groups.violation
        self.within_alpha_ = fitted.true_groups.met

    def _aim(self) -> tuple[str | None, float | None]:
        if self.student_margin_ is not None:  # that of the rule, which decides
            return super()._aim()
        return self.notion.name, self.notion.margin

    def _check_settings(self) -> None:
        """Check the arguments before anything is read."""
        self._checked_budget()
        _checks.one_of("variant", self.variant, VARIANTS)
        _checks.one_of("answers", self.answers, ANSWERS)
        _checks.at_least("n_teachers", self.n_teachers, 1)
        _checks.positive("step", self.step)
        if self.pull is not None:
            _checks.non_negative("pull", self.pull)
        if self.n_queries is not None:
            _checks.at_least("n_queries", self.n_queries, 1)
        if self.calibration is not None:
            _checks.open_unit("calibration", self.calibration)
            if not self._reads_sums and self.calibration != SFPATEClassifier.calibration:
                raise ValueError(
                    f"calibration={self.calibration:g} pays for noisy sums over the groups, and "
                    f"with variant={self.variant!r} and answers={self.answers!r} nothing reads "
                    f"them. Leave it out, or use answers='smoothed'."
                )
        if self.certificate is not None:
            _checks.open_unit("certificate", self.certificate)
            if self.variant != "student":
                raise ValueError(
                    "certificate= compares true groups with noisy ones, and teachers that vote on "
                    "classes tell none. Leave it out, or use variant='student'."
                )
            if _confidence(self.notion) is not None:
                raise ValueError(
                    "certificate= bounds the violation of the student, and with confidence= a rule "
                    "around it decides. Leave one of them out."
                )
        if self.student is not None and self._network is None:
            raise ValueError(
                f"student must be a NetworkStudent, a ModuleStudent or what that takes, or None "
                f"for logistic regression, got {self.student!r}. To be trained under the "
                f"constraint it must be known how."
            )
        require_reference(self.notion, "overall", "SF-PATE")

    @property
    def _network(self) -> TrainedStudent | None:
        """The student, if it is a network: settings, a torch module or an architecture."""
        known = self.student
        return known if isinstance(known, TrainedStudent) else as_network(known)

    @property
    def _as_printed(self) -> bool:
        """Whether fair votes are learned as the paper prints it: their winners, and no groups."""
        return self.variant == "teachers" and self.answers == "labels"

    @property
    def _reads_sums(self) -> bool:
        """Whether sums over the groups have a use: votes are not taken at their word."""
        return self.answers == "smoothed" or (self.variant, self.answers) == ("teachers", "shares")

    @property
    def _default_pull(self) -> float:
        return PULLS["student" if self._as_printed else self.variant]

    @property
    def _labels_are_private(self) -> bool:
        return self.variant == "teachers" and self.pull == 0

    def _n_votable(self, people: PeopleInputs) -> int:
        """Return how many groups, or classes, teachers vote for."""
        return people.groups.n_groups if self.variant == "student" else people.data.n_classes

    @property
    def _shares(self) -> tuple[float, float, float]:
        """Parts of the budget: for votes, for sums that the groups agree with, for the table."""
        table = self.certificate or 0.0
        # Where nobody may read a class label, nothing that is about labels can be held equal.
        held = self._reads_sums and not (self._labels_are_private and self.notion.needs_labels)
        sums = (1.0 - table) * (self.calibration or 0.0) if held else 0.0
        return 1.0 - table - sums, sums, table

    @property
    def _protected(self) -> Protected:
        return Protected(whose=self.unit, class_labels=self._labels_are_private)

    def _deal(
        self, people: PeopleInputs, unit_ids: ArrayLike | None, seed: np.random.Generator
    ) -> Partition:
        """Assign rows to teachers by position or unit: no group is looked at."""
        if unit_ids is None:
            return by_position(people.data.n_private, self.n_teachers, seed)
        _checks.same_length(X=people.X_encoded, unit_ids=ids_of(unit_ids))
        if self.certificate is not None:
            raise ValueError(
                f"certificate= counts rows, and with unit_ids one {self.unit} may have many, whose "
                f"counts would all move together. Leave one of them out."
            )
        return by_unit(unit_ids, self.n_teachers, seed.bytes(32), unit=self.unit)

    def _choices(self, n_teachers: int, queried: QueriedRows) -> tuple[str, ...]:
        what = "groups" if self.variant == "student" else "classes"
        choices = [
            f"{n_teachers:,} teachers vote on the {what} of {len(queried.rows):,} rows, "
            f"with noise of {queried.sigma:.3g} votes: what the budget pays for."
        ]
        if self._as_printed:
            choices.append(
                "The student is not held to the margin: it learns the winners of the teachers' "
                "vote, as the paper prints it."
            )
        elif self.variant == "teachers" and self.calibration and not self._shares[1]:
            choices.append(
                "The student is not held to the margin: the notion is about class labels, which "
                "are protected here."
            )
        elif self.calibration and not self._shares[1]:
            choices.append(
                f"No sums over the groups are paid for (calibration): votes are taken at their "
                f"word, by answers={self.answers!r}."
            )
        return tuple(choices)


def _confidence(notion: Notion) -> float | None:
    return getattr(notion, "confidence", None)


def _require_mean_of_all(notion: Notion, n_classes: int) -> None:
    """Refuse a notion of which a table of true and noisy groups says nothing."""
    known = isinstance(notion, GeneralizedDemographicParity)
    if isinstance(notion, RateNotion):
        known = bool(rates_of(notion, n_classes).among.all())
    if not known:
        raise ValueError(
            f"certificate= counts all rows by true and by noisy group, which bounds means over all "
            f"rows of a group, of a function in [0, 1]. {type(notion).__name__} is about rows of "
            f"some classes, or about a function of unknown range: leave certificate out."
        )


def _warn_of_missing_groups(n_teachers: int) -> None:
    warnings.warn(
        f"At least one of {n_teachers} teachers holds no record of some group, "
        f"and is trained without comparing it. This warning depends on private groups: it "
        f"is for the curator, and not to be published. groups_of_teachers_."
        f"reveal_to_curator() names the teachers, and how many teachers would do.",
        GroupMissingInPartition,
        stacklevel=5,
    )

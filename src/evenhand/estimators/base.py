"""The steps of ``fit`` by teachers: read, plan, teach, ask, conclude.

``fit`` itself stands in ``classifier``, for all methods, and hands its arguments on as one value.
From there to what is released, private rows go through each module once:

1. ``read`` (``reading``) checks and parts them; ``teachers.partition`` assigns them to teachers.
2. ``plan`` (``plan``, ``ledgers``) chooses mechanism and noise from public numbers: none is read.
   Where there are no public rows, ``draw_rows`` (``drawn_rows``) then pays for some; where there
   are, ``compare`` (``compared_rows``) counts the private ones beside them, if that was asked for.
3. ``teach`` (``datasets.encoding``, ``teachers``) trains; from here on there are votes alone.
4. ``calibrate`` buys answers to labelled rows, where a gate is about true classes; ``ask``
   (``voting``) releases answers from the votes. The ledger charges each draw before it.
5. ``conclude`` (``students``, ``conclusion``) reads public rows and answers. Where a margin is read
   on drawn rows it pays for decisions about the private ones, counted (``counted_decisions``).

What a step hands on is a value of ``steps``. A sweep over settings takes the same steps, and those
that settings share once (``shared_teachers``).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Self

import numpy as np

from evenhand import _checks
from evenhand._random import as_generator
from evenhand.datasets.parquet import ParquetRows
from evenhand.estimators import counted_decisions, drift
from evenhand.estimators.calibration import warn_of_unread
from evenhand.estimators.classifier import PrivateClassifier
from evenhand.estimators.compared_rows import RowsToCompare
from evenhand.estimators.conclusion import (
    answered_coverage,
    claim_of,
    public_yardstick,
    student_margin,
)
from evenhand.estimators.dealing import change_claimed, deal, refuse_other_rows_aside
from evenhand.estimators.drift import ColumnDrift, DriftCheck, as_drift_check, sentences
from evenhand.estimators.fitted import FittedModel
from evenhand.estimators.given_rows import encoded
from evenhand.estimators.inputs import FitArguments, FitInputs, Progress, stage
from evenhand.estimators.ledgers import answers_budget, open_run, own_noise, parted
from evenhand.estimators.plan import (
    DEGREE,
    choose_mechanism,
    choose_n_teachers,
    warn_of_drowning,
)
from evenhand.estimators.reading import read_fit_inputs, read_vote_inputs
from evenhand.estimators.shared_rows import refuse_shared
from evenhand.estimators.small_groups import warn_of_small_groups
from evenhand.estimators.steps import Given, Plan, Taught
from evenhand.estimators.streamed import Lesson, read_streamed_inputs, require_streamable
from evenhand.estimators.synthetic_rows import SyntheticRows, as_synthetic
from evenhand.estimators.teaching import as_teachers
from evenhand.fairness import FairnessKind
from evenhand.fairness.gate.gate import Gate
from evenhand.fairness.trace import Coverage
from evenhand.fairness.yardstick import Yardstick
from evenhand.owners.collection import OwnerVotes
from evenhand.owners.noisy_sums import NoisySums
from evenhand.owners.vote_file import VoteFile
from evenhand.privacy import Guarantee, Ledger, NoisyHistogram
from evenhand.students.learned_features import as_network
from evenhand.students.soft_labels import SoftLabels
from evenhand.students.student import (
    Student,
    fit_student,
    require_student,
    uncertainty,
)
from evenhand.students.within import Within
from evenhand.teachers.ensemble import Ensemble, Teachers
from evenhand.teachers.partition import Neighbors, Partition
from evenhand.typing import ArrayLike, FloatArray, IntArray
from evenhand.voting import Answers, Shares, Votes, aggregate
from evenhand.voting.blocks import Mechanism
from evenhand.voting.shares import Rounds, release_shares

FOR_PRIVATE_ROWS: Final = (
    "n_teachers",
    "teachers",
    "public",
    "public_fraction",
    "check_drift",
    "neighbors",
)
"""Arguments that say nothing where owners hold the private rows."""

_DRAWN = 2
"""Which child of the fit's seed draws rows beside public ones: 0 and 1 have other tasks."""


@dataclass(eq=False, repr=False, kw_only=True)
class TeacherEnsembleClassifier(PrivateClassifier):
    """Base of the classifiers that learn from teachers; use one of its subclasses."""

    n_teachers: int | None = None
    teachers: Any = None
    public: SyntheticRows | str | None = None
    public_fraction: float | None = None
    check_drift: DriftCheck | bool = False
    mechanism: Mechanism | NoisyHistogram | Rounds | None = None
    unit: str = "person"
    neighbors: str | None = None

    n_teachers_: int = field(init=False)
    answers_: Answers | Shares = field(init=False)
    public_yardstick_: Yardstick | None = field(init=False)
    answered_coverage_: Coverage | None = field(init=False)
    drift_: tuple[ColumnDrift, ...] | None = field(init=False)

    student = None
    keep_order = False
    _needs_groups = False
    asked_in_lockstep = True  # by settings that share votes, see ``shared_teachers``
    _reads_pictures = True
    _reads_streams = True

    def _learn(self, given: FitArguments) -> None:
        """Train teachers on the private rows, ask them about the public rows, fit the student."""
        read = self.read(given)
        plan = self.plan(read, given.ledger)
        read, plan = self.draw_rows(read, plan), self.compare(read, plan)
        taught = self.teach(read, given.progress)
        plan = self.calibrate(taught, plan)
        answers = self.ask(taught, plan, given.progress)
        self.conclude(taught, plan, answers)

    @classmethod
    def from_votes(
        cls,
        votes: OwnerVotes | NoisySums | Iterable[VoteFile | str | Path],
        X_public: Any,
        sensitive_features_public: Any = None,
        *,
        X_calibration: Any = None,
        y_calibration: ArrayLike | None = None,
        sensitive_features_calibration: Any = None,
        ledger: Ledger | None = None,
        progress: Progress | None = None,
        **settings: Any,
    ) -> Self:
        """Return a model of the votes of several owners; no private row is asked for.

        Parameters
        ----------
        votes : OwnerVotes, NoisySums, or iterable of VoteFile or path
            What the owners said about the public rows. Files are checked, all of them at once;
            ``OwnerVotes.of`` takes keys and more. Sums that carry the owners' own noise are paid
            for already: they bring their budget.
        X_public, sensitive_features_public, X_calibration, y_calibration
            As for ``fit``.
        sensitive_features_calibration, ledger, progress
            As for ``fit``. The account is one of the unit that the votes protect.
        **settings
            Arguments of the class, such as ``budget`` and ``fairness``; those about private rows
            and about teachers are refused.

        Raises
        ------
        VotesRefused
            Naming every bad file, before anything is spent.
        BudgetExceeded
            If the budget, or the account, does not cover one answer. Nothing is spent then.

        Examples
        --------
        >>> import numpy as np
        >>> from evenhand import Budget, PATEClassifier
        >>> from evenhand.owners.collection import OwnerVotes
        >>> from evenhand.owners.vote_file import VoteFile
        >>> rows = np.arange(12.0).reshape(-1, 1)
        >>> said = [VoteFile.cast(f"owner {i}", rows[:, 0] > 5, rows, classes=[False, True])
        ...         for i in range(40)]
        >>> votes = OwnerVotes.of(said, signed=False)
        >>> budget = Budget(epsilon=2.0, delta=1e-3)
        >>> PATEClassifier.from_votes(votes, rows, budget=budget).guarantee_.unit
        'owner'
        """
        model = cls(**settings)
        for name in FOR_PRIVATE_ROWS:
            if name in settings:
                raise TypeError(
                    f"from_votes does not take {name}=: it is about private rows, and these stay "
                    f"with their owners. Leave it out."
                )
        if isinstance(votes, NoisySums):
            for name in ("budget", "noise", "mechanism"):
                if name in settings:
                    raise TypeError(
                        f"from_votes of sums with noise does not take {name}=: the round was "
                        f"planned with it, and paid for. Leave it out."
                    )
            if ledger is not None:
                raise TypeError("The sums were charged to an account already: leave ledger= out.")
            model.budget = votes.ledger.budget
        elif not isinstance(votes, OwnerVotes):
            votes = OwnerVotes.of(votes)
        given = FitArguments(
            X=None,
            y=(),
            X_public=X_public,
            sensitive_features_public=sensitive_features_public,
            X_calibration=X_calibration,
            y_calibration=y_calibration,
            sensitive_features_calibration=sensitive_features_calibration,
            ledger=ledger,
            progress=progress,
            votes=votes,
        )
        given.require(cls.TAKES, cls.__name__)
        model._learn(given)
        model._fitted = model._describe()
        return model

    def read(self, given: FitArguments) -> Given:
        """Check the arguments, part private from public, and assign records to teachers."""
        self._checked_budget()
        as_synthetic(self.public)
        check = as_drift_check(self.check_drift)
        if self.n_teachers is not None:
            _checks.at_least("n_teachers", self.n_teachers, 1)
        rng = as_generator(self.random_state)
        neighbors = self.neighbors_for(units=given.unit_ids is not None)
        noise = own_noise(self.noise) if given.ledger is None else given.ledger.noise
        if given.votes is not None:
            data = read_vote_inputs(
                self,
                given.votes,
                given.X_public,
                given.sensitive_features_public,
                needs_groups=self._needs_groups,
            )
        elif isinstance(given.X, ParquetRows) and self._reads_streams:
            data = read_streamed_inputs(
                self,
                given,
                needs_groups=self._needs_groups,
                public_fraction=self.public_fraction,
            )
        else:
            data = read_fit_inputs(
                self,
                given,
                rng=rng,
                public_fraction=self.public_fraction,
                synthetic=self._synthetic(given.X_public is not None),
                needs_groups=self._needs_groups,
                n_is_public=neighbors == "replace one",
                coins=noise,
            )
        if data.set_aside and given.ledger is not None:
            refuse_other_rows_aside(data, neighbors)
        adds = neighbors == "add or remove one"  # then n is a setting, where it sets another one
        data = replace(data, hides_n=adds and self._named_teachers is not None)
        if given.X_public is not None:
            refuse_shared(data, data.X_public)
        return Given(
            data=data,
            partition=deal(
                data,
                self._chosen_teachers(data)[0],
                neighbors=neighbors,
                unit=self.unit,
                noise=noise,
                seed=rng.spawn(1)[0],
            ),
            rng=rng,
            n_columns=int(self.n_features_in_),
            columns=self.feature_names_in_ if hasattr(self, "feature_names_in_") else None,
            to_compare=None if check is None else RowsToCompare.of(check, data, self.schema),
        )

    def plan(self, given: Given, ledger: Ledger | None = None) -> Plan:
        """Open this run's ledger and gate, and choose the noise from public numbers.

        Raises
        ------
        BudgetExceeded
            If the budget does not cover one answer. Nothing is spent then.
        """
        data, partition = given.data, given.partition
        shares = self._what_is_released() == "shares"
        require_student(self.student, data.n_classes, shares=shares)
        n_teachers, why_so_many = self._chosen_teachers(data)
        if isinstance(data.cast, NoisySums):
            return self._paid_for(data.cast, why_so_many)
        gate = self._open_gate(data)
        moves = 1 if data.cast is None else data.cast.moves
        rows = given.calibration if self.asks_calibration(given) else None
        budget = self._checked_budget()
        if (to_draw := data.to_draw) is not None:
            budget = to_draw.promised(budget, ledger)
        run = open_run(
            budget,
            ledger,
            self.noise,
            unit=partition.unit,
            neighbors=partition.neighbors,
            way_out="Pass unit_ids= for an account of units, leave it out for an account of "
            "records; name the change that it counts, as in neighbors='replace one'; or open "
            "another account.",
            purpose=type(self).__name__,
            moves=moves,
        )
        paying = self._parted(run, given)
        n_voters = n_teachers if data.cast is None else data.cast.votes.n_teachers
        mechanism, why = choose_mechanism(
            self.mechanism,
            self._what_is_released(),
            paying["ledger"],
            n_teachers=n_voters,
            n_queries=data.n_public + (len(rows) if rows is not None else 0),
            n_classes=data.n_classes,
            moves=moves,
        )
        return Plan(
            ledger=paying["ledger"],
            counts=paying.get("counts"),
            decisions=paying.get("decisions"),
            compared=paying.get("compared"),
            around=run,
            mechanism=mechanism,
            gate=gate,
            n_teachers=n_teachers,
            choices=(*(() if to_draw is None else (to_draw.said,)), why_so_many, why),
        )

    def _parted(self, run: Ledger, given: Given) -> dict[str, Ledger]:
        """Return what pays for what, by the names of ``Plan``."""
        to_draw, rest = given.data.to_draw, drift.VOTES
        shares: dict[str, tuple[str, float]] = {}
        if check := as_drift_check(self.check_drift):
            shares["compared"] = drift.PURPOSE, check.share
        if to_draw is not None:
            share = to_draw.settings.share
            assert share is not None
            purpose, rest = to_draw.purposes
            of_decisions = counted_decisions.SHARE * share if self._counts_decisions(given) else 0.0
            shares["counts"] = purpose, share - of_decisions
            if of_decisions:
                shares["decisions"] = counted_decisions.PURPOSE, of_decisions
        if not shares:
            return {"ledger": run}
        return dict(zip((*shares, "ledger"), parted(run, dict(shares.values()), rest), strict=True))

    def _counts_decisions(self, given: Given) -> bool:
        """Whether decisions of the private rows are counted, to set a margin right."""
        return False

    def draw_rows(self, given: Given, plan: Plan) -> Given:
        """Pay for noisy counts and draw rows from them, where that was asked for."""
        to_draw = given.data.to_draw
        if to_draw is None:
            return given
        assert plan.counts is not None
        # Beside public rows everything else is drawn as it is without them.
        rng = given.rng if to_draw.asked else copy.deepcopy(given.rng)
        seed = rng.spawn(1 if to_draw.asked else _DRAWN + 1)[-1]
        drawn = to_draw.draw(plan.counts, self._checked_budget().delta, seed)
        return replace(given, data=given.data.with_rows(drawn))

    def compare(self, given: Given, plan: Plan) -> Plan:
        """Pay for noisy counts of the private rows, and compare the public rows with them."""
        rows = given.to_compare
        if rows is None:
            return plan
        assert plan.compared is not None
        found = rows.release(plan.compared, given.rng.spawn(1)[0])
        return replace(plan, drift=found, choices=(*plan.choices, *sentences(rows.check, found)))

    @property
    def no_labels_beside(self) -> str:
        """Why the student learns no labels of drawn rows beside answers; empty where it does."""
        return _reads_no_labels(self.student)

    def _paid_for(self, sums: NoisySums, why_so_many: str) -> Plan:
        """Return the plan of a round that the owners have answered with their own noise."""
        if self._what_is_released() != "shares":
            raise ValueError(
                f"{type(self).__name__} learns from labels, and what is held of the owners are "
                f"noisy sums. Use FairSharesClassifier or PATEClassifier, which learn from shares."
            )
        histogram, n_rows = sums.round.histogram, sums.public.n_rows
        return Plan(
            ledger=sums.ledger,
            mechanism=Rounds.once(histogram, n_rows),
            gate=None,
            n_teachers=sums.n_teachers,
            choices=(why_so_many, f"{histogram!r}, once for every public row, by the owners."),
        )

    def teach(self, given: Given, progress: Progress | None = None) -> Taught:
        """Train one teacher per part of the private rows, and let all of them vote."""
        data = given.data
        drawn = data.drawn if data.asks_drawn_rows else None
        schema = self.schema if drawn is None else drawn.schema
        # Labels of many drawn rows, by counts, have little noise: they tell the bends of curves.
        degree = DEGREE if data.drawn is not None and data.drawn.weight else 0
        encoder, X_public = encoded(data.X_public, schema, degree=degree)
        if data.cast is not None:
            cast = None if isinstance(data.cast, NoisySums) else data.cast.votes
            return Taught(given=given, votes=cast, encoder=encoder, X_public=X_public)
        asked, labelled = X_public, None
        if self.asks_calibration(given):
            assert given.calibration is not None
            # At once: votes that were cast elsewhere have one order.
            asked = np.concatenate([X_public, encoder.transform(given.calibration.X)])
        train = self._votes_in_memory if data.stream is None else self._votes_of_stream
        votes = train(given, encoder, asked, stage(progress, "teachers"))
        if len(asked) > (n := len(X_public)):
            votes, labelled = (replace(votes, counts=some) for some in np.split(votes.counts, [n]))
        return Taught(
            given=given,
            votes=votes,
            encoder=encoder,
            X_public=X_public,
            calibration_votes=labelled,
        )

    def _votes_in_memory(
        self, given: Given, encoder: Any, asked: Any, progress: Callable[[int, int], None] | None
    ) -> Votes:
        data, shape = given.data, asked.shape[1:]
        n_features = shape if len(shape) > 1 else shape[0]
        teachers = self._teachers(n_features, data.n_classes, given.rng)
        more: dict[str, Any] = {}
        if getattr(teachers, "reads_groups", False):
            private = data.groups_private
            more = {"groups": private.codes, "n_groups": private.n_groups}
        ensemble = teachers.fit(
            encoder.transform(data.X_private),
            data.y_private,
            given.partition,
            data.n_classes,
            given.rng.spawn(1)[0],
            progress=progress,
            **more,
        )
        if self.asks_calibration(given):
            return Votes.of(ensemble.vote(asked), data.n_classes)
        return Votes.of(self._vote(ensemble, asked, data), data.n_classes)

    def _votes_of_stream(
        self, given: Given, encoder: Any, asked: Any, progress: Callable[[int, int], None] | None
    ) -> Votes:
        """Train teachers on rows that stream past, each on a part of bounded size."""
        data = given.data
        assert data.stream is not None
        teachers = self._teachers(asked.shape[1], data.n_classes, given.rng)
        require_streamable(teachers)
        lesson = Lesson(
            stream=data.stream,
            classes=data.classes,
            encoder=encoder,
            partition=given.partition,
            teachers=teachers,
            rng=given.rng.spawn(1)[0],
            asked=asked,
        )
        return Votes(counts=lesson.votes(progress), n_teachers=given.partition.n_teachers)

    def calibrate(self, taught: Taught, plan: Plan) -> Plan:
        """Buy what a gate must know of true classes before it is opened; most need nothing."""
        return plan

    def ask(self, taught: Taught, plan: Plan, progress: Progress | None = None) -> Answers | Shares:
        """Release labels or noisy shares of the votes, each draw charged before it is made."""
        known = taught.given.data.groups_public
        groups = None if known is None else known.codes
        cast = taught.given.data.cast
        if isinstance(cast, NoisySums):
            return replace(cast.shares, groups=groups)
        assert taught.votes is not None
        if isinstance(plan.mechanism, Rounds):
            beside = self._beside(taught)
            if taught.X_public.ndim == 2:  # what a network learns has no such number
                warn_of_drowning(
                    plan.mechanism,
                    plan.ledger.noise,
                    n_teachers=taught.n_speakers,
                    n_columns=taught.X_public.shape[1],
                )
            return release_shares(
                taught.votes,
                plan.mechanism,
                plan.ledger,
                unsure=lambda shares: uncertainty(
                    taught.X_public, shares, self.student, taught.given.student_rng, beside
                ),
                groups=groups,
            )
        return aggregate(
            taught.votes,
            plan.mechanism,
            plan.ledger,
            gate=plan.gate,
            groups=groups,
            keep_order=self.keep_order,
            progress=stage(progress, "answers"),
        )

    def conclude(self, taught: Taught, plan: Plan, answers: Answers | Shares) -> Self:
        """Fit the student on the answers, and write down what was claimed and spent."""
        self._conclude(taught, plan, answers)
        self._fitted = self._describe()
        return self

    def _conclude(self, taught: Taught, plan: Plan, answers: Answers | Shares) -> None:
        given, data = taught.given, taught.given.data
        self.n_features_in_ = given.n_columns
        if given.columns is not None:
            self.feature_names_in_ = given.columns
        self.classes_, self.extractor_ = data.classes, data.extractor
        self.groups_ = None if data.groups_public is None else data.groups_public.names
        self.encoder_ = taught.encoder
        self.n_teachers_, self.choices_ = plan.n_teachers, plan.choices
        if data.drawn is not None:
            self.choices_ += data.drawn.notes
        self.answers_ = answers
        self.ledger_, self.drift_ = plan.whole, plan.drift
        self.mechanism_ = plan.mechanism
        student = self._fit_student(taught, plan, answers)
        self.student_ = student.model
        self.student_margin_ = student_margin(student, self.groups_)
        gated = isinstance(answers, Answers) and answers.groups is not None
        unbound = FairnessKind.ANSWERS if gated else FairnessKind.NONE
        self.fairness_kind_ = FairnessKind.WEIGHTS if student.bound else unbound
        self.student_without_margin_ = student.without_margin
        self.public_yardstick_ = public_yardstick(
            student,
            taught.X_public,
            answers,
            drawn=data.drawn is not None and data.drawn.X is not None,
        )
        self.answered_coverage_ = answered_coverage(
            student, taught.X_public, answers, self.groups_ or ()
        )
        if student.held is not None:
            warn_of_small_groups(student, data.required_groups.names)
        if student.within is not None:
            warn_of_unread(student.within, data)
        self.guarantee_ = self._guarantee(data, plan.whole, given.partition)

    def _fit_student(self, taught: Taught, plan: Plan, answers: Answers | Shares) -> Student:
        """Fit the student, which the released answers pay for."""
        beside, within = self._beside(taught), self._within(taught)
        rng = taught.given.student_rng
        return fit_student(self.student, taught.X_public, answers, within, rng, beside)

    def _synthetic(self, beside: bool) -> SyntheticRows | None:
        """How rows are drawn, alone or beside public ones, with what the caller left open."""
        settings = as_synthetic(self.public)
        if settings is None:
            return None
        return settings.decided(self._what_is_released(), beside=beside)

    def _share_of_counts(self, data: FitInputs) -> float:
        """Share of the budget for counts of private rows: to draw rows from, and to compare."""
        check = as_drift_check(self.check_drift)
        share = 0.0 if check is None else check.share
        if data.to_draw is not None:
            assert data.to_draw.settings.share is not None
            share += data.to_draw.settings.share
        if share >= 1.0:
            raise ValueError(
                f"The noisy counts of check_drift= and public= would have {share:.0%} of the "
                f"budget, which leaves nothing for answers. Lower share= of one of them."
            )
        return share

    def _what_is_released(self) -> str:
        """Labels or shares; refuses a mechanism that releases the other."""
        raise NotImplementedError

    def _chosen_teachers(self, data: FitInputs) -> tuple[int, str]:
        """Return the number of teachers, from public numbers, and why."""
        if (cast := data.cast) is not None:
            return cast.n_teachers, (
                f"{cast.n_teachers:,} teachers of owners elsewhere voted; one {cast.unit} moves "
                f"{cast.moved} of their votes."
            )
        return choose_n_teachers(
            self._named_teachers,
            n_private=data.n_private if data.n_is_public else None,
            mu=answers_budget(self._checked_budget(), self._share_of_counts(data)).mu,
        )

    @property
    def _named_teachers(self) -> int | None:
        """The number of teachers, where it was asked for; of those trained elsewhere, theirs."""
        if self.n_teachers is not None:
            return self.n_teachers
        found: int | None = getattr(self.teachers, "n_teachers", None)
        return found

    def neighbors_for(self, *, units: bool) -> Neighbors:
        """Return the change of the private data that the claim of a fit is about.

        Parameters
        ----------
        units : bool
            Whether ``unit_ids`` say whose the records are.

        Raises
        ------
        ValueError
            For a change that such a fit makes no claim about.
        """
        # Who deals records elsewhere vouches for it, and not for a number that may change.
        counted = self.public is not None and not getattr(self.teachers, "vouched_for", "")
        return change_claimed(
            self.neighbors, counted=counted, units_named=self.unit if units else ""
        )

    def _teachers(self, n_features: Any, n_classes: int, rng: np.random.Generator) -> Teachers:
        """Return how teachers are trained."""
        return as_teachers(self.teachers, n_features=n_features, n_classes=n_classes, rng=rng)

    def _vote(self, ensemble: Ensemble, X_public: FloatArray, data: FitInputs) -> IntArray:
        """Let each teacher vote on each public row."""
        return ensemble.vote(X_public)

    def asks_calibration(self, given: Given) -> bool:
        """Whether the teachers vote on calibration rows, and answers to them are bought."""
        return False

    def _open_gate(self, data: FitInputs) -> Gate | None:
        """Return a new gate, where one stands before the labels."""
        return None

    def _within(self, taught: Taught) -> Within | None:
        """Return what the student is held within, and on which rows that is read."""
        return None

    def _beside(self, taught: Taught) -> SoftLabels | None:
        """Return rows with the chances of their classes by the noisy counts, if there are any."""
        drawn = taught.given.data.drawn
        if drawn is None or not drawn.weight:
            return None
        assert drawn.chances is not None
        X = taught.encoder.transform(drawn.natural)
        beside = SoftLabels.of(X, drawn.chances, drawn.weight)
        if drawn.chances_public is None:
            return beside
        return beside.with_rows(taught.X_public, drawn.chances_public)

    def _describe(self) -> FittedModel:
        return replace(
            super()._describe(),
            n_teachers=self.n_teachers_,
            answers=self.answers_,
            yardstick=self.public_yardstick_,
            answered_coverage=self.answered_coverage_,
            drift=self.drift_,
        )

    def _take(self, fitted: FittedModel) -> None:
        super()._take(fitted)
        assert fitted.n_teachers is not None
        assert fitted.answers is not None
        self.n_teachers_, self.answers_ = fitted.n_teachers, fitted.answers
        self.public_yardstick_, self.drift_ = fitted.yardstick, fitted.drift
        self.answered_coverage_ = fitted.answered_coverage

    def _drop_margin(self) -> None:
        super()._drop_margin()
        if isinstance(self.answers_, Answers) and self.answers_.groups is not None:
            self.fairness_kind_ = FairnessKind.ANSWERS
        self.public_yardstick_ = None

    def _guarantee(self, data: FitInputs, ledger: Ledger, partition: Partition) -> Guarantee:
        return claim_of(
            data,
            ledger,
            partition,
            budget=self._checked_budget(),
            teachers=self.teachers,
            drift=self.drift_ or (),
        )


def _reads_no_labels(student: Any) -> str:
    """Why a student of one's own reads no labels of drawn rows."""
    if student is None or as_network(student) is not None:
        return ""
    return (
        f"student={type(student).__name__} learns released labels alone. Leave student=None, or "
        f"give a network"
    )

"""DP-SGD: one private model trained on all private rows, with noise in every gradient."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Final

import numpy as np

from evenhand import _checks, _values
from evenhand._random import as_generator
from evenhand.datasets import PublicEncoder
from evenhand.datasets.pixels import PixelEncoder
from evenhand.estimators.blind_rule import put_around
from evenhand.estimators.encoded_inputs import EncodedInputs, read_encoded
from evenhand.estimators.given_rows import checked_features, frame_or_array, take
from evenhand.estimators.inputs import FitArguments, FitInputs, calibration_given
from evenhand.estimators.ledgers import single_ledger
from evenhand.estimators.margins import AIM_AGAIN, StudentMargin
from evenhand.estimators.noisy_gradient import N_STEPS, NoisyNetworkClassifier
from evenhand.estimators.plan import (
    ENOUGH_FOR_CURVES,
    FEWEST_STEPS,
    FEWEST_UNDER_A_MARGIN,
    MOST_STEPS,
    NOISE_IN_A_WEIGHT,
    default_degree,
    default_steps,
    network_steps,
)
from evenhand.estimators.rows_after import PublicRows, read_public_rows
from evenhand.estimators.score_counts import release_counts
from evenhand.estimators.shared_rows import refuse_shared
from evenhand.estimators.spec import BUDGET, PUBLIC_ROWS, MethodSpec, registered
from evenhand.fairness import DemographicParity, FairnessKind, RateNotion
from evenhand.fairness.groups import GroupCodes
from evenhand.fairness.notions import parity_gaps
from evenhand.learners.dpsgd import DPSGD, GroupPull
from evenhand.learners.gradients import TINY
from evenhand.learners.preconditioner import Whitening
from evenhand.privacy import Budget, SubsampledGaussian
from evenhand.students.score_counts import NO_COUNTS
from evenhand.typing import FloatArray


class AimMissed(UserWarning):
    """The groups' rates ended further apart than training aimed for, or may have."""


class FewPublicRows(UserWarning):
    """So few public rows scale the columns, and name their categories, that a model may suffer."""


LEAST_PUBLIC: Final = 50
"""Public rows from which on a standard deviation is told within a tenth, as one over the root of
twice their number has it; and a category of a tenth of the people is in 199 of 200 tables."""

FARTHEST: Final = 3.0
"""Standard deviations from the mean at which numbers end that have curves beside them."""

RATE_OF_CURVES: Final = 2.0
"""Times the usual rate, for features of half their size."""

MOST_WHITENED: Final = 2_000
"""Columns that are whitened at the most: the work grows with their cube."""

ROWS_PER_COLUMN: Final = 10
"""Public rows that tell the covariance of so many columns, at the least."""

STEPS: Final = "DP-SGD, all steps"
WITH_COUNTS: Final = "DP-SGD, all steps, and scores by group, counted"

SLACK: Final = 0.1
"""Part of the margin by which the gap may be above it, for multipliers hover."""

COUNTS_SHARE: Final = 0.1
"""Of the budget's ``mu**2``, for counts of scores: the steps' noise rises by 4 to 5 %."""

UNBOUNDED: Final = 20.0
"""Largest multiplier where a margin is asked for; Adult at a margin of 0.01 needs less than 1."""


@registered(
    MethodSpec(
        name="dpsgd",
        words="One model by clipped, noised gradients; aims for a margin if one is given.",
        reads=(
            *BUDGET,
            *PUBLIC_ROWS,
            "group_thresholds",
            "hidden",
            "degree",
            "architecture",
            "score_counts",
            "margin",
            "reference",
            "confidence",
            "calibration",
        ),
        needs=("epsilon",),
        neighbors="add or remove one",
        notions=("demographic-parity",),
        kind=lambda settings: (
            FairnessKind.NONE
            if settings.get("margin") is None
            else FairnessKind.WEIGHTS
            if settings.get("confidence") is None
            else FairnessKind.BLIND_RULE
        ),
        public_groups=lambda settings: settings.get("confidence") is not None,
        private_groups=lambda settings: (
            settings.get("confidence") is None or bool(settings.get("score_counts"))
        ),
    )
)
@dataclass(eq=False, repr=False)
class DPSGDClassifier(NoisyNetworkClassifier):
    """Train logistic regression or a network by differentially private gradient descent.

    No teachers and no public labels; public rows, or a declared schema, only scale the columns.
    Pictures (n, channels, height, width) of uint8 or float32 need neither, and a network of
    PyTorch that reads them: ``architecture=``.
    With a margin, training itself pulls the groups' rates together by what its own noisy steps
    say about them: the model then needs no group at prediction. With a margin that has a
    ``confidence``, training reads no group, and the multipliers are set after it, on public rows
    that had no part in it: those of a blind rule, chosen by rows that were held out.

    Parameters
    ----------
    budget : Budget
        The (epsilon, delta) that the whole fit may spend. Needed.
    fairness : DemographicParity, or RateNotion with ``confidence``, optional
        The gap between groups that training aims for. Aimed for, not promised: the gap of the
        model on new rows is measured. ``student_margin_`` says what the noisy tables of the last
        steps tell of it, with an :class:`AimMissed` warning where that is above the margin, or
        where noise leaves it open. With ``confidence`` the upper limit of the gap on rows that the
        rule was not set on is held within the margin; ``margin_supported_`` is the least margin
        that so many rows support. It needs ``sensitive_features_public`` (with
        ``public_fraction``: ``sensitive_features``), and for a notion about true classes
        calibration rows in their place.
    penalty : float, optional
        Largest weight of the gap in the loss. Default: none without ``fairness``, as much as the
        margin needs with it. With a penalty alone, ``penalty * sum |cov(group, class)|`` is added.
    hidden : tuple of int, optional
        Widths of hidden layers (ReLU), beside which the last layer reads the row itself. Default:
        none, which is logistic regression.
    degree : int, optional
        Of the curves that stand beside each number, so that a linear model can bend; see
        :class:`PublicEncoder`. Default: 3, or 0 (none) where ``n mu / sqrt(d)`` is below 80, for n
        records, d columns and the budget's mu; 0 with ``architecture``. ``choices_`` says which.
    whiten : bool
        Whether a logistic regression descends on rows whose columns are uncorrelated and about
        equally spread among the *public* rows, and is then written for rows as they are: the same
        model, found in fewer steps. Costs nothing. With fewer than 10 public rows for a column,
        with more than 2,000 columns and in other networks it does nothing; ``choices_`` says
        whether it did.
    architecture : str, Architecture or torch.nn.Module, optional
        Another network, in PyTorch (extra ``torch``): ``SmallResNet()`` or another of
        ``evenhand.learners.nets.architectures``, its name, or a module of yours that ends with one
        score per class. A module starts from the weights it has, which must be public. It must read
        each record by itself: no batch normalisation. Dropout is drawn for each record.
    device : str
        Where that is trained, as PyTorch names it.
    clip_norm : float
        Largest norm of what one record adds to a step.
    n_steps : int, optional
        Default: by the numbers of records and columns and the budget, at most 1500, all of it
        public; ``choices_`` says how many. With ``architecture`` 1500.
    batch_size : int
        *Expected* size of a Poisson sample.
    learning_rate : float, optional
        Default 4 for logistic regression, 8 with curves, less where the default of ``n_steps``
        would be below 30; with hidden layers that at which noise moves a weight by .3 in all, at
        most 2; 0.5 with ``architecture``.
    score_counts : bool
        Whether the scores of the private rows, counted by group in ranges of .05, leave with noise
        beside the steps, for a tenth of the budget's ``mu**2``. ``with_group_thresholds`` then
        reads them beside the public rows, or in their place. For two classes; needs
        ``sensitive_features``.
    n_records : int, optional
        A public number of records that sets the probability ``batch_size / n_records`` of a record
        to enter a step. Default: the number of private rows, which is then public.
    schema, classes, public_fraction, noise, random_state
        As for ``PATEClassifier``; ``noise`` is ``FloatNoise()`` by default, for gradients are real
        numbers. With a schema that has bounds for every number, no public row is needed.

    Attributes
    ----------
    guarantee_ : Guarantee
        The claim; ``str()`` is one sentence.
    ledger_ : Ledger
        A ledger of this run alone: its one entry covers all steps.
    mechanism_ : SubsampledGaussian
        The noise and the sampling.
    multipliers_ : ndarray, shape (n_groups, n_classes)
        Where the weights of the gaps ended. Public.
    score_counts_ : ndarray of float64, shape (n_groups, 20)
        The noisy counts of scores, in the order of ``groups_``; empty where they were not asked
        for. Public.
    score_noise_ : float
        Standard deviation of the noise on each of them. Public.
    groups_ : tuple of str or None
    classes_, student_, encoder_

    Privacy
    -------
    Neighbors : add or remove one record.
    Sensitivity : one record adds a vector of L2 norm at most ``clip_norm`` to a step that it
        enters: its gradient and, with a pull, its entry in the table of groups and decisions. To
        the counts of scores it adds 1 in one place.
    Cost : the budget, by the privacy loss distribution of the Poisson-subsampled Gaussian. It is
        charged before anything is drawn, counts of scores included, whose cost is composed with
        that of the steps in one loss distribution. It is no Gaussian cost, so it cannot be charged
        to an account that other runs share.

    References
    ----------
    Abadi et al. 2016 (DP-SGD); Koskela, Jaelkoe and Honkela 2020 (accounting); Cotter et al. 2019
    (multipliers); Li, Zaheer, Reddi and Smith 2022 (gradients scaled by what public rows tell). The
    derivation stands in ``evenhand.learners.dpsgd``.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from evenhand import Budget
    >>> X, y = make_classification(3000, random_state=0)
    >>> clf = DPSGDClassifier(Budget(epsilon=2.0, delta=1e-6), n_steps=200, batch_size=256)
    >>> clf = clf.fit(X[:2500], y[:2500], X_public=X[2500:])
    >>> clf.guarantee_.epsilon, clf.guarantee_.neighbors
    (2.0, 'add or remove one')
    """

    fairness: RateNotion | None = None
    _: KW_ONLY
    penalty: float | None = None
    n_steps: int | None = None
    degree: int | None = None
    whiten: bool = True
    score_counts: bool = False

    NUMBERS: ClassVar[tuple[str, ...]] = ("score_counts_", "score_noise_")

    def _learn(self, given: FitArguments) -> None:
        budget = self._checked_steps(given.ledger)
        if self.degree is not None:
            _checks.at_least("degree", self.degree, 0)
        _checks.flag("whiten", self.whiten)
        learner = self._learner()
        rng = as_generator(self.random_state)
        read = read_encoded(self, given, rng, coins=self._float_noise())
        few = self._few_public(read)
        encoder, curved = self._curved(read, budget)
        data, X_encoded = read.data, encoder.transform(read.data.X_private)
        self.classes_, self.encoder_ = data.classes, encoder
        if curved and self.learning_rate is None and not self.hidden:
            learner = replace(learner, learning_rate=RATE_OF_CURVES * learner.learning_rate)
        notion = self._on_new_rows
        if calibration_given(vars(given)) and not (notion is not None and notion.needs_labels):
            raise ValueError(
                f"Calibration rows have true classes, and fairness={self.fairness!r} is no margin "
                f"about these with a confidence. Leave them out."
            )
        held_out = None if notion is None else self._held_out(notion, given, data)
        groups = self._groups(given.sensitive_features, data, learner)
        learner, n_steps, why = self._scheduled(learner, budget, data, X_encoded.shape)
        whitening, whitened = self._whitening(encoder, data)
        self.choices_ = (*few, *curved, *whitened, *why)
        beside = COUNTS_SHARE * budget.mu_squared if self.score_counts else 0.0
        mechanism = self._sampled(budget, data, n_steps, beside)
        noise = self._float_noise()
        network = self._network(learner, X_encoded, data.n_classes, rng, noise)
        run = single_ledger(budget, noise)
        pulled = None if learner.pull is None else groups
        n_groups = 0 if pulled is None else pulled.n_groups
        with run.reserve({mechanism: 1}, purpose=WITH_COUNTS if beside else STEPS) as grant:
            trained = learner.fit(
                network,
                X_encoded if whitening is None else whitening.rows(X_encoded),
                data.y_private,
                noise=grant.draw_by_step(mechanism, learner.n_released(network, n_groups)),
                groups=None if pulled is None else pulled.codes,
                n_groups=n_groups,
                **self._steps(mechanism, data, noise, given),
            )
            found = trained.network
            if whitening is not None:
                found = (whitening.layer(*found[0]),)
            self.student_ = self._student(found, data.n_classes)
            self.score_counts_, self.score_noise_ = NO_COUNTS, 0.0
            if groups is not None and beside:
                self.score_counts_, self.score_noise_ = release_counts(
                    self.student_.predict_proba(X_encoded)[:, 1],
                    groups.codes,
                    groups.n_groups,
                    ledger=grant.beside(mechanism),
                    mu_squared=beside,
                )
        self.groups_ = None if groups is None else groups.names
        self.student_margin_ = self.student_without_margin_ = None
        self.multipliers_ = trained.multipliers
        self.mechanism_ = mechanism
        self.fairness_kind_ = FairnessKind.NONE if pulled is None else FairnessKind.WEIGHTS
        self.ledger_ = run
        expected = mechanism.sampling_rate * self._n_public(data)
        self._look_at_aim(trained.table, mechanism, learner, expected)
        named = () if groups is None else ("the names of the groups",)
        self.guarantee_ = self._claim(
            budget,
            data,
            noise,
            public=(*named, *self._starts_from()),
            accounting=mechanism.accounting,
        )
        if notion is not None and held_out is not None:
            put_around(self, self.student_, held_out, notion)

    @property
    def _on_new_rows(self) -> RateNotion | None:
        """The margin, where it has a confidence: it is then kept after training."""
        confidence = getattr(self.fairness, "confidence", None)
        return None if confidence is None else self.fairness

    def _held_out(self, notion: RateNotion, given: FitArguments, data: FitInputs) -> PublicRows:
        """Return the rows without a part in training by which the rule is chosen."""
        if notion.needs_labels:
            if not calibration_given(vars(given)):
                raise ValueError(
                    f"confidence={notion.confidence:g} of {type(notion).__name__} needs true "
                    f"classes of public rows. Pass X_calibration, y_calibration and "
                    f"sensitive_features_calibration, or leave confidence out."
                )
            X, y, name = given.X_calibration, given.y_calibration, "y_calibration"
            rows = checked_features(self, X, reset=False, name="X_calibration")
            refuse_shared(data, rows)
            groups = given.sensitive_features_calibration
        else:
            rows, y, groups = data.X_public, None, given.sensitive_features_public
            name = "y" if data.set_aside else "y_public"
            if self.rows_set_aside_ is not None and given.sensitive_features is not None:
                known = frame_or_array(given.sensitive_features)
                _checks.same_length(X=range(data.n_private + data.set_aside), groups=known)
                groups = take(known, self.rows_set_aside_)
            if groups is None or not data.n_public:
                missing = f"sensitive_features{name.removeprefix('y')}"
                raise ValueError(
                    f"confidence={notion.confidence:g} is about rows that had no part in training, "
                    f"and no public rows with groups were given. Pass X_public= and "
                    f"{missing}=, or leave confidence out: training then aims for the margin."
                )
        X_encoded = self.encoder_.transform(rows)
        return read_public_rows(X_encoded, groups, y, notion, self.classes_, name=name)

    def _look_at_aim(
        self,
        table: FloatArray,
        mechanism: SubsampledGaussian,
        learner: DPSGD,
        batch_size: float,
    ) -> None:
        """Say how far apart the rates were in the last steps, by the tables that these released.

        Privacy
        -------
        Free: reads what the steps released (post-processing).
        """
        if self.fairness is None or learner.pull is None:
            return
        members = np.maximum(table.sum(axis=1), TINY)
        gaps = np.abs(parity_gaps(np.maximum(table, 0.0), self.fairness.reference))
        gap = float(gaps[np.isfinite(gaps)].max(initial=0.0))  # of none that noise left any record
        n_steps = max(1, round(learner.averaged * mechanism.n_steps))
        noise = mechanism.noise_multiplier / (learner.pull.share * batch_size)
        # A difference of two rates, the smallest groups', two standard deviations wide.
        wide = 2.0 * noise / np.sqrt(n_steps) * np.sqrt((1.0 / np.sort(members)[:2] ** 2).sum())
        margin = self.fairness.margin
        # Noise that is wider than the margin shows nothing, and excuses no more than the margin.
        missed = gap > margin * (1.0 + SLACK) + min(wide, margin)
        is_open = not missed and (gap > margin or wide > margin)
        self.student_margin_ = StudentMargin(
            notion=self.fairness,
            gap=gap,
            met=None if is_open else not missed,
            source="noisy tables",
            groups=self.groups_ or (),
        )
        found = f"it ended at {gap:.4f}"
        if not missed:
            found = f"nobody can tell: their noise leaves {min(wide, 1.0):.3f} open"
        if missed or wide > margin:
            warnings.warn(
                f"Training aimed for a gap of {margin:g} between the groups, and by its own noisy "
                f"tables, over {mechanism.n_steps:,} steps, {found}. To come nearer, {AIM_AGAIN}.",
                AimMissed,
                stacklevel=4,
            )

    def _scheduled(
        self, learner: DPSGD, budget: Budget, data: FitInputs, shape: tuple[int, ...]
    ) -> tuple[DPSGD, int, tuple[str, ...]]:
        """Return the learner with its rates, the number of steps, and why, by public numbers."""
        if self.architecture is not None:
            return learner, self.n_steps or N_STEPS, ()
        pull, n, d = learner.pull, self._n_public(data), shape[1]
        if learner.hidden:
            n_steps, rate = network_steps(
                n, budget.mu, self.clip_norm, n_steps=self.n_steps, margin=pull is not None
            )
            reason = f": noise moves a weight by about {NOISE_IN_A_WEIGHT:g}, or less"
            if self.learning_rate is not None:
                rate, reason = self.learning_rate, ", at a rate that was named"
            why = (
                f"{' and '.join(map(str, learner.hidden))} hidden units, {n_steps:,} steps at rate "
                f"{rate:.3g} for n = {n:,} records and mu = {budget.mu:.3f}{reason}. Longer "
                f"descents drown in noise, shorter ones learn less."
            )
        elif self.n_steps is None:
            n_steps, part = default_steps(n, d, budget.mu, margin=pull is not None)
            rate = learner.learning_rate * (part if self.learning_rate is None else 1.0)
            fewest = FEWEST_STEPS if pull is None else FEWEST_UNDER_A_MARGIN
            why = (
                f"{n_steps:,} steps at rate {rate:.3g}: n mu / sqrt(d) for n = {n:,} records, "
                f"d = {d:,} columns and mu = {budget.mu:.3f}, at most {MOST_STEPS:,}, at least "
                f"{fewest}. More steps add up noise, fewer learn less."
            )
        else:
            return learner, self.n_steps, ()
        pull = None if pull is None else pull.within(n_steps)
        return replace(learner, learning_rate=rate, pull=pull), n_steps, (why,)

    def _few_public(self, read: EncodedInputs) -> tuple[str, ...]:
        """Return, and warn, that few public rows say how wide columns are, where they say it."""
        n, declared = read.data.n_public, self.schema is not None
        if isinstance(read.encoder, PixelEncoder) or not 0 < n < LEAST_PUBLIC:
            return ()
        if declared and not read.encoder.scales_:  # what there is, is declared
            return ()
        words = (
            f"Columns of numbers are scaled{'' if declared else ', and categories known,'} by {n} "
            f"public row{'s' * (n > 1)}, of which {LEAST_PUBLIC} tell how wide a column is within "
            f"a tenth: the model may err more than its budget asks for. Pass more public rows, or "
            f"none, and schema= with the bounds and categories of all columns."
        )
        warnings.warn(words, FewPublicRows, stacklevel=4)
        return (words,)

    def _curved(
        self, read: EncodedInputs, budget: Budget
    ) -> tuple[PublicEncoder | PixelEncoder, tuple[str, ...]]:
        """Return the encoder with curves beside the numbers, and why; or as it was read."""
        if isinstance(read.encoder, PixelEncoder) or self.architecture is not None:
            if self.degree:
                raise ValueError(
                    f"degree={self.degree!r} bends columns of numbers, and pictures or "
                    f"architecture= read what they are given. Leave one of them out."
                )
            return read.encoder, ()
        n, d = self._n_public(read.data), read.encoder.n_features_out_
        degree = default_degree(n, d, budget.mu) if self.degree is None else self.degree
        if not degree:
            return read.encoder, ()
        curves = PublicEncoder(self.schema, clip=FARTHEST, degree=degree)
        why = f"Curves of degree {degree} stand beside each number"
        if self.degree is None:
            why += (
                f", for n mu / sqrt(d) is {n * budget.mu / np.sqrt(d):,.0f}, {ENOUGH_FOR_CURVES} "
                f"or more"
            )
        return curves.fit(read.data.X_public if read.data.n_public else None), (f"{why}.",)

    def _whitening(
        self, encoder: PublicEncoder | PixelEncoder, data: FitInputs
    ) -> tuple[Whitening | None, tuple[str, ...]]:
        """Return how a logistic regression reads rows while it descends, and why."""
        linear = not self.hidden and self.architecture is None
        if not (self.whiten and linear and data.n_public) or isinstance(encoder, PixelEncoder):
            return None, ()
        d = encoder.n_features_out_
        if d > MOST_WHITENED or data.n_public < ROWS_PER_COLUMN * d:
            return None, ()
        why = (
            f"The descent reads rows that are whitened by the covariance of the {data.n_public:,} "
            f"public ones, halfway."
        )
        return Whitening.halfway(encoder.transform(data.X_public)), (why,)

    def _learner(self) -> DPSGD:
        _checks.flag("score_counts", self.score_counts)
        if (notion := self._on_new_rows) is not None:
            if self.score_counts:
                raise ValueError(
                    f"score_counts=True is for thresholds by group, and a margin with "
                    f"confidence={notion.confidence:g} is kept by a rule that reads no group. "
                    f"Leave one out."
                )
            if self.penalty is not None:
                raise ValueError(
                    f"penalty={self.penalty!r} weighs the gap while training, and a margin with "
                    f"confidence={notion.confidence:g} is kept after it. Leave one out."
                )
            return DPSGD(skip=True, **self._settings())
        if not isinstance(self.fairness, DemographicParity | None):
            raise ValueError(
                f"fairness must be a DemographicParity or None, got {self.fairness!r}. Say how far "
                f"apart the groups may be, for example fairness=DemographicParity(margin=0.05); "
                f"other notions of decisions need a confidence, and public rows."
            )
        most = UNBOUNDED if self.fairness is not None else 0.0
        if self.penalty is not None:
            most = _checks.non_negative("penalty", self.penalty)
        pull = None
        if most > 0 and self.fairness is not None:
            margin, reference = self.fairness.margin, self.fairness.reference
            pull = GroupPull(margin=margin, reference=reference, strength=most)
        elif most > 0:
            pull = GroupPull(strength=most)
        return DPSGD(pull=pull, skip=True, **self._settings())

    def _groups(
        self, sensitive_features: Any, data: FitInputs, learner: DPSGD
    ) -> GroupCodes | None:
        if learner.pull is None and not self.score_counts:
            return None
        if self.score_counts and data.n_classes != 2:
            raise ValueError(
                f"score_counts=True counts the scores of one class, for thresholds by group of two "
                f"classes, and y has {data.n_classes}. Leave it out."
            )
        if sensitive_features is None:
            raise ValueError(
                "Scores are counted by group, and sensitive_features is missing. Pass the group of "
                "every private row, or leave out score_counts=True."
                if learner.pull is None
                else "Training pulls the groups together and needs the group of every private row; "
                "sensitive_features is missing. Pass it, or leave out fairness= and penalty=."
            )
        known = self._private_groups(sensitive_features, data)
        if known.n_groups < 2:
            raise ValueError(
                f"The rows hold one group only, {_values.quoted(known.names[0])}: there is "
                f"nothing to compare it with. Check the sensitive column, or leave out fairness=, "
                f"penalty= and score_counts=."
            )
        return known

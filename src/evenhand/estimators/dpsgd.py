"""DP-SGD: one private model trained on all private rows, with noise in every gradient."""

from __future__ import annotations

import copy
from typing import Any, Final, Self

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import LabelBinarizer

from evenhand import _checks
from evenhand._random import as_generator
from evenhand.datasets import PublicEncoder
from evenhand.estimators.base import Progress
from evenhand.estimators.fitted import PrivateClassifier
from evenhand.estimators.inputs import FitInputs, read_fit_inputs
from evenhand.fairness import DemographicParity, GroupCodes, encode_groups
from evenhand.learners import DPSGD, DPSGDModel, GroupPull
from evenhand.privacy import (
    SUBSAMPLED_ACCOUNTING,
    Budget,
    FloatNoise,
    Guarantee,
    Ledger,
    Noise,
    SubsampledGaussian,
    delta_warning,
    poisson_batches,
)
from evenhand.typing import ArrayLike, FloatArray, RandomState

UNBOUNDED: Final = 20.0
"""Largest multiplier where a margin is asked for; Adult at a margin of 0.01 needs less than 1."""


class DPSGDClassifier(PrivateClassifier):
    """Train logistic regression or a small network by differentially private gradient descent.

    No teachers and no public labels; public rows, or a declared schema, only scale the columns.
    With a margin, training itself pulls the groups' rates together by what its own noisy steps
    say about them: the model then needs no group at prediction.

    Parameters
    ----------
    budget : Budget
        The (epsilon, delta) that the whole fit may spend. Needed.
    fairness : DemographicParity, optional
        The gap between groups that training aims for. Aimed for, not promised: the gap of the
        model on new rows is measured.
    penalty : float, optional
        Largest weight of the gap in the loss. Default: none without ``fairness``, as much as the
        margin needs with it. With a penalty alone, ``penalty * sum |cov(group, class)|`` is added.
    hidden : tuple of int
        Widths of hidden layers (ReLU). Default ``()``: logistic regression.
    clip_norm : float
        Largest norm of what one record adds to a step.
    n_steps, batch_size : int
        Steps, and *expected* size of a Poisson sample.
    learning_rate : float, optional
        Default 4 for logistic regression, 0.5 for a network.
    n_records : int, optional
        A public number of records that sets the chance ``batch_size / n_records`` of a record to
        enter a step. Default: the number of private rows, which is then public.
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
    groups_ : tuple of str or None
    classes_, student_, encoder_

    Privacy
    -------
    Neighbors : add or remove one record.
    Sensitivity : one record adds a vector of L2 norm at most ``clip_norm`` to a step that it
        enters: its gradient and, with a pull, its entry in the table of groups and decisions.
    Cost : the budget, by the privacy loss distribution of the Poisson-subsampled Gaussian. It is
        charged before anything is drawn. It is no Gaussian cost, so it cannot be charged to an
        account that other runs share.

    References
    ----------
    Abadi et al. 2016 (DP-SGD); Koskela, Jaelkoe and Honkela 2020 (accounting); Cotter et al. 2019
    (multipliers). The derivation stands in ``evenhand.learners.dpsgd``.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(3000, random_state=0)
    >>> clf = DPSGDClassifier(Budget(epsilon=2.0, delta=1e-6), n_steps=200, batch_size=256)
    >>> clf = clf.fit(X[:2500], y[:2500], X_public=X[2500:])
    >>> clf.guarantee_.epsilon, clf.guarantee_.neighbors
    (2.0, 'add or remove one')
    """

    def __init__(
        self,
        budget: Budget | None = None,
        fairness: DemographicParity | None = None,
        *,
        penalty: float | None = None,
        hidden: tuple[int, ...] = (),
        clip_norm: float = 1.0,
        n_steps: int = 1500,
        batch_size: int = 1024,
        learning_rate: float | None = None,
        n_records: int | None = None,
        schema: Any = None,
        classes: ArrayLike | None = None,
        public_fraction: float | None = None,
        noise: Noise | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.budget = budget
        self.fairness = fairness
        self.penalty = penalty
        self.hidden = hidden
        self.clip_norm = clip_norm
        self.n_steps = n_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.n_records = n_records
        self.schema = schema
        self.classes = classes
        self.public_fraction = public_fraction
        self.noise = noise
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        sensitive_features: Any = None,
        X_public: Any = None,
        ledger: Ledger | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Train on the private rows.

        Parameters
        ----------
        X, y, X_public, progress
            As for ``PATEClassifier.fit``.
        sensitive_features : array-like or DataFrame, n_private rows, optional
            Groups of the private rows: private, read by training and covered by the guarantee.
            Needed with ``fairness`` or ``penalty``. Only the names of the groups are public.
        ledger : None
            A shared account cannot be charged; see *Privacy*.

        Raises
        ------
        ValueError
            For inputs that cannot be used; the message names the way out.
        """
        learner = self._learner()
        if ledger is not None:
            raise ValueError(
                "ledger= was given, and DP-SGD cannot be charged to a shared account: its cost "
                "is known at one delta only, and adds up with no Gaussian cost. Leave ledger=None "
                "and add the guarantees: model.guarantee_ + other.guarantee_."
            )
        rng = as_generator(self.random_state)
        data, X_encoded = self._read(X, y, X_public, rng)
        groups = self._groups(sensitive_features, data, learner)
        mechanism = self._mechanism(data)
        noise = FloatNoise() if self.noise is None else copy.deepcopy(self.noise)
        assert self.budget is not None
        run = Ledger(
            self.budget,
            noise=noise,
            unit="record",
            neighbors="add or remove one",
            facts={"valid only at delta": repr(self.budget.delta)},
        )
        n_groups = 0 if groups is None else groups.n_groups
        n_released = learner.n_released(X_encoded.shape[1], data.n_classes, n_groups)
        with run.reserve({mechanism: 1}, purpose="DP-SGD, all steps") as grant:
            trained = learner.fit(
                X_encoded,
                data.y_private,
                n_classes=data.n_classes,
                noise=grant.draw(mechanism, n_released),
                batches=poisson_batches(noise, mechanism, data.n_private),
                batch_size=mechanism.sampling_rate * self._n_public(data),
                groups=None if groups is None else groups.codes,
                n_groups=n_groups,
                rng=rng.spawn(1)[0],
                progress=None if progress is None else lambda i, n: progress("steps", i, n),
            )
        self.groups_ = None if groups is None else groups.names
        self.multipliers_ = trained.multipliers
        self.mechanism_ = mechanism
        self.ledger_ = run
        self.student_ = _as_scikit_learn(trained, data.n_classes)
        self.guarantee_ = self._guarantee(data, noise)
        return self

    def _learner(self) -> DPSGD:
        if not isinstance(self.budget, Budget):
            raise ValueError(
                f"budget must be a Budget, got {self.budget!r}. Say how much privacy loss is "
                f"allowed, for example budget=Budget(epsilon=3.0, delta=1e-5)."
            )
        _checks.at_least("n_steps", self.n_steps, 1)
        _checks.at_least("batch_size", self.batch_size, 1)
        if self.n_records is not None:
            _checks.at_least("n_records", self.n_records, 1)
        if not isinstance(self.fairness, DemographicParity | None):
            raise ValueError(
                f"fairness must be a DemographicParity or None, got {self.fairness!r}. Say how far "
                f"apart the groups may be, for example fairness=DemographicParity(margin=0.05)."
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
        rate = self.learning_rate
        return DPSGD(
            hidden=tuple(self.hidden),
            clip_norm=self.clip_norm,
            learning_rate=(0.5 if self.hidden else 4.0) if rate is None else rate,
            pull=pull,
        )

    def _read(
        self, X: Any, y: ArrayLike, X_public: Any, rng: np.random.Generator
    ) -> tuple[FitInputs, FloatArray]:
        """Check the arguments, fit the encoder on what is public, and encode the private rows."""
        by_schema = X_public is None and self.public_fraction is None
        if by_schema and self.schema is None:
            raise ValueError(
                "DPSGDClassifier scales its columns by public knowledge, and there is none. Pass "
                "X_public= (rows without labels), set public_fraction=0.1 to set rows of X aside "
                "(their features are then not covered), or declare schema= with bounds."
            )
        data = read_fit_inputs(
            self,
            X,
            y,
            sensitive_features=None,
            # With a schema alone there are no public rows, and nothing below reads this.
            X_public=X if by_schema else X_public,
            sensitive_features_public=None,
            unit_ids=None,
            classes=self.classes,
            public_fraction=self.public_fraction,
            needs_groups=False,
            rng=rng,
            n_is_public=False,
        )
        self.classes_ = data.classes
        self._by_schema = by_schema
        self.encoder_ = PublicEncoder(self.schema).fit(None if by_schema else data.X_public)
        return data, self.encoder_.transform(data.X_private)

    @staticmethod
    def _groups(sensitive_features: Any, data: FitInputs, learner: DPSGD) -> GroupCodes | None:
        if learner.pull is None:
            return None
        if sensitive_features is None:
            raise ValueError(
                "Training pulls the groups together and needs the group of every private row; "
                "sensitive_features is missing. Pass it, or leave out fairness= and penalty=."
            )
        known = encode_groups(sensitive_features)
        _checks.same_length(X=range(data.n_private + data.set_aside), sensitive_features=known)
        if known.n_groups < 2:
            raise ValueError(
                f"The rows hold one group only ({known.names[0]!r}): there is nothing to compare "
                f"it with. Check the sensitive column, or leave out fairness= and penalty=."
            )
        return GroupCodes(codes=known.codes[data.private_rows], names=known.names)

    def _n_public(self, data: FitInputs) -> int:
        """Return the number of records that everybody may know."""
        return data.n_private if self.n_records is None else self.n_records

    def _mechanism(self, data: FitInputs) -> SubsampledGaussian:
        assert self.budget is not None
        return SubsampledGaussian.within(
            self.budget,
            sampling_rate=min(1.0, self.batch_size / self._n_public(data)),
            n_steps=self.n_steps,
            clip_norm=self.clip_norm,
        )

    def _guarantee(self, data: FitInputs, noise: Noise) -> Guarantee:
        assert self.budget is not None
        public = ["the names of columns and classes", "all settings"]
        if self.groups_ is not None:
            public.insert(1, "the names of the groups")
        if not self._by_schema:
            public.insert(0, f"the features of the {data.n_public} public rows")
        if self.n_records is None:
            public.append(
                f"the number of private records ({data.n_private}), which sets the sampling rate"
            )
        not_covered = [
            "a choice of settings or of a model made by looking at private data",
            "measurements on private or test rows",
        ]
        if data.set_aside:
            not_covered.insert(
                0, f"the features of {data.set_aside} rows of the table, set aside as public"
            )
        warning = delta_warning(self.budget.delta, self._n_public(data))
        del self._by_schema
        return Guarantee(
            epsilon=self.budget.epsilon,
            delta=self.budget.delta,
            unit="record",
            neighbors="add or remove one",
            noise=noise.name,
            accounting=SUBSAMPLED_ACCOUNTING,
            public=tuple(public),
            not_covered=tuple(not_covered),
            warnings=(warning,) if warning else (),
            holds=noise.protects,
            reason="" if noise.protects else "the noise came from a seed and can be removed",
        )


def _as_scikit_learn(trained: DPSGDModel, n_classes: int) -> Any:
    """Return the trained weights as the scikit-learn classifier that computes the same."""
    classes = np.arange(n_classes)
    if len(trained.layers) == 1:
        weights, bias = trained.layers[0]
        linear = LogisticRegression()
        linear.coef_, linear.intercept_ = np.ascontiguousarray(weights.T), bias.copy()
        linear.classes_, linear.n_features_in_ = classes, len(weights)
        return linear
    network = MLPClassifier(tuple(len(bias) for _, bias in trained.layers[:-1]))
    network.coefs_ = [weights.copy() for weights, _ in trained.layers]
    network.intercepts_ = [bias.copy() for _, bias in trained.layers]
    network.n_layers_ = len(trained.layers) + 1
    network.n_outputs_ = len(network.intercepts_[-1])
    network.out_activation_ = "logistic" if n_classes == 2 else "softmax"
    network.classes_, network.n_features_in_ = classes, len(network.coefs_[0])
    network._label_binarizer = LabelBinarizer().fit(classes)
    return network

"""Private post-processing for equalized odds: a noisy table of a private model's own decisions."""

from __future__ import annotations

import copy
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Final, NamedTuple, NoReturn, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from evenhand import _checks
from evenhand._notions import OF_DECISIONS
from evenhand._random import as_generator
from evenhand.estimators.fitted import FittedModel
from evenhand.estimators.group_shares import pure_claim, release_decisions, several
from evenhand.estimators.inputs import FitArguments, FitInputs, groups_to_decide
from evenhand.estimators.ledgers import SeparateLedgers, own_noise, single_ledger, split_epsilon
from evenhand.estimators.margins import Derived
from evenhand.estimators.noisy_gradient import NoisyGradientClassifier, linear_classifier
from evenhand.estimators.scored_by_group import ScoredByGroup
from evenhand.estimators.spec import BUDGET, PUBLIC_ROWS, MethodSpec, registered
from evenhand.fairness import EqualizedOdds, FairnessKind
from evenhand.fairness.groups import GroupCodes
from evenhand.fairness.notion import RateNotion, rates_of, require_reference
from evenhand.fairness.notions import require_notion
from evenhand.learners import DPSGD
from evenhand.privacy import Budget, Guarantee, Ledger, SubsampledGaussian
from evenhand.privacy.noise import Noise
from evenhand.privacy.table import LaplaceTable
from evenhand.students.decisions import draw
from evenhand.students.derived import DerivedRule, noise_bound
from evenhand.students.thresholds import NEEDS_GROUP
from evenhand.typing import Array, FloatArray, IntArray, RandomState

DEFAULT: Final = EqualizedOdds(margin=0.05, reference="pairwise")


class Trained(NamedTuple):
    """What the steps leave for what comes after them; rows and groups are private."""

    data: FitInputs
    X_encoded: Array
    groups: GroupCodes
    mechanism: SubsampledGaussian
    ledger: Ledger
    claim: Guarantee


@dataclass(eq=False, repr=False)
class GroupRuleClassifier(ScoredByGroup, NoisyGradientClassifier):
    """Base of those that train by DP-SGD and then set a rule for each group; use a subclass."""

    fairness: RateNotion | None = None
    _: KW_ONLY
    learning_rate: float = 4.0

    _default: ClassVar[RateNotion] = DEFAULT
    _reads_group: ClassVar[bool] = False

    @property
    def notion(self) -> RateNotion:
        """What is held: ``fairness``, or its default."""
        return self._default if self.fairness is None else self.fairness

    def _train(self, given: FitArguments, left: Budget, rng: np.random.Generator) -> Trained:
        """Train the model below the rule, and set ``student_``."""
        learner = DPSGD(clip_norm=self.clip_norm, learning_rate=self.learning_rate)
        data, X_encoded = self._read(given, rng)
        groups = self._counted_groups(given.sensitive_features, data)
        mechanism, noise = self._sampled(left, data), self._float_noise()
        run = single_ledger(left, noise)
        rows = X_encoded
        if self._reads_group:
            rows = np.column_stack([X_encoded, np.eye(groups.n_groups)[groups.codes]])
        network = learner.network(rows.shape[1:], data.n_classes, rng)
        with run.reserve({mechanism: 1}, purpose="DP-SGD, all steps") as grant:
            trained = learner.fit(
                network,
                rows,
                data.y_private,
                noise=grant.draw_by_step(mechanism, learner.n_released(network)),
                **self._steps(mechanism, data, noise, given),
            )
        self.groups_ = groups.names
        (weights, bias), n_columns = trained.network[0], X_encoded.shape[1]
        self.student_ = linear_classifier(weights[:n_columns], bias, data.n_classes)
        self._take_group_weights(weights[n_columns:].copy())
        claim = self._claim(left, data, noise, public=("the names of the groups",))
        return Trained(data, X_encoded, groups, mechanism, run, claim)

    def _aim(self) -> tuple[str | None, float | None]:
        return self.notion.name, self.notion.margin

    def _describe(self) -> FittedModel:
        fitted = super()._describe()
        return replace(fitted, table_gap=self.table_gap_, table_noise=self.noise_bound_)

    def with_group_thresholds(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: the decisions are derived from the group already."""
        raise ValueError(
            "This model's decisions are derived from the group already, and its probabilities are "
            "probabilities of a decision. Use DPSGDClassifier().with_group_thresholds."
        )

    def with_reject_option(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: the wrapper asks for predictions without groups."""
        raise ValueError(
            "A reject option asks for predictions from the features alone, and this model needs "
            "the group of each row. Use DPSGDClassifier().with_reject_option."
        )

    def _counted_groups(self, sensitive_features: Any, data: FitInputs) -> GroupCodes:
        if sensitive_features is None:
            raise ValueError(
                "The table counts the groups of the private rows; sensitive_features is missing. "
                "Pass it, or use DPSGDClassifier for a model that is blind to groups."
            )
        rates_of(self.notion, data.n_classes)  # before anything is spent
        return several(self._private_groups(sensitive_features, data))

    def _take_group_weights(self, weights: FloatArray) -> None:
        """Keep what the group adds to the scores, (n_groups, n_scores), where it is read."""

    def _expected(self, encoded: Array, groups: GroupCodes) -> FloatArray:
        """Return the probabilities of each final decision, shape (n, n_classes)."""
        raise NotImplementedError

    def predict(
        self, X: Any, *, sensitive_features: Any = None, random_state: RandomState = None
    ) -> Array:
        """Predict class labels; the group of every row is needed, and probability decides.

        Parameters
        ----------
        X : DataFrame or array-like, shape (n, n_columns)
        sensitive_features : array-like or DataFrame, n rows
            A group that the fit did not know is an error.
        random_state : int, Generator or None
            Draws the decisions: with None two calls differ. ``predict_proba`` does not draw.
        """
        expected = self._expected(*self._encoded_with(X, sensitive_features))
        labels: Array = self.classes_[draw(expected, as_generator(random_state))]
        return labels

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> FloatArray:
        """Return the probabilities with which ``predict`` decides, shape (n, n_classes).

        They are probabilities of a *decision*, given features and group: not of the label.
        """
        return self._expected(*self._encoded_with(X, sensitive_features))

    def _encoded_with(self, X: Any, sensitive_features: Any) -> tuple[FloatArray, GroupCodes]:
        """Encode rows to be predicted, with their groups."""
        encoded = self._encode(X)
        groups = groups_to_decide(X, sensitive_features, self.groups_)
        _checks.same_length(X=encoded, sensitive_features=groups)
        return encoded, groups


@dataclass(eq=False, repr=False)
class TableRuleClassifier(GroupRuleClassifier):
    """Base of those whose rule reads one noisy table beside the model; use a subclass.

    A part of epsilon, ``table_budget``, buys the table (Laplace, delta 0), and the steps have the
    rest. The rule reads the table alone, so another margin is free.
    """

    _: KW_ONLY
    table_budget: float = 0.25

    def _learn(self, given: FitArguments) -> None:
        pure, left = split_epsilon(self._checked_steps(given.ledger), self._checked_parts())
        trained = self._train(given, left, as_generator(self.random_state))
        ledger, self.table_ = self._counted(trained, pure, own_noise(self.noise))
        self._derive()
        self.mechanism_ = trained.mechanism
        self.fairness_kind_ = FairnessKind.DERIVED
        self.ledger_ = SeparateLedgers(trained.ledger, ledger)
        self.guarantee_ = (trained.claim + pure_claim(ledger)).with_warning(NEEDS_GROUP)

    def with_fairness(self, fairness: RateNotion) -> Self:
        """Return this model with another margin or notion, solved on the table that was released.

        Privacy
        -------
        Free: reads the noisy table (post-processing), so trying many margins costs nothing.
        """
        check_is_fitted(self, "table_")
        again = copy.copy(self).set_params(fairness=fairness)
        again._checked_parts()
        again._derive()
        again._fitted = again._describe()
        derived: Self = again
        return derived

    @property
    def _scale(self) -> float:
        """Scale of the Laplace noise of the table."""
        assert self.budget is not None
        return LaplaceTable.within(split_epsilon(self.budget, self.table_budget)[0]).scale

    @abstractmethod
    def _checked_parts(self) -> float:
        """Return ``table_budget``, after a look at the notion and the settings of the rule."""

    @abstractmethod
    def _counted(self, trained: Trained, pure: Budget, noise: Noise) -> tuple[Ledger, FloatArray]:
        """Release the table within a budget of delta 0; return its ledger, and the table."""

    @abstractmethod
    def _derive(self) -> None:
        """Solve for the rule on the noisy table; reads nothing private."""


@registered(
    MethodSpec(
        name="dp-post-processing",
        words="A private model, whose decisions a noisy table corrects for each group.",
        reads=(*BUDGET, *PUBLIC_ROWS, "margin"),
        needs=("epsilon", "margin"),
        notions=OF_DECISIONS,
        kind=FairnessKind.DERIVED,
        reference="pairwise",
        private_groups=True,
    )
)
@dataclass(eq=False, repr=False)
class DPPostProcessingClassifier(TableRuleClassifier):
    """Train privately, count privately how each group is judged, and even the rates at random.

    Three steps: logistic regression by DP-SGD with a part of epsilon, blind to groups; a noisy
    table of group, true label and decision with the rest; a linear program on that table for the
    probabilities of each final decision, given the group and the model's own.

    Parameters
    ----------
    budget : Budget
        The (epsilon, delta) that the whole fit may spend. Needed.
    fairness : RateNotion
        Which rates may differ between two groups, by the noisy table, and by how much; its
        ``reference`` is ``"pairwise"``. Default: equalized odds with a margin of 0.05.
    slack : float or None
        Added to the margin, at least 0. None adds ``noise_bound_``, as in the paper, whose theorem
        compares the error with the best rule on the true rates. No rule needs it to exist.
    table_budget : float
        Part of epsilon for the table, in (0, 1). The steps have the rest, with all of delta.
    clip_norm, n_steps, batch_size, learning_rate, n_records
        Of the steps, as for ``DPSGDClassifier``.
    schema, classes, public_fraction, noise, random_state
        As for ``DPSGDClassifier``. Given ``noise`` serves the table too, which has exact discrete
        noise by default.

    Attributes
    ----------
    rule_ : DerivedRule
        Probabilities of the final decision, ``probabilities[group, decision of the model, final
        decision]``.
    table_ : ndarray, shape (n_groups, n_classes, n_classes)
        The noisy counts of group, true label and decision. Public.
    table_gap_ : float
        The largest difference of the bound rates that the rule leaves, by the noisy table.
    noise_bound_ : float
        How much further apart they may be among the private records, with probability 0.95.
    guarantee_ : Guarantee
        The claim; ``str()`` is one sentence.
    ledger_ : SeparateLedgers
        One ledger for the steps, one for the table.
    mechanism_ : SubsampledGaussian
    groups_ : tuple of str
    classes_, student_, encoder_
        ``student_`` is the model before the rule.

    Privacy
    -------
    Neighbors : add or remove one record, its group included.
    Sensitivity : L2 ``clip_norm`` for a step; one cell of the table moves by 1.
    Cost : basic composition of the steps, at epsilon ``(1 - table_budget)`` of the budget's and its
        delta, and of the table, at the rest of epsilon and delta 0. The table may read the trained
        model, for that is released (adaptive composition).

    References
    ----------
    Jagielski, Kearns, Mao, Oprea, Roth, Sharifi-Malvajerdi and Ullman 2019, "Differentially Private
    Fair Learning", section 4; Hardt, Price and Srebro 2016. The paper protects the group alone and
    leaves the base model to others; here the whole record is protected, in both parts.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_classification
    >>> from evenhand import Budget
    >>> X, y = make_classification(3000, random_state=0)
    >>> group = np.where(X[:, 0] > 0, "a", "b")
    >>> clf = DPPostProcessingClassifier(
    ...     Budget(epsilon=2.0, delta=1e-6), n_steps=200, batch_size=256
    ... )
    >>> clf = clf.fit(X[:2500], y[:2500], sensitive_features=group[:2500], X_public=X[2500:])
    >>> labels = clf.predict(X[2500:], sensitive_features=group[2500:], random_state=0)
    >>> clf.guarantee_.epsilon, clf.table_gap_ <= 0.05
    (2.0, True)
    """

    _: KW_ONLY
    slack: float | None = 0.0

    def _counted(self, trained: Trained, pure: Budget, noise: Noise) -> tuple[Ledger, FloatArray]:
        data, groups = trained.data, trained.groups
        decided = self._own_decisions(trained.X_encoded, groups)
        return release_decisions(groups, data.y_private, decided, data.n_classes, pure, noise)

    def _own_decisions(self, encoded: Array, groups: GroupCodes) -> IntArray:
        """Return the class codes that the model below the rule gives."""
        decided: IntArray = self.student_.predict(encoded).astype(np.int64)
        return decided

    def _expected(self, encoded: Array, groups: GroupCodes) -> FloatArray:
        return self.rule_.expected(self._own_decisions(encoded, groups), groups.codes)

    def _describe(self) -> FittedModel:
        fitted = super()._describe()
        derived = Derived(
            notion=self.notion.title,
            margin=self.notion.margin,
            gap=self.table_gap_,
            beyond=self.noise_bound_,
            classes=fitted.class_names,
            groups=self.groups_ or (),
            rule=self.rule_,
            table=self.table_,
        )
        return replace(fitted, derived=derived)

    def _take(self, fitted: FittedModel) -> None:
        super()._take(fitted)
        assert fitted.derived is not None
        self.rule_, self.table_ = fitted.derived.rule, fitted.derived.table
        self.table_gap_, self.noise_bound_ = fitted.derived.gap, fitted.derived.beyond

    def _checked_parts(self) -> float:
        notion = require_notion(self.notion, "For no margin use DPSGDClassifier.")
        require_reference(notion, "pairwise", "The rule")
        if self.slack is not None:
            _checks.non_negative("slack", self.slack)
        return _checks.open_unit("table_budget", self.table_budget)

    def _rule_within(self, fairness: RateNotion) -> DerivedRule:
        """Return the rule of a margin, by the noisy table."""
        return DerivedRule.fit(self.table_, fairness)

    def _derive(self) -> None:
        self.noise_bound_ = noise_bound(self.table_, self.notion, scale=self._scale)
        slack = self.noise_bound_ if self.slack is None else self.slack
        allowed = min(1.0, self.notion.margin + slack)
        self.rule_ = self._rule_within(replace(self.notion, margin=allowed))
        self.table_gap_ = self.rule_.gap(self.table_, self.notion)

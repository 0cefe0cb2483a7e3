"""M: everybody's group by randomised response, then a fair learner that knows how it was noised."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from evenhand import _checks
from evenhand._notions import OF_DECISIONS
from evenhand._random import as_generator
from evenhand.baselines.fair_only import reduce_within
from evenhand.baselines.fairlearn_moments import (
    count_answers,
    estimated_gap,
    moment_of,
    require_constraint,
)
from evenhand.estimators.attribute_privacy import AttributePrivacyClassifier, PeopleInputs
from evenhand.estimators.inputs import FitArguments
from evenhand.estimators.ledgers import own_noise
from evenhand.estimators.spec import BUDGET, MethodSpec, registered
from evenhand.fairness import FairnessKind
from evenhand.fairness.noisy_groups import SURE, share_error
from evenhand.fairness.notion import RateNotion, rates_of
from evenhand.privacy import Ledger, RandomizedResponse
from evenhand.privacy.randomized_response import RESPONSE_ACCOUNTING
from evenhand.typing import FloatArray


@registered(
    MethodSpec(
        name="randomized-response",
        words="A fair model, of groups that were randomised record by record.",
        reads=(*BUDGET, "margin", "reference"),
        needs=("epsilon", "margin"),
        protects="attribute",
        notions=OF_DECISIONS,
        kind=FairnessKind.WEIGHTS,
        private_groups=True,
    )
)
@dataclass(eq=False, repr=False)
class RandomizedResponseClassifier(AttributePrivacyClassifier):
    """Noise everybody's group once, then train under a margin corrected for that noise ("M").

    Each person's group is given truly or not by a draw of that person's own (k-ary randomised
    response); everything after reads the answers. The margin on true groups is narrowed to what
    it means among answered ones, exactly, and kept there by the reductions approach. The model
    needs no group at prediction. For two classes.

    Parameters
    ----------
    budget : Budget
        ``epsilon`` of one person's answer. The promise has delta 0; ``delta`` is not used up.
    fairness : RateNotion
        The margin between the true groups, as far as the answers tell. Needed.
    learner : scikit-learn classifier, optional
        Anything whose ``fit`` takes ``sample_weight``. Default: logistic regression.
    max_iter : int
        Rounds of the reduction, each of which fits the learner once.
    slack : float
        By how much the constraint may be missed in training, in rates between true groups.
    schema, classes
        As for ``PATEClassifier``. Features are public here, so the rows scale themselves.
    noise : Noise, optional
        Default: exact draws from the operating system's randomness.
    random_state : int, Generator or None
        Chooses which member of the mixture answers which row.

    Attributes
    ----------
    mechanism_ : RandomizedResponse
        The probabilities of answers.
    estimated_shares_ : ndarray, shape (n_strata, n_groups)
        Shares of the true groups, as the answers tell them; by true class for equalized odds.
        Public.
    estimated_gap_ : float
        Gap of the decisions on these rows between the true groups, as the answers tell it. Public.
    student_ : Mixture
        As for ``FairOnlyClassifier``.
    n_iter_ : int
    groups_ : tuple of str
    guarantee_, ledger_, classes_, encoder_, fairness_kind_

    Privacy
    -------
    Neighbors : change the group label of one person. Features and class labels are public.
    Sensitivity : one person's group is read by that person's answer alone, so it could be made on
        a device of their own and nobody need be trusted with it ("local" privacy).
    Cost : ``epsilon``, with delta 0; see ``RandomizedResponse``. Training reads answers only
        (post-processing), and so may any other training on the same answers.

    References
    ----------
    Mozannar, Ohannessian and Srebro 2020, "Fair Learning with Private Demographic Data"; called M
    by SF-PATE. The paper lets a second stage of post-processing follow; here the first stage is
    corrected itself, exactly, so that no group is needed at prediction. The correction is derived
    in ``evenhand.fairness.noisy_groups``.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from evenhand import Budget, DemographicParity
    >>> X, y = make_classification(3000, random_state=0)
    >>> clf = RandomizedResponseClassifier(
    ...     Budget(epsilon=1.0, delta=1e-6), DemographicParity(margin=0.05), random_state=0
    ... )
    >>> clf = clf.fit(X, y, sensitive_features=X[:, 0] > 0)
    >>> clf.guarantee_.delta, clf.guarantee_.unit
    (0.0, 'sensitive attribute of one person')
    """

    NUMBERS = ("estimated_gap_", "estimated_shares_")
    _two_classes = True

    fairness: RateNotion | None = None
    _: KW_ONLY
    learner: Any = None
    max_iter: int = 50
    slack: float = 0.002

    def _learn(self, given: FitArguments) -> None:
        budget, notion = self._checked_budget(), self._checked_notion(given.ledger)
        rng = as_generator(self.random_state)
        people = self._read_people(given, rng)
        self._require_two_classes(people)
        response = RandomizedResponse.within(budget, n_groups=people.groups.n_groups)
        labels = people.data.y_private
        self._require_told(response, notion, people)
        noise = own_noise(self.noise)
        run = self._only_at_its_delta(budget, noise)
        (answers,) = run.release(
            response, people.groups.codes[None, :], purpose="everybody's group, randomised"
        )
        answered = count_answers(
            notion, labels, answers, people.groups.n_groups, float(response.truth)
        )
        answered.require_told(people.groups.names)
        if given.progress is not None:
            given.progress("training", 0, 1)
        self.student_, self.n_iter_ = reduce_within(
            self.learner,
            people.X_encoded,
            labels,
            answers,
            moment_of(notion, answered),
            # What may be missed between true groups is less between answered ones.
            slack=self.slack / float(np.nanmax(answered.stretch)),
            max_iter=self.max_iter,
            seed=int(rng.integers(2**62)),
        )
        if given.progress is not None:
            given.progress("training", 1, 1)
        decided = self.student_.predict(people.X_encoded)
        self.estimated_gap_ = estimated_gap(notion, decided, labels, answers, answered)
        self.estimated_shares_: FloatArray = answered.shares
        self.mechanism_ = response
        self.encoder_, self.classes_ = people.encoder, people.data.classes
        self.groups_ = people.groups.names
        self.ledger_ = run
        self.fairness_kind_ = FairnessKind.WEIGHTS
        self.guarantee_ = self._claim(
            people,
            noise,
            epsilon=budget.epsilon,
            delta=0.0,
            accounting=RESPONSE_ACCOUNTING,
            noise_words=response.said(noise),
        )

    def _checked_notion(self, ledger: Ledger | None) -> RateNotion:
        _checks.at_least("max_iter", self.max_iter, 1)
        _checks.positive("slack", self.slack)
        if ledger is not None:
            raise ValueError(
                "ledger= was given, and randomised response cannot be charged to a shared account: "
                "its epsilon is known at one delta only there, and adds up with no Gaussian cost. "
                "Leave ledger=None and add the guarantees: model.guarantee_ + other.guarantee_."
            )
        return require_constraint(self.fairness)

    def _require_two_classes(self, people: PeopleInputs) -> None:
        if people.data.n_classes != 2:
            raise ValueError(
                f"Only binary classification is supported. The type of the target is multiclass: "
                f"y has {people.data.n_classes} classes. Use PFLDClassifier, which takes any "
                f"number."
            )

    @staticmethod
    def _require_told(
        response: RandomizedResponse, notion: RateNotion, people: PeopleInputs
    ) -> None:
        """Refuse, before anything is drawn, answers that can say of no group that it is there."""
        n_groups, labels = response.n_groups, people.data.y_private
        strata = rates_of(notion, 2).stratum_of(labels)
        sizes = np.bincount(strata[strata >= 0]).astype(np.float64)
        error = float(share_error(sizes, n_groups, float(response.truth)).max())
        if SURE * error < 1.0 / n_groups:
            return
        raise ValueError(
            f"epsilon={response.epsilon:.4g} is too small for the correction: with "
            f"{int(sizes.min())} rows in the smallest class that is compared, the share of a group "
            f"would be known to within {error:.3f} only (standard error), and {n_groups} groups "
            f"have a share of {1 / n_groups:.3f} each at best. Nothing was drawn. Raise epsilon, "
            f"or give more rows."
        )

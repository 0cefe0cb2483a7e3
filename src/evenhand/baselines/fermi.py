"""DP-FERMI: noisy descent on a loss plus the Renyi information of decision and group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Final

import numpy as np

from evenhand import _checks
from evenhand._random import as_generator
from evenhand.baselines.fermi_descent import FERMI
from evenhand.estimators.group_shares import (
    RELEASED,
    GroupShares,
    declared,
    from_public_rows,
    pure_claim,
    released,
)
from evenhand.estimators.inputs import FitArguments, FitInputs
from evenhand.estimators.ledgers import SeparateLedgers, own_noise, single_ledger
from evenhand.estimators.noisy_gradient import NoisyNetworkClassifier
from evenhand.estimators.spec import BUDGET, PUBLIC_ROWS, MethodSpec, Settings, registered
from evenhand.fairness import DemographicParity, EqualizedOdds, FairnessKind
from evenhand.fairness.groups import GroupCodes, encode_groups
from evenhand.fairness.notion import Notion
from evenhand.privacy import Budget

KNOWN: Final = (DemographicParity, EqualizedOdds)
DEFAULT: Final = DemographicParity(margin=0.0)


def _shares(settings: Settings, any_public: bool) -> Settings:
    """Release the shares of the groups where public rows do not hold them."""
    if any_public and settings["fairness"] == "demographic-parity":
        return {}
    return {"group_shares": "released"}


@registered(
    MethodSpec(
        name="dp-fermi",
        words="One model by noised gradients, with a weight on how far decisions follow the group.",
        reads=(
            *BUDGET,
            *PUBLIC_ROWS,
            "fairness_weight",
            "group_thresholds",
            "hidden",
            "architecture",
        ),
        needs=("epsilon",),
        notions=("demographic-parity", "equalized-odds"),
        kind=FairnessKind.WEIGHTS,
        public_groups=True,
        private_groups=True,
        more=_shares,
    )
)
@dataclass(eq=False, repr=False)
class DPFERMIClassifier(NoisyNetworkClassifier):
    """Train logistic regression or a network by DP-FERMI, with the clipping that its proof needs.

    The weights descend on ``mean loss + fairness_weight * R``, with R the exponential Renyi mutual
    information of decision and group; its dual variables ascend. Both read one noisy clipped sum
    per step. The model needs no group at prediction.

    Parameters
    ----------
    budget : Budget
        The (epsilon, delta) that the whole fit may spend. Needed.
    fairness_weight : float
        Weight of R (lambda in the paper). At least 0; 0 is DP-SGD with a part of each step unused.
    fairness : DemographicParity or EqualizedOdds
        Whether decision and group are to be independent, or independent given the true label. With
        ``margin=0``: no margin is kept, and how near the rates come depends on the weight. Default:
        demographic parity.
    group_shares : None, mapping, or "released"
        Where the shares P(group) come from that R needs. None: from the groups of the public rows.
        A mapping of group to share: declared by you, public. ``"released"``: from a noisy table of
        the private rows, charged to the budget. For equalized odds shares are needed given each
        label: a mapping of label to such a mapping, or ``"released"``.
    shares_budget : float
        Part of epsilon that ``group_shares="released"`` spends, in (0, 1).
    clip_norm : float
        Largest norm of what one record adds to a step, weights and dual variables together.
    multiplier_share : float
        Part of it for the dual variables, in (0, 1).
    multiplier_rate : float
        Step of the dual variables, in (0, 1).
    hidden, architecture, device, n_steps, batch_size, learning_rate, n_records
        As for ``DPSGDClassifier``.
    schema, classes, public_fraction, noise, random_state
        As for ``DPSGDClassifier``. Given ``noise`` serves the table of shares too, which has exact
        discrete noise by default.

    Attributes
    ----------
    guarantee_ : Guarantee
        The claim; ``str()`` is one sentence.
    ledger_ : Ledger or SeparateLedgers
        The run's own; with released shares one for the table and one for the steps.
    mechanism_ : SubsampledGaussian
    multipliers_ : ndarray, shape (1 or n_classes, n_groups, n_classes)
        Where the dual variables ended. Public.
    group_shares_ : ndarray, shape (1 or n_classes, n_groups)
        The shares that were used. Public.
    groups_ : tuple of str
    classes_, student_, encoder_

    Privacy
    -------
    Neighbors : add or remove one record.
    Sensitivity : one record adds a vector of L2 norm at most ``clip_norm`` to a step that it
        enters: its gradient in the weights and in the dual variables.
    Cost : as for ``DPSGDClassifier``. Released shares spend ``shares_budget`` of epsilon (Laplace,
        delta 0) and the steps the rest with all of delta: basic composition.

    References
    ----------
    Lowy, Gupta and Razaviyayn 2023, "Stochastic Differentially Private and Fair Learning",
    Algorithm 1. The derivation, and where we differ, stand in ``evenhand.baselines.fermi_descent``.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(3000, random_state=0)
    >>> group = np.where(X[:, 0] > 0, "a", "b")
    >>> clf = DPFERMIClassifier(
    ...     Budget(epsilon=2.0, delta=1e-6), group_shares={"a": 0.5, "b": 0.5},
    ...     n_steps=200, batch_size=256,
    ... )
    >>> clf = clf.fit(X[:2500], y[:2500], sensitive_features=group[:2500], X_public=X[2500:])
    >>> clf.guarantee_.epsilon, clf.groups_
    (2.0, ('a', 'b'))
    """

    fairness_weight: float = 1.0
    _: KW_ONLY
    fairness: Notion | None = None
    group_shares: Mapping[Any, Any] | str | None = None
    shares_budget: float = 0.02
    multiplier_share: float = 0.25
    multiplier_rate: float = 0.03

    @property
    def notion(self) -> Notion:
        """What is held: ``fairness``, or its default."""
        return DEFAULT if self.fairness is None else self.fairness

    def _aim(self) -> tuple[str | None, float | None]:
        return self.notion.name, None

    def _learn(self, given: FitArguments) -> None:
        budget, learner = self._checked_steps(given.ledger), self._learner()
        rng = as_generator(self.random_state)
        data, X_encoded = self._read(given, rng)
        if given.sensitive_features is None:
            raise ValueError(
                "DP-FERMI needs the group of every private row; sensitive_features is missing. "
                "Pass it, or use DPSGDClassifier without fairness= and penalty=."
            )
        known = self._shares(
            given.sensitive_features, given.sensitive_features_public, data, budget
        )
        mechanism = self._sampled(known.left, data)
        noise = self._float_noise()
        network = self._network(learner, X_encoded, data.n_classes, rng, noise)
        run = single_ledger(known.left, noise)
        with run.reserve({mechanism: 1}, purpose="DP-FERMI, all steps") as grant:
            trained = learner.fit(
                network,
                X_encoded,
                data.y_private,
                known.groups.codes,
                shares=known.shares,
                noise=grant.draw_by_step(mechanism, learner.n_released(network, known.shares)),
                **self._steps(mechanism, data, noise, given),
            )
        self.groups_, self.group_shares_ = known.groups.names, known.shares
        self.multipliers_ = trained.multipliers
        self.mechanism_ = mechanism
        bound = learner.strength > 0
        self.fairness_kind_ = FairnessKind.WEIGHTS if bound else FairnessKind.NONE
        self.student_ = self._student(trained.network, data.n_classes)
        public = (*known.public, *self._starts_from())
        claim = self._claim(known.left, data, noise, public=public, not_covered=known.not_covered)
        if known.ledger is None:
            self.ledger_, self.guarantee_ = run, claim
        else:
            self.ledger_ = SeparateLedgers(known.ledger, run)
            self.guarantee_ = pure_claim(known.ledger) + claim

    def _learner(self) -> FERMI:
        if not isinstance(self.notion, KNOWN):
            known = " or ".join(kind.__name__ for kind in KNOWN)
            raise ValueError(f"fairness must be a {known} with margin=0, got {self.notion!r}.")
        if self.notion.margin:
            raise ValueError(
                f"DP-FERMI keeps no margin, got {self.notion!r}: fairness_weight draws the rates "
                f"of the groups to each other. Write margin=0, or use "
                f"DPSGDClassifier(fairness=...)."
            )
        _checks.open_unit("shares_budget", self.shares_budget)
        return FERMI(
            strength=_checks.non_negative("fairness_weight", self.fairness_weight),
            share=_checks.open_unit("multiplier_share", self.multiplier_share),
            multiplier_rate=self.multiplier_rate,
            **self._settings(),
        )

    def _shares(self, private: Any, public: Any, data: FitInputs, budget: Budget) -> GroupShares:
        """Find the shares of the groups where they are public or paid for."""

        def encode(names: tuple[str, ...] | None = None) -> GroupCodes:
            return self._private_groups(private, data, names)

        by_label = isinstance(self.notion, EqualizedOdds)
        if isinstance(self.group_shares, Mapping):
            labels = tuple(self.classes_) if by_label else None
            return declared(self.group_shares, labels, encode, budget)
        if self.group_shares is not None:
            _checks.one_of("group_shares", str(self.group_shares), (RELEASED,))
            strata = data.y_private if by_label else np.zeros_like(data.y_private)
            return released(
                encode(),
                strata,
                data.n_classes if by_label else 1,
                budget,
                self.shares_budget,
                own_noise(self.noise),
            )
        if by_label:
            raise ValueError(
                "Equalized odds needs the shares of the groups given each true label, and public "
                "rows have no labels. Pass group_shares='released', or declare them: "
                "group_shares={label: {group: share, ...}, ...}."
            )
        if not data.set_aside:
            if public is None:
                raise ValueError(
                    "DP-FERMI needs shares of the groups that everybody may know, and there are "
                    "none. Pass sensitive_features_public= (the groups of the public rows), "
                    "declare group_shares={group: share, ...}, or pay for them: "
                    "group_shares='released'."
                )
            _checks.same_length(X_public=data.X_public, sensitive_features_public=public)
            return from_public_rows(public, encode, budget)
        everybody = encode_groups(private)
        aside = np.ones(len(everybody), dtype=np.bool_)
        aside[data.private_rows] = False
        names = np.array(everybody.names, dtype=object)
        found = from_public_rows(names[everybody.codes[aside]], encode, budget)
        left_out = f"the groups of {data.set_aside} rows of the table, set aside as public"
        return replace(found, not_covered=(left_out,))

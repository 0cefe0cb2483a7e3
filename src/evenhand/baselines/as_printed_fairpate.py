"""FairPATE with gate *and* accounting as printed: to compare with, for it is not private."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from evenhand.baselines.printed_answers import answer_as_printed, cost_of_all, printed_mechanism
from evenhand.baselines.published_fairpate import PublishedFairPATEClassifier
from evenhand.estimators.inputs import FitInputs, Progress
from evenhand.estimators.ledgers import open_run, own_noise
from evenhand.estimators.spec import ACCOUNT, REGISTERED, registered
from evenhand.estimators.steps import Given, Plan, Taught
from evenhand.fairness import FairnessKind
from evenhand.privacy import ConfidentGNMax, Guarantee, Ledger
from evenhand.privacy.guarantee import as_printed
from evenhand.teachers.partition import Partition
from evenhand.voting import Answers, Shares

_GATE_AS_PRINTED: Final = REGISTERED["fairpate-published"]
_NOT_READ: Final = ("ledger", "account", "account_epsilon", "confidence")
assert set(_NOT_READ[:3]) <= set(ACCOUNT)


@registered(
    replace(
        _GATE_AS_PRINTED,
        name="fairpate-as-printed",
        words="FairPATE, gate and accounting as printed: to compare with, NOT PRIVATE AS CLAIMED.",
        reads=tuple(one for one in _GATE_AS_PRINTED.reads if one not in _NOT_READ),
        claim_holds=False,
        kind=lambda given: (
            FairnessKind.WEIGHTS if given.get("student_margin") else FairnessKind.ANSWERS
        ),
    )
)
@dataclass(eq=False, repr=False, kw_only=True)
class AsPrintedFairPATEClassifier(PublishedFairPATEClassifier):
    """FairPATE as it is printed, its accounting included: **not private as claimed**.

    Algorithm 1: a noisy threshold, a noisy winner, the gate that looks at the pair being answered,
    in the order of the public rows; and a student that knows of no margin. The run stops when the
    *paper's* cost reaches the budget: Theorem 6 at the actual votes for an answer, nothing for a
    refusal by the gate. That is no guarantee (``docs/guarantees.md``), so ``guarantee_`` says NOT
    PRIVATE AS CLAIMED wherever it is shown, and beside it what the same draws cost in sound
    accounting: the charge of ``ledger_``.

    Parameters
    ----------
    budget : Budget
        What the paper would claim, and what its accounting stops at. Needed.
    fairness : DemographicParity
        With ``reference="rest"``, the only one that Algorithm 1 knows. Needed.
    mechanism : ConfidentGNMax, optional
        T, sigma_1 and sigma_2. Default: the medians of the paper's Table 1 for each teacher
        (``printed_mechanism``).
    student_margin : bool, default False
        True: the student is held within the margin as well, which is ours.
    cold_start : int, optional
        M; as for ``PublishedFairPATEClassifier``.

    Attributes
    ----------
    ledger_ : Ledger
        What was drawn, charged by data-independent costs, refusals included: ``spent_epsilon`` is
        the sound cost of the same draws. Its budget is the cost of asking every public row. It does
        not know what the moment of stopping tells.
    guarantee_ : Guarantee
        Without a bound, and why.

    Privacy
    -------
    **None.** A refusal that reads the noisy winner publishes a function of it, uncharged; Theorem 6
    bounds one direction, and depends on private votes; and so does the moment of stopping, by which
    neighbors can be told apart with certainty.

    References
    ----------
    Yaghini et al. 2024, "Learning to Walk Impartially on the Pareto Frontier of Fairness, Privacy,
    and Utility", Algorithm 1, Section 4.1 and Appendix B; Papernot et al. 2018, Theorem 6.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand import Budget, DemographicParity
    >>> rng = np.random.default_rng(0)
    >>> groups = rng.integers(2, size=1500)
    >>> X = rng.normal(size=(1500, 3)) + groups[:, None] * [[1.0, 0.0, 0.0]]
    >>> y = X.sum(axis=1) + rng.normal(size=1500) > 0.5
    >>> clf = AsPrintedFairPATEClassifier(
    ...     budget=Budget(epsilon=8.0, delta=1e-5), fairness=DemographicParity(margin=0.2),
    ...     n_teachers=60, random_state=0,
    ... )
    >>> clf = clf.fit(X[:1000], y[:1000], X_public=X[1000:],
    ...               sensitive_features_public=groups[1000:])
    >>> str(clf.guarantee_)[:22], clf.guarantee_.epsilon, clf.fitted_.epsilon_spent > 8.0
    ('NOT PRIVATE AS CLAIMED', inf, True)
    """

    asked_in_lockstep = False

    student_margin: bool = False

    def plan(self, given: Given, ledger: Ledger | None = None) -> Plan:
        """Open a ledger that covers all queries: it only notes what the draws cost."""
        if ledger is not None:
            raise ValueError(
                "ledger= is an account of costs that hold, and FairPATE's own accounting stops at "
                "a moment that depends on the votes, whose cost nobody knows. Leave it out, or use "
                "PublishedFairPATEClassifier."
            )
        data, partition = given.data, given.partition
        if data.to_draw is not None:
            raise ValueError(
                f"public={self.public!r} pays for rows from the budget, and FairPATE's own "
                f"accounting knows of no such cost. Give X_public=, or use FairPATEClassifier."
            )
        n_teachers, why_so_many = self._chosen_teachers(data)
        mechanism = printed_mechanism(n_teachers) if self.mechanism is None else self.mechanism
        if not isinstance(mechanism, ConfidentGNMax):
            raise ValueError(
                f"mechanism must be a ConfidentGNMax, which is what Algorithm 1 has, got "
                f"{mechanism!r}. Use PublishedFairPATEClassifier for another."
            )
        gate, noise = self._open_gate(data), own_noise(self.noise)
        claimed = self._checked_budget()
        run = open_run(
            cost_of_all(mechanism, noise, data.n_public, claimed.delta),
            None,
            noise,
            unit=partition.unit,
            neighbors=partition.neighbors,
            way_out="",
            purpose=type(self).__name__,
        )
        return Plan(
            ledger=run,
            mechanism=mechanism,
            gate=gate,
            n_teachers=n_teachers,
            choices=(
                why_so_many,
                f"{mechanism!r}: "
                + (
                    "the medians of FairPATE's Table 1 for each teacher."
                    if self.mechanism is None
                    else "as it was asked for."
                ),
            ),
        )

    def ask(self, taught: Taught, plan: Plan, progress: Progress | None = None) -> Answers | Shares:
        """Ask as Algorithm 1 does, until the paper's own cost is the budget."""
        assert isinstance(plan.mechanism, ConfidentGNMax)
        assert plan.gate is not None
        assert taught.votes is not None
        return answer_as_printed(
            taught.votes,
            plan.mechanism,
            self._checked_budget(),
            plan.ledger,
            plan.gate,
            taught.given.data.required_groups.codes,
        )

    def _guarantee(self, data: FitInputs, ledger: Ledger, partition: Partition) -> Guarantee:
        whole, claimed = super()._guarantee(data, ledger, partition), self._checked_budget()
        assert isinstance(self.answers_, Answers)
        said = (
            f"FairPATE's own accounting claims ({claimed.epsilon!r}, {claimed.delta!r}) for this "
            f"run, and that does not hold: a refusal that reads the noisy winner is charged "
            f"nothing, and costs that depend on the votes decide when to stop; in sound accounting "
            f"the same {self.answers_.n_checks:,} checks and {self.answers_.n_draws:,} noisy "
            f"winners cost epsilon={ledger.spent_epsilon(claimed.delta):.4g} at "
            f"delta={claimed.delta!r}, without the moment of stopping, whose cost nobody knows"
        )
        return as_printed(whole, said)

"""What SF-PATE protects: its relation, the ledger of a run, and the claim."""

from __future__ import annotations

import math
from dataclasses import dataclass

from evenhand.estimators.attribute_privacy import PeopleInputs
from evenhand.estimators.ledgers import open_run
from evenhand.privacy import Budget, BudgetExceeded, Guarantee, Ledger, attribute_of
from evenhand.privacy.gaussian import epsilon_from_mu
from evenhand.privacy.guarantee import delta_warning
from evenhand.privacy.noise import Noise
from evenhand.privacy.relation import GROUP_AND_CLASS_LABEL, GROUP_LABEL
from evenhand.teachers.partition import Partition


@dataclass(frozen=True, kw_only=True)
class Protected:
    """The sensitive attribute of one unit, with or without its class label."""

    whose: str
    """What the unit is called, such as "person"."""
    class_labels: bool
    """Whether class labels are protected as well; features are public always."""

    @property
    def unit(self) -> str:
        """Unit of the guarantee."""
        return attribute_of(self.whose, and_class_label=self.class_labels)

    @property
    def neighbors(self) -> str:
        """Change of the data that the guarantee is about."""
        return GROUP_AND_CLASS_LABEL if self.class_labels else GROUP_LABEL

    def open(
        self, budget: Budget, account: Ledger | None, noise: Noise | None, *, purpose: str
    ) -> Ledger:
        """Open the ledger of a run, alone or within an account of this relation.

        Raises
        ------
        BudgetExceeded
            If the account does not cover the whole budget. Nothing is charged then.
        """
        run = open_run(
            budget,
            account,
            noise,
            unit=self.unit,
            neighbors=self.neighbors,
            way_out=f"Open an account with unit={self.unit!r} and neighbors={self.neighbors!r} for "
            f"runs that protect no more than that.",
            purpose=purpose,
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

    def claim(self, people: PeopleInputs, partition: Partition, run: Ledger) -> Guarantee:
        """Return what a run promises, what it takes as public, and what it does not cover."""
        n = people.data.n_private
        what = "pictures" if people.are_pictures else "features"
        what += "" if self.class_labels else " and class labels"
        whose = (
            "that each row is another person"
            if partition.neighbors == "replace one"
            else f"whose row each is (the {self.whose} of each row)"
        )
        warning = delta_warning(run.budget.delta, n)
        return run.guarantee(
            public=(
                f"the {what} of all {n} rows",
                *people.data.made_by,
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

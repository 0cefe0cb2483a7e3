"""GroupBalancedSampler: minibatches in which every group counts alike, drawn inside a partition."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from evenhand import _checks
from evenhand.privacy import Guarantee, Ledger
from evenhand.privacy.noisy_sum import NoisySum
from evenhand.typing import FloatArray, IntArray

SCOPES: Final = ("partition", "public", "noisy")


@dataclass(frozen=True, kw_only=True)
class GroupBalancedSampler:
    """Draw rows of one teacher's partition so that the groups are balanced.

    Parameters
    ----------
    scope : {"partition", "public", "noisy"}
        What the balance is computed from.

        - "partition": a group is drawn evenly from those that the partition holds, then a row of
          it. Exact balance, at no cost; the default.
        - "public": rows are weighted by one over their group's ``shares``, known to everybody.
        - "noisy": the same with shares that were released through a ledger (``with_noisy_shares``).
    shares : tuple of float, optional
        Share of each group; all but "partition" need them. Greater than 0.
    leave_one_out : bool
        Whether a row's weight is divided by the sum of the weights of all *other* rows (Skare et
        al. 2003; PFGuard's N2), and not by that of all (N1). A partition that holds few rows of a
        group, or none, draws it less often than is even; with N2 those that hold some make up for
        more of it. With many rows both are alike.

    Privacy
    -------
    "partition" and "public" read the partition's own rows and public values; "noisy" reads in
    addition what was released. So a teacher depends on its own partition alone (the disjointness
    lemma), and drawing with replacement inside it costs nothing, whatever the weights.

    References
    ----------
    Kim et al. 2025 (PFGuard, Sections 4.1 and E.4); Skare, Bølviken and Holden 2003.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> groups = np.array([0] * 95 + [1] * 5)
    >>> rows = GroupBalancedSampler().draw(groups, 1000, rng)
    >>> bool(abs(groups[rows].mean() - 0.5) < 0.06)
    True
    """

    scope: str = "partition"
    shares: tuple[float, ...] | None = None
    leave_one_out: bool = False

    def __post_init__(self) -> None:
        _checks.one_of("scope", self.scope, SCOPES)
        if self.scope == "partition" and self.shares is not None:
            raise ValueError("scope='partition' reads its own rows: leave shares out.")
        if self.scope == "public" and self.shares is None:
            raise ValueError("scope='public' needs shares= of the groups, from public knowledge.")
        if self.shares is not None:
            for share in self.shares:
                _checks.positive("share", share, "A group without a share cannot be weighted.")

    @classmethod
    def of(
        cls, given: GroupBalancedSampler | Mapping[str, Any] | None
    ) -> GroupBalancedSampler | None:
        """Take a sampler, none, or a mapping of its settings as files have it."""
        if not isinstance(given, Mapping):
            if given is not None:
                _checks.of_type("sampler", given, cls)
            return given
        shares = given["shares"]
        return cls(
            scope=given["scope"],
            shares=None if shares is None else tuple(shares),
            leave_one_out=given.get("leave_one_out", False),  # older files have none
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; ``of`` reads them."""
        shares = None if self.shares is None else list(self.shares)
        return {"scope": self.scope, "shares": shares, "leave_one_out": self.leave_one_out}

    def with_noisy_shares(
        self,
        groups: IntArray,
        n_groups: int,
        ledger: Ledger,
        *,
        mu_squared: float,
        per_unit: int = 1,
    ) -> GroupBalancedSampler:
        """Release the shares: one noisy histogram of the groups, charged before it is drawn.

        Privacy
        -------
        One record moves one count (L2 1), or two if it is replaced (L2 sqrt(2)); the
        ``per_unit`` records that a unit may have, that many times as much.
        """
        if self.scope != "noisy":
            raise ValueError(f"scope='noisy' releases its shares, this one is {self.scope!r}.")
        moved = {"add or remove one": 1.0, "replace one": 2.0**0.5}[ledger.neighbors]
        moved *= _checks.at_least("per_unit", per_unit, 1)
        mu = _checks.positive("mu_squared", mu_squared) ** 0.5
        mechanism = NoisySum(sigma=moved / mu, l2_sensitivity=moved)
        counts = np.bincount(_checks.codes("groups", groups, n_groups), minlength=n_groups)
        noisy = ledger.release(mechanism, counts[None, :], purpose="group shares for the sampler")
        return self.with_shares_of(noisy[0])

    def with_shares_of(self, counts: FloatArray) -> GroupBalancedSampler:
        """Return the sampler with the shares of released counts; one below 1 counts as 1."""
        held = np.maximum(counts, 1.0)  # so that its weight stays finite
        return replace(self, shares=tuple((held / held.sum()).tolist()))

    def most_teachers(self, n: int, *, each: float = 10.0) -> int:
        """Teachers of whom each holds so many records of the rarest group, by these shares.

        Parameters
        ----------
        n : int
            Records, as far as that is public or released.
        each : float
            Records of the rarest group that a teacher should hold in expectation. With 10 all but
            3 % of the teachers hold five or more; PFGuard's bound (Section 4.2) is 1, with which
            37 % hold none.

        Privacy
        -------
        Reads the shares alone, which are public or were paid for.

        Examples
        --------
        >>> GroupBalancedSampler(scope="public", shares=(0.9, 0.1)).most_teachers(4_000)
        40
        """
        if self.shares is None:
            raise ValueError(
                "The number of teachers follows from shares=, and this sampler has none. Give "
                "public ones, or release them: with_noisy_shares of scope='noisy'."
            )
        records = _checks.at_least("n", n, 1) * min(self.shares) / sum(self.shares)
        return max(1, math.floor(records / _checks.positive("each", each)))

    def draw(self, groups: IntArray, size: int, rng: np.random.Generator) -> IntArray:
        """Draw positions in one partition, with replacement.

        Parameters
        ----------
        groups : ndarray of int64, shape (n_rows_of_the_partition,)
            Group of each of its rows; or any other code that is to be balanced, such as the
            combination of label and group.
        size : int
            How many rows to draw; none from an empty partition.
        rng : Generator
            The teacher's own, so that others draw the same whatever this partition holds.
        """
        size = _checks.at_least("size", size, 0)
        if not len(groups):
            return np.zeros(0, dtype=np.int64)
        probabilities = self.probabilities(groups)
        return rng.choice(len(groups), size=size, p=probabilities).astype(np.int64)

    def probabilities(self, groups: IntArray) -> FloatArray:
        """Return the probability of each row of a partition; they sum to 1."""
        codes = _checks.codes("groups", groups)
        if self.scope == "partition":
            weights = 1.0 / np.bincount(codes)[codes]
        else:
            if self.shares is None:
                raise ValueError("scope='noisy' has no shares yet. Call with_noisy_shares first.")
            _checks.codes("groups", codes, len(self.shares))
            weights = 1.0 / np.array(self.shares)[codes]
        if self.leave_one_out and len(codes) > 1:
            weights = weights / _of_others(weights)
        probabilities: FloatArray = weights / weights.sum()
        return probabilities

    def claim(self, guarantee: Guarantee) -> Guarantee:
        """Return the claim of a run that drew through this sampler."""
        if self.scope == "public":
            public = (*guarantee.public, "the group shares of the sampler")
            return replace(guarantee, public=public)
        return guarantee


def _of_others(weights: FloatArray) -> FloatArray:
    """Return the sum of all other weights, for each; a large one hides no small ones."""
    values, at, counts = np.unique(weights, return_inverse=True, return_counts=True)
    apart = np.where(np.eye(len(values), dtype=bool), counts - 1, counts) @ values
    found: FloatArray = apart[at]
    return found


BALANCED: Final = GroupBalancedSampler()
"""Labels and groups evenly, by what a partition holds itself."""

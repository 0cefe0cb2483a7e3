"""Shares of the groups that everybody may know: from public rows, declared, or released."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from evenhand import _checks, _values
from evenhand.estimators.ledgers import single_ledger, split_epsilon
from evenhand.fairness.groups import GroupCodes, encode_groups
from evenhand.privacy import Budget, Guarantee, Ledger
from evenhand.privacy.gaussian import epsilon_from_mu
from evenhand.privacy.noise import Noise
from evenhand.privacy.table import LAPLACE_ACCOUNTING, LaplaceTable
from evenhand.typing import Array, FloatArray, IntArray

RELEASED: Final = "released"
_MORE: Final = 1.0 + 1e-6  # a budget found by a root search must hold what it is found for
_ROUNDED: Final = 1e-3  # by which declared shares may miss 1


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupShares:
    """Shares of the groups, and what knowing them took."""

    groups: GroupCodes
    """Of the private rows."""
    shares: FloatArray
    """All above 0; each row adds up to 1. Shape (n_strata, n_groups)."""
    left: Budget
    """What the shares left of the budget."""
    ledger: Ledger | None = None
    """The ledger of the table, where it was released."""
    public: tuple[str, ...] = ()
    not_covered: tuple[str, ...] = ()
    """``public`` and ``not_covered``: for the claim."""


def from_public_rows(public: Any, encode: Callable[..., GroupCodes], left: Budget) -> GroupShares:
    """Count the groups of public rows; ``encode(names)`` encodes those of the private rows."""
    known = several(encode_groups(public, argument="sensitive_features_public"))
    return GroupShares(
        groups=encode(known.names),
        shares=(known.sizes / known.sizes.sum())[None, :],
        left=left,
        public=(f"the groups of {len(known)} public rows, and so their shares",),
    )


def declared(
    given: Mapping[Any, Any],
    labels: tuple[Any, ...] | None,
    encode: Callable[..., GroupCodes],
    left: Budget,
) -> GroupShares:
    """Read a mapping of group to share, or with ``labels`` one such mapping for each label."""
    tables = [given] if labels is None else [_of_label(given, label) for label in labels]
    names = encode_groups(list(tables[0])).names
    rows = [_row(table, names) for table in tables]
    return GroupShares(
        groups=several(encode(names)),
        shares=np.array(rows),
        left=left,
        public=("the declared shares of the groups",),
    )


def released(
    groups: GroupCodes, strata: IntArray, n_strata: int, budget: Budget, part: float, noise: Noise
) -> GroupShares:
    """Release the table of strata by groups with a part of epsilon, and read the shares from it."""
    several(groups)
    pure, left = split_epsilon(budget, part)
    run, noisy = release_table(
        np.bincount(strata * groups.n_groups + groups.codes, minlength=n_strata * groups.n_groups),
        pure,
        noise,
        purpose="shares of the groups",
    )
    # A share of 0 would be divided by: a cell holds at least what the noise alone may show.
    cells = np.maximum(noisy, 1.0 / pure.epsilon + 1.0).reshape(n_strata, groups.n_groups)
    return GroupShares(
        groups=groups,
        shares=cells / cells.sum(axis=1, keepdims=True),
        left=left,
        ledger=run,
        public=("the names of the groups",),
    )


def release_table(
    counts: IntArray, budget: Budget, noise: Noise, *, purpose: str, account: Ledger | None = None
) -> tuple[Ledger, FloatArray]:
    """Charge a ledger of its own for one noisy table of ``counts`` (n_cells,), and release it.

    With an ``account``, which draws its own noise, the ledger is a run of it: the table costs the
    account what adds up at every delta, and the budget is of what the table alone promises.
    """
    if account is not None:
        account.require("record", "add or remove one", "Give the account of another data set.")
        table = replace(LaplaceTable.within(budget), delta=None)
        run = account.run(cost_of_table(budget, account), purpose=purpose)
        return run, run.release(table, counts[None, :], purpose=purpose)[0]
    run = single_ledger(budget, noise)
    noisy = run.release(LaplaceTable.within(budget), counts[None, :], purpose=purpose)
    return run, noisy[0]


def cost_of_table(budget: Budget, account: Ledger) -> Budget:
    """Return what one noisy table takes of an account, where it adds up with other releases."""
    table = replace(LaplaceTable.within(budget), delta=None)
    mu = table.mu_squared(account.noise) ** 0.5
    return Budget(epsilon=epsilon_from_mu(mu, budget.delta) * _MORE, delta=budget.delta)


def release_decisions(
    groups: GroupCodes, y: IntArray, decided: IntArray, n_classes: int, budget: Budget, noise: Noise
) -> tuple[Ledger, FloatArray]:
    """Release a noisy table of group, true label and decision; see ``release_table``."""
    shape = (groups.n_groups, n_classes, n_classes)
    cells = np.ravel_multi_index((groups.codes, y, decided), shape)
    counts = np.bincount(cells, minlength=int(np.prod(shape))).astype(np.int64)
    run, noisy = release_table(counts, budget, noise, purpose="table of group, label and decision")
    return run, noisy.reshape(shape)


def pure_claim(run: Ledger, epsilon: float | None = None) -> Guarantee:
    """Return what a ledger of ``release_table`` promises: its epsilon, with delta 0.

    ``epsilon`` is that of the table, where the ledger is a run of an account.
    """
    noise = run.noise
    return Guarantee(
        epsilon=run.budget.epsilon if epsilon is None else epsilon,
        delta=0.0,
        unit=run.unit,
        neighbors=run.neighbors,
        noise=noise.name,
        accounting=LAPLACE_ACCOUNTING,
        public=(),
        not_covered=(),
        holds=noise.protects,
        reason="" if noise.protects else "the noise came from a seed and can be removed",
    )


def several(groups: GroupCodes) -> GroupCodes:
    """Return ``groups`` if there is something to compare."""
    if groups.n_groups < 2:
        raise ValueError(
            f"There is one group only, {_values.quoted(groups.names[0])}: there is nothing to "
            f"compare it with. Check the sensitive column, or use DPSGDClassifier without "
            f"fairness= and penalty=."
        )
    return groups


def _of_label(given: Mapping[Any, Any], label: Any) -> Mapping[Any, Any]:
    key = label.item() if isinstance(label, np.generic) else label
    found = given.get(key)
    if not isinstance(found, Mapping):
        raise ValueError(
            f"group_shares must hold a mapping of group to share for each label; for "
            f"{_values.quoted(key)} it holds {found!r}. Its keys are {list(given)}. Or release "
            f"them: group_shares='released'."
        )
    return found


def _row(table: Mapping[Any, Any], names: tuple[str, ...]) -> FloatArray:
    """Shares of one mapping, in the order of ``names``."""
    keys = encode_groups(list(table), names=names)
    row: Array = np.zeros(len(names))
    for code, value in zip(keys.codes, table.values(), strict=True):
        row[code] = _checks.open_unit("a share in group_shares", value)
    total = float(row.sum())
    if not row.all() or abs(total - 1.0) > _ROUNDED:
        raise ValueError(
            f"group_shares must give every group a share, together 1, got {dict(table)!r} "
            f"(together {total:.6g})."
        )
    return row / total

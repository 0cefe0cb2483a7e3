"""The account of a data set, over all runs: opened, and its state in numbers and words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from evenhand.privacy import Ledger

OF_OWNERS: Final = {"asked": "votes of owners"}


def require_whole(ledger: str | None, epsilon: float | None) -> None:
    """Refuse half an account, before any file is read."""
    if (ledger is None) != (epsilon is None):
        absent = "--ledger" if ledger is None else "--account-epsilon"
        raise ValueError(
            f"An account needs --ledger and --account-epsilon; {absent} is missing. Give both, "
            f"or neither for a run on its own."
        )


def opened(
    given: Any,
    facts: Mapping[str, str | int],
    *,
    delta: float | None = None,
    account: str | None = None,
    **about: Any,
) -> Ledger | None:
    """Open the account that a command names; None if it names none.

    ``facts`` say of which records it is, and ``about`` whose they are and how noise is drawn.
    """
    if given.ledger is None or given.account_epsilon is None:
        return None
    from evenhand.privacy import Budget, DatabaseStore, Ledger

    return Ledger(
        Budget(epsilon=given.account_epsilon, delta=given.delta if delta is None else delta),
        store=DatabaseStore(given.ledger),
        account=given.account if account is None else account,
        facts=facts,
        **about,
    )


def state_of(ledger: Ledger) -> dict[str, Any]:
    """Return the state of the account for a result. All of it is public."""
    return {
        "name": ledger.account,
        "ledger": str(ledger.store),
        "epsilon": ledger.budget.epsilon,
        "delta": ledger.budget.delta,
        "epsilon_spent": ledger.spent_epsilon(ledger.budget.delta),
        "epsilon_left": epsilon_left(ledger),
    }


def in_words(ledger: Ledger) -> str:
    """Say in one sentence what the account has left."""
    state = state_of(ledger)
    return (
        f"The account {state['name']!r} has spent epsilon={state['epsilon_spent']:.3f} of "
        f"{state['epsilon']:g} at delta={state['delta']:g}; what is left is worth "
        f"epsilon={state['epsilon_left']:.3f} on its own."
    )


def refusal(ledger: Ledger, why: object) -> str:
    """Say that the account, and not the run's own budget, is what does not suffice."""
    return (
        f"The account {ledger.account!r} in {ledger.store} is spent: epsilon="
        f"{ledger.spent_epsilon(ledger.budget.delta):.3f} of {ledger.budget.epsilon:g} is gone, "
        f"and the rest does not cover this run. More teachers make an answer cheaper; further "
        f"data need an account of their own. ({why})"
    )


def epsilon_left(ledger: Ledger) -> float:
    """Epsilon that what is left would be worth on its own."""
    from evenhand.privacy.gaussian import epsilon_from_mu

    return epsilon_from_mu(ledger.remaining**0.5, ledger.budget.delta) if ledger.remaining else 0.0

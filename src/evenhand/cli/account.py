"""The account of a data set, which several runs share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.cli import vocabulary
from evenhand.cli.train_settings import relation_of

if TYPE_CHECKING:
    from evenhand.cli.tables import TrainingTables
    from evenhand.cli.train_options import TrainOptions
    from evenhand.privacy import Ledger


def check(given: TrainOptions) -> None:
    """Refuse half an account, before any file is read."""
    if (given.ledger is None) != (given.account_epsilon is None):
        absent = "--ledger" if given.ledger is None else "--account-epsilon"
        raise ValueError(
            f"An account needs --ledger and --account-epsilon; {absent} is missing. Give both, "
            f"or neither for a run on its own."
        )
    if given.ledger is not None and given.public_fraction is not None and given.seed is None:
        raise ValueError(
            "An account with --public-fraction needs --seed: without it every run would set "
            "other rows aside, and soon each row had been public once."
        )


def open_account(given: TrainOptions, tables: TrainingTables) -> Ledger | None:
    """Open the account, or check that the one on record guards the same data set."""
    if given.ledger is None or given.account_epsilon is None:
        return None
    from evenhand.privacy import Budget, DatabaseStore, Ledger

    facts: dict[str, str | int] = {
        "columns": ", ".join(sorted(tables.columns)),
        "label": given.label,
        "sensitive": ", ".join(given.sensitive or ()),
        "unit column": given.unit or "",
        "public rows": "a table of their own"
        if given.public_fraction is None
        else f"{given.public_fraction:g} of the table, seed {given.seed}",
    }
    unit, neighbors = relation_of(given)
    if neighbors != "add or remove one":  # else the number of records is private
        facts["records"] = len(tables.X)
    if "://" not in given.ledger and not Path(given.ledger).absolute().parent.is_dir():
        raise FileNotFoundError(
            f"The folder of the ledger {given.ledger} does not exist. Make it first; a ledger is "
            f"kept over all runs, so choose a place that stays."
        )
    return Ledger(
        Budget(epsilon=given.account_epsilon, delta=given.delta),
        noise=vocabulary.noise(given.noise or "exact"),
        store=DatabaseStore(given.ledger),
        account=given.account,
        facts=facts,
        unit=unit,
        neighbors=neighbors,
    )


def summary(ledger: Ledger) -> dict[str, Any]:
    """Return the state of the account for a result. All of it is public."""
    return {
        "name": ledger.account,
        "ledger": str(ledger.store),
        "epsilon": ledger.budget.epsilon,
        "delta": ledger.budget.delta,
        "epsilon_spent": ledger.spent_epsilon(ledger.budget.delta),
        "epsilon_left": epsilon_left(ledger),
    }


def sentence(ledger: Ledger) -> str:
    """Say in one sentence what the account has left."""
    state = summary(ledger)
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
        f"and the rest does not cover one answer of this run. More teachers make an answer "
        f"cheaper; further data need an account of their own. ({why})"
    )


def epsilon_left(ledger: Ledger) -> float:
    """Epsilon that what is left would be worth on its own."""
    from evenhand.privacy.gaussian import epsilon_from_mu

    return epsilon_from_mu(ledger.remaining**0.5, ledger.budget.delta) if ledger.remaining else 0.0

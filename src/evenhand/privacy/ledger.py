"""The only way to noise: a ledger charges a mechanism's cost, and grants its draws."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from evenhand._checks import at_least, of_type, open_unit, text
from evenhand.privacy.budget import Budget
from evenhand.privacy.gaussian import SLACK, epsilon_from_mu
from evenhand.privacy.grant import Grant
from evenhand.privacy.guarantee import EXACT_GAUSSIAN, Guarantee
from evenhand.privacy.ledger_store import (
    SCHEMA_VERSION,
    Account,
    Charge,
    Entry,
    Fact,
    MemoryStore,
    OverLimit,
    Store,
    mu_squared_of,
    units_down,
    units_up,
)
from evenhand.privacy.mechanism import Decider, Mechanism, T_co
from evenhand.privacy.noise import DiscreteNoise, Noise, checked_noise
from evenhand.privacy.relation import check_relation, is_attribute
from evenhand.typing import Array, ArrayLike

_ROUNDING = 1e-8
"""A plan may pass what is left by this share of itself: budgets are rounded down."""
_SINGLE = "valid only at delta"
_A_BUDGET = "For example Budget(epsilon=1.0, delta=1e-6)."
_OWN_FACTS = ("epsilon", "delta", "unit", "neighbors", "test_mode", "schema_version", _SINGLE)


class BudgetExceeded(Exception):
    """A release does not fit the budget. Nothing was charged and nothing was drawn."""


class Ledger:
    """An account of what was spent on what, and the only way to noise.

    Parameters
    ----------
    budget : Budget
        Limit on everything that is charged.
    noise : Noise, optional
        Source of randomness; exact discrete noise if not given.
    store : Store, optional
        Where the account is kept; in memory if not given.
    account : str
        Name of the account in the store.
    facts : mapping of str to str or int
        Public facts that say whose data the account guards (number of records, columns). They are
        on record from the first charge on, and opening the account with others is an error then.
        Never a hash of private data: that is a release.
    unit : str
        Whose data are protected: one "record", one "person"; ``attribute_of("person")`` where
        only the sensitive attribute is.
    neighbors : str
        One of ``evenhand.privacy.NEIGHBORS``. A mechanism whose cost is about another is refused.
    single : bool
        The account of one release whose cost is known at the budget's delta alone
        (``Mechanism.delta``). It adds up with nothing, so the release takes the whole account.

    Privacy
    -------
    Costs are Gaussian DP parameters that do not depend on the data; ``mu**2`` adds up, and stopping
    when the next charge would pass ``budget.mu_squared`` loses nothing, however the charges were
    chosen (Koskela, Tobaben and Honkela 2023). The guarantee is the budget's, also when less was
    spent. Charging comes first: a crash in between over-counts.

    Examples
    --------
    >>> from evenhand.privacy import GNMax, SeededNoise
    >>> ledger = Ledger(Budget(epsilon=3.0, delta=1e-5), noise=SeededNoise(0))
    >>> ledger.release(GNMax(sigma=40.0), [[190, 60], [20, 230]], purpose="two answers")
    array([0, 1])
    >>> round(ledger.spent, 6), ledger.affordable(GNMax(sigma=40.0))
    (0.0025, 411)
    """

    def __init__(
        self,
        budget: Budget,
        *,
        noise: Noise | None = None,
        store: Store | None = None,
        account: str = "default",
        facts: Mapping[str, str | int] | None = None,
        unit: str = "record",
        neighbors: str = "replace one",
        single: bool = False,
    ) -> None:
        of_type("facts", {} if facts is None else facts, Mapping, 'For example {"n_records": 9}.')
        own = sorted(set(facts or {}) & {*_OWN_FACTS, "within"})
        if own:
            raise ValueError(f"facts may not use the ledger's own names, got {', '.join(own)}.")
        of_type("budget", budget, Budget, _A_BUDGET)
        self.budget = budget
        self.noise = DiscreteNoise() if noise is None else checked_noise(noise)
        if store is not None and not hasattr(store, "charge"):
            raise TypeError(f"store must be a store, got {store!r:.60}. Pass DatabaseStore(FILE).")
        self.store: Store = MemoryStore() if store is None else store
        self.account = _written("account", account)
        check_relation(unit, neighbors)
        self.unit = unit
        self.neighbors = neighbors
        self.facts = {str(key): _fact(str(key), value) for key, value in (facts or {}).items()}
        self.single = single
        if single:
            self.facts[_SINGLE] = repr(budget.delta)
        self._prices: dict[Mechanism, tuple[str, int]] = {}
        self._open(within=None)

    @property
    def spent(self) -> float:
        """Sum of ``mu**2`` charged so far, open reservations in full."""
        return mu_squared_of(self.store.spent(self.account))

    @property
    def remaining(self) -> float:
        """Sum of ``mu**2`` that can still be charged, here and in the ledgers around."""
        return mu_squared_of(max(0, self.store.remaining(self._described)))

    @property
    def entries(self) -> tuple[Entry, ...]:
        """What was charged, oldest first, that of runs included."""
        return self.store.entries(self.account)

    def affordable(self, *mechanisms: Mechanism) -> int:
        """How many joint uses of these mechanisms still fit."""
        if not mechanisms:
            raise ValueError("Name at least one mechanism: the price of a use is theirs.")
        together = sum(self._price(mechanism)[1] for mechanism in mechanisms)
        return max(0, self.store.remaining(self._described)) // together

    def release(self, mechanism: Decider[T_co], counts: ArrayLike, *, purpose: str) -> T_co:
        """Charge one use per row of ``counts``, draw the noise, and return what is decided.

        Raises
        ------
        BudgetExceeded
            If it does not fit; nothing is charged then and nothing drawn.
        TypeError
            If the counts are no whole numbers; nothing is charged then either.
        """
        rows: Array = np.asarray(counts)
        if rows.ndim != 2 or not rows.shape[1]:
            raise ValueError(f"counts must have shape (n, n_classes), got {rows.shape}.")
        if rows.size and not np.issubdtype(rows.dtype, np.integer):
            raise TypeError(
                f"counts must hold whole numbers of votes, records or small units, got dtype "
                f"{rows.dtype}: sensitivity and discrete noise are stated for such. Round every "
                f"contribution towards zero, before it is added. Nothing was charged."
            )
        with self.reserve({mechanism: len(rows)}, purpose=purpose) as grant:
            return mechanism.decide(rows, grant.draw(mechanism, rows.shape[1]))

    def reserve(self, uses: Mapping[Any, int], *, purpose: str) -> Grant:
        """Charge the worst case in full, at once or not at all, before any noise exists.

        Parameters
        ----------
        uses : mapping of mechanism to int
            Uses that may be needed. ``Grant.settle`` refunds those that were not.
        purpose : str
            Why; it stands in the ledger and in the report.

        Raises
        ------
        BudgetExceeded
            If it does not fit; everything is as it was.
        ValueError
            If a mechanism's cost is about other neighbors, or does not add up with what an account
            may hold besides.
        """
        of_type("uses", uses, Mapping, "Name how often each mechanism is used: {mechanism: 3}.")
        _written("purpose", purpose)
        charges = []
        for mechanism, n in uses.items():
            words, units = self._price(mechanism)
            n = at_least("uses", n, 0)
            charges.append(Charge(mechanism=words, n_uses=n, units_each=units, purpose=purpose))
        try:
            ids = self.store.charge(self._described, charges)
        except OverLimit as over:
            raise BudgetExceeded(self._refusal(over, charges)) from None
        return Grant(self, dict(zip(uses, zip(charges, ids, strict=True), strict=True)))

    def require(self, unit: str, neighbors: str, way_out: str) -> None:
        """Refuse a run whose costs are about another unit, or another change of the data.

        Raises
        ------
        ValueError
            Naming both, and ending in ``way_out``.
        """
        if (self.unit, self.neighbors) == (unit, neighbors):
            return
        why = ""
        if is_attribute(self.unit) != is_attribute(unit):
            why = " Privacy of an attribute alone is not privacy of the record."
        raise ValueError(
            f"The ledger counts for {self.neighbors} {self.unit}, this run for {neighbors} {unit}; "
            f"their costs do not add up.{why} {way_out}"
        )

    def run(self, budget: Budget, *, purpose: str, noise: Noise | None = None) -> Ledger:
        """Open a ledger inside this one: its charges must fit both budgets.

        Use it for one model trained under the account of a data set. Nothing is set aside for it.
        ``noise`` is that of this run, where it is not that of the account: repeatable noise is
        refused where the account promises privacy.
        """
        if self.single:
            raise ValueError(f"{_only(self.budget)} It holds no runs. Open another account.")
        of_type("budget", budget, Budget, _A_BUDGET)
        if noise is not None and not checked_noise(noise).protects and self.noise.protects:
            raise ValueError(
                f"{noise!r} protects nobody, and the account {self.account!r} around this run says "
                f"that all of its releases are private. Open a test account with that noise."
            )
        inner = Ledger.__new__(Ledger)
        inner.__dict__.update(self.__dict__)
        inner.budget = budget
        if noise is not None:  # other prices for the same mechanisms
            inner.noise, inner._prices = noise, {}
        inner.account = f"{self.account}/{_written('purpose', purpose)}#{secrets.token_hex(4)}"
        inner._open(within=self._described)
        return inner

    @contextmanager
    def set_aside(self, planned: Mapping[str, float]) -> Iterator[Ledger]:
        """Charge a whole plan at once or not at all, and open a ledger that spends it.

        Of two runs that share an account, in one process or in several, only one gets what is there
        for one. What is released inside stands in the ledger that is opened, in memory; here
        stands a line for each purpose, as it was planned: what is released first may leave one out
        and give its part to another (``BudgetPlan.joined``), and the total stays. Leaving with an
        exception before any noise was drawn gives all of it back; afterwards, or after a crash, all
        of it stays charged.

        Parameters
        ----------
        planned : mapping of str to float
            ``mu**2`` by purpose.

        Raises
        ------
        BudgetExceeded
            With what is left; nothing was charged then.
        """
        if self.single:
            raise ValueError(f"{_only(self.budget)} It holds no plan. Open another account.")
        left = self.store.remaining(self._described)
        units = {purpose: units_down(mu_squared) for purpose, mu_squared in planned.items()}
        over = sum(units.values()) - left
        if 0 < over < sum(units.values()) * _ROUNDING:
            units[max(units, key=units.__getitem__)] -= over
        charges = [
            Charge(mechanism="SetAside()", n_uses=1, units_each=each, purpose=purpose)
            for purpose, each in units.items()
        ]
        try:
            ids = self.store.charge(self._described, charges)
        except OverLimit as full:
            there, needed = (
                epsilon_from_mu(mu_squared_of(max(0, some)) ** 0.5, self.budget.delta)
                for some in (full.limit - full.spent, full.asked)
            )
            raise BudgetExceeded(
                f"The account {full.account!r} has epsilon={there:.3f} left at "
                f"delta={self.budget.delta:g}, and this fit needs {needed:.3g}. Nothing was "
                f"charged or drawn. Take another account, or a smaller budget."
            ) from None
        inner = self._spending(sum(units.values()))
        try:
            yield inner
        except BaseException:
            if not inner.entries:
                self.store.settle(self.account, dict.fromkeys(ids, 0))
            raise
        self.store.settle(self.account, dict.fromkeys(ids, 1))

    def spent_epsilon(self, delta: float) -> float:
        """Epsilon of what was charged so far, at ``delta``.

        It informs; it is not the guarantee. How much was spent can depend on earlier answers, and
        what was promised for every course of events is the budget. A ``single`` ledger knows no
        delta below its own.
        """
        open_unit("delta", delta)
        if self.single:
            if delta < self.budget.delta:
                raise ValueError(f"{_only(self.budget)} Ask at that delta, or at a larger one.")
            delta = self.budget.delta
        return epsilon_from_mu(self.spent**0.5, open_unit("delta", delta))

    def guarantee(
        self,
        *,
        public: tuple[str, ...] = (),
        not_covered: tuple[str, ...] = (),
        warnings: tuple[str, ...] = (),
    ) -> Guarantee:
        """Return what this ledger's budget promises, whatever was spent of it."""
        return Guarantee(
            epsilon=self.budget.epsilon,
            delta=self.budget.delta,
            unit=self.unit,
            neighbors=self.neighbors,
            noise=self.noise.name,
            accounting=EXACT_GAUSSIAN,
            public=public,
            not_covered=not_covered,
            warnings=warnings,
            holds=self.noise.protects,
            mu_squared=None if self.single else self.budget.mu_squared,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the account as plain values for a report. All of them are public."""
        return {
            "account": self.account,
            "unit": self.unit,
            "neighbors": self.neighbors,
            "facts": dict(self.facts),
            "noise": self.noise.name,
            "protects": self.noise.protects,
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "mu_squared_budget": self.budget.mu_squared,
            "mu_squared_spent": self.spent,
            "epsilon_spent": self.spent_epsilon(self.budget.delta),
            "entries": [
                {
                    "purpose": entry.purpose,
                    "mechanism": entry.mechanism,
                    "n_uses": entry.n_uses,
                    "mu_squared": entry.mu_squared,
                    "settled": entry.settled,
                    "account": entry.account,
                    "charged_at": entry.charged_at,
                }
                for entry in self.entries
            ],
        }

    def __repr__(self) -> str:
        return (
            f"Ledger({self.budget!r}, account={self.account!r}, noise={self.noise!r}, "
            f"spent={self.spent:.6g} of mu_squared={self.budget.mu_squared:.6g})"
        )

    def _open(self, *, within: Account | None, limit: int | None = None) -> None:
        facts: dict[str, Fact] = {
            **self.facts,
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "unit": self.unit,
            "neighbors": self.neighbors,
            "test_mode": not self.noise.protects,
            "schema_version": SCHEMA_VERSION,
        }
        # mu comes from a root search: SLACK keeps its last digits from passing the budget.
        if limit is None:
            limit = units_down(self.budget.mu_squared * (1.0 - SLACK))
        self._described = Account(name=self.account, limit=limit, facts=facts, within=within)
        self.store.open(self._described)

    def _spending(self, units: int) -> Ledger:
        """Return a ledger in memory, of costs that add up, that spends what is charged here."""
        inner = Ledger.__new__(Ledger)
        inner.__dict__.update(self.__dict__)
        inner.single, inner._prices = False, {}
        inner.facts = {name: fact for name, fact in self.facts.items() if name != _SINGLE}
        inner.store = MemoryStore()
        inner._open(within=None, limit=units)
        return inner

    def _price(self, mechanism: Mechanism) -> tuple[str, int]:
        """Words and units of one use, found once: a mechanism is a value and cannot change."""
        price = self._prices.get(mechanism)
        if price is None:
            self._check_company(mechanism)
            mu_squared = mechanism.mu_squared(self.noise)
            if not 0 < mu_squared < float("inf"):
                raise ValueError(
                    f"{mechanism!r} must cost a finite mu_squared > 0, got {mu_squared!r}. "
                    f"Something that costs nothing needs no ledger."
                )
            units = units_up(mu_squared)
            # Nothing may join a single release: it takes all there is, and the store sees to it.
            units = max(units, self._described.limit) if self.single else units
            price = self._prices[mechanism] = (repr(mechanism), units)
        return price

    def _check_company(self, mechanism: Mechanism) -> None:
        """Refuse a cost that is about other neighbors, or that does not add up here."""
        for name in ("neighbors", "delta"):
            if not hasattr(mechanism, name):
                raise TypeError(
                    f"{mechanism!r} does not state {name!r}. A mechanism says for which neighbors "
                    f"its cost holds, and its delta if it holds at one only; see Mechanism."
                )
        if self.neighbors not in mechanism.neighbors:
            raise ValueError(
                f"The cost of {mechanism!r} is about neighbors {' or '.join(mechanism.neighbors)}, "
                f"and this ledger counts for {self.neighbors}. Open another account with those."
            )
        if mechanism.delta is None:
            if self.single:
                raise ValueError(
                    f"{_only(self.budget)} The cost of {mechanism!r} adds up with others: charge "
                    f"it to a ledger without single=True."
                )
        elif not self.single:
            raise ValueError(
                f"The cost of {mechanism!r} is known at delta={mechanism.delta!r} alone, and adds "
                f"up with no other. Open an account for it: Ledger(budget, single=True). A table "
                f"or a randomised response without delta= costs more, and adds up."
            )
        elif mechanism.delta != self.budget.delta:
            raise ValueError(
                f"The cost of {mechanism!r} is known at delta={mechanism.delta!r} alone, and this "
                f"ledger's budget is for delta={self.budget.delta!r}. Use one delta for both."
            )

    def _refusal(self, over: OverLimit, charges: list[Charge]) -> str:
        asked = " and ".join(f"{charge.mechanism} on {charge.n_uses} queries" for charge in charges)
        if over.account == self.account:
            budget = f"the budget of {self.budget.epsilon}"
        else:
            most = epsilon_from_mu(mu_squared_of(over.limit) ** 0.5, self.budget.delta)
            budget = f"the {most:.3f} that the account {over.account!r} around it allows"
        delta = self.budget.delta
        mu = mu_squared_of(over.spent + over.asked) ** 0.5
        return (
            f"{asked} would bring epsilon to {epsilon_from_mu(mu, delta):.3f}, above {budget} at "
            f"delta={delta}. Ask fewer queries, or raise sigma. Nothing was charged or drawn."
        )


def _only(budget: Budget) -> str:
    return f"This ledger is for one release that is known at delta={budget.delta!r} alone."


def _written(name: str, value: str) -> str:
    """Return a text that every database can keep."""
    text(name, value)
    if "\0" in value or any("\ud800" <= letter <= "\udfff" for letter in value):
        raise ValueError(f"{name} must be a text without NUL and half letters, got {value!r:.60}.")
    return value


def _fact(name: str, value: object) -> str | int:
    if isinstance(value, np.integer):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise TypeError(
            f"facts must be texts or whole numbers, got {name}={value!r} ({type(value).__name__})."
        )
    return value

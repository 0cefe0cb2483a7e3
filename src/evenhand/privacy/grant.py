"""The only door to noise: uses of mechanisms that a ledger has charged, drawn once each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from evenhand._checks import at_least, did_you_mean
from evenhand.privacy.ledger_store import Charge, units_down
from evenhand.privacy.mechanism import JointMechanism, Mechanism, SteppedMechanism
from evenhand.typing import Array

if TYPE_CHECKING:
    from evenhand.privacy.ledger import Ledger


class Grant:
    """Uses that are charged and may be drawn, once per mechanism.

    As a context manager: leaving it without an exception settles what ``settle`` did not;
    mechanisms that were drawn count in full, those never drawn cost nothing. After an exception,
    or a crash, everything stays charged.
    """

    def __init__(self, ledger: Ledger, charged: dict[Any, tuple[Charge, int]]) -> None:
        self._ledger = ledger
        self._charged = charged
        self._undrawn = dict(charged)
        self._opened: dict[Any, object] = {}
        self._settled = False
        self._left: int | None = None

    @property
    def undrawn(self) -> tuple[Any, ...]:
        """Mechanisms whose own noise was not drawn; what stands beside them may have been."""
        return tuple(self._undrawn)

    def affordable(self, used: Mapping[Any, int]) -> int:
        """How many joint uses of its mechanisms are left, if these many of each were used so far.

        Those of the grant that were not used are counted, and what the account had left when this
        was first asked. A number of public facts alone, as ``Ledger.affordable``.
        """
        if self._left is None:
            ledger = self._ledger
            self._left = max(0, ledger.store.remaining(ledger._described))
        charges = [(charge, used[mechanism]) for mechanism, (charge, _) in self._charged.items()]
        unused = sum((charge.n_uses - n) * charge.units_each for charge, n in charges)
        return (self._left + unused) // sum(charge.units_each for charge, _ in charges)

    def draw(self, mechanism: Mechanism, n_classes: int) -> Array:
        """Draw the noise for all reserved uses of ``mechanism``."""
        n_uses = self._begin(mechanism, n_classes)
        return mechanism.draw_noise(self._ledger.noise, n_uses, n_classes)

    def draw_by_step(self, mechanism: SteppedMechanism, n_classes: int) -> Iterator[Array]:
        """Return the noise of a mechanism of many steps, drawn when each step asks for its own.

        What all steps release need not fit into memory together. The use counts in full from here
        on, however many steps ask.
        """
        n_uses = self._begin(mechanism, n_classes)
        if n_uses != 1:
            raise ValueError(f"One run at a time is drawn by step, and {n_uses} are reserved.")
        return mechanism.draw_noise_by_step(self._ledger.noise, n_classes)

    def drawn_elsewhere(self, mechanism: Mechanism, n_classes: int) -> None:
        """Count the noise of ``mechanism`` as drawn: others draw it, each a share."""
        self._begin(mechanism, n_classes)

    def beside(self, mechanism: JointMechanism) -> Ledger:
        """Open the ledger of the Gaussian releases that one use of ``mechanism`` pays for.

        It holds ``mechanism.beside`` of ``mu**2``, is opened once, and its costs add up as those of
        any ledger. The use counts in full from here on, whatever is released of it.
        """
        charge, _ = self._of(mechanism)
        if self._settled:
            raise RuntimeError("This grant is settled: reserve again before releasing.")
        if charge.n_uses != 1:
            raise ValueError(
                f"One use at a time is released beside, and {charge.n_uses} are reserved."
            )
        if not mechanism.beside > 0:
            raise ValueError(
                f"{mechanism!r} pays for nothing beside its own draws. Make it with beside= above "
                f"0, the mu_squared of what is to be released."
            )
        # One step, so that of two threads only one opens it.
        if self._opened.setdefault(mechanism, marker := object()) is not marker:
            raise RuntimeError(
                f"What stands beside {mechanism!r} was opened before: it is paid for once."
            )
        return self._ledger._spending(units_down(mechanism.beside))

    def _begin(self, mechanism: Mechanism, n_classes: int) -> int:
        """Count a mechanism as drawn, once, and return its reserved uses."""
        charge, _ = self._of(mechanism)
        at_least("n_classes", n_classes, 1)
        if self._settled:
            raise RuntimeError("This grant is settled: reserve again before drawing.")
        # One step, so that of two threads only one draws.
        if self._undrawn.pop(mechanism, None) is None:
            raise RuntimeError(
                f"The noise of {mechanism!r} was drawn before: one use is one draw. Reserve more."
            )
        return charge.n_uses

    def settle(self, used: Mapping[Any, int]) -> None:
        """Keep the charge for ``used`` and refund the rest.

        Parameters
        ----------
        used : mapping of mechanism to int
            Uses whose results left, for every mechanism that was drawn. Only public outcomes may
            decide it: how many checks passed, never a vote.
        """
        if self._settled:
            raise RuntimeError("This grant is settled: what was refunded cannot be changed.")
        forgotten = [repr(m) for m in self._drawn() if m not in used]
        if forgotten:
            raise ValueError(
                f"used must say how often each mechanism that was drawn was used; "
                f"missing: {', '.join(forgotten)}."
            )
        for mechanism, n in used.items():
            charge, _ = self._of(mechanism)
            at_least("used", n, 0)
            allowed = charge.n_uses if mechanism in self._drawn() else 0
            if n > allowed:
                never = "" if allowed else " (its noise was never drawn)"
                raise ValueError(
                    f"used of {mechanism!r} must be at most {allowed}{never}, got {n}. Reserve the "
                    f"worst case first."
                )
        self._ledger.store.settle(
            self._ledger.account,
            {entry: used.get(mechanism, 0) for mechanism, (_, entry) in self._charged.items()},
        )
        self._settled = True

    def __enter__(self) -> Grant:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None and not self._settled:
            self.settle({m: self._charged[m][0].n_uses for m in self._drawn()})

    def _drawn(self) -> list[Any]:
        """Return those of which something was drawn, or may have been beside."""
        return [m for m in self._charged if m not in self._undrawn or m in self._opened]

    def _of(self, mechanism: Mechanism) -> tuple[Charge, int]:
        try:
            return self._charged[mechanism]
        except KeyError:
            raise KeyError(
                f"{mechanism!r} is not part of this grant, which holds "
                f"{', '.join(map(repr, self._charged))}.{did_you_mean(mechanism, self._charged)}"
            ) from None

"""The private pictures as a payload: they are read as they are, and nothing need be released."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evenhand.generators.budget_plan import BudgetPlan
from evenhand.generators.images.codec import EncodedImages, ImageCodec
from evenhand.generators.payload import Encoding
from evenhand.privacy import Ledger


@dataclass(frozen=True, kw_only=True, eq=False)
class PrivateImages:
    """Private pictures that were read; see ``Payload``.

    Parameters
    ----------
    codec : ImageCodec
    known : EncodedImages
        The pictures. How many there are, and their size, may be known before the first release.
    notes : tuple of str
        How missing groups were predicted.
    """

    codec: ImageCodec
    known: EncodedImages
    notes: tuple[str, ...] = ()

    @property
    def public(self) -> tuple[str, ...]:
        """What the claim takes as public."""
        return (
            "the size of the pictures",
            "the values of the labels",
            *(("the values of the groups",) if self.codec.sensitive else ()),
            *(("the reference pictures with their groups",) if self.notes else ()),
        )

    @property
    def delta_aside(self) -> tuple[float, str]:
        """Nothing is released beside the ledger."""
        return 0.0, ""

    def check(self, ledger: Ledger, delta: float) -> None:
        """Nothing is left to refuse: pictures were checked when they were read."""

    def shares(self, of_method: Mapping[str, float]) -> dict[str, float]:
        """Return the public plan: the method has the whole budget."""
        return dict(of_method)

    def encode(self, plan: BudgetPlan, delta: float) -> Encoding:
        """Return the pictures as they were read."""
        return Encoding(codec=self.codec, data=self.known, notes=self.notes)

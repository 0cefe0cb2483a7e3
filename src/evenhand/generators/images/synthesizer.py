"""What every generator of images shares: it is fitted to pictures, and draws pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Self

from evenhand import _checks, _values
from evenhand.generators.budget_plan import BudgetPlan
from evenhand.generators.images.codec import EncodedImages, ImageCodec, read_images
from evenhand.generators.images.evaluation import ImageEvaluation, evaluate_images
from evenhand.generators.images.predicted_groups import GroupReference
from evenhand.generators.memory import require_memory
from evenhand.generators.payload import Encoding, Payload, Progress
from evenhand.generators.synthesizer import Synthesizer
from evenhand.privacy import Budget
from evenhand.privacy.ledger_store import Store
from evenhand.typing import ArrayLike

COUNTS: Final = "number of pictures by label and group"
CONDITIONS: Final = ("label+group", "label")


@dataclass(frozen=True, kw_only=True, eq=False)
class PrivateImages(Payload):
    """Private pictures that were read; see ``Payload``."""

    codec: ImageCodec
    known: EncodedImages
    """The pictures. How many there are, and their size, may be known before the first release."""
    reference: GroupReference | None = None
    """By which missing groups were predicted."""

    @property
    def public(self) -> tuple[str, ...]:
        """What the claim takes as public."""
        return (
            "the size of the pictures",
            "the values of the labels",
            *(("the values of the groups",) if self.codec.sensitive else ()),
            *((self.reference.public,) if self.reference else ()),
        )

    @property
    def public_codec(self) -> ImageCodec:
        """What the pictures look like."""
        return self.codec

    def encode(self, plan: BudgetPlan, delta: float) -> Encoding:
        """Return the pictures as they were read."""
        notes = (self.reference.note,) if self.reference else ()
        return Encoding(codec=self.codec, data=self.known, notes=notes)


@dataclass(eq=False, repr=False, kw_only=True)
class ImageSynthesizer(Synthesizer):
    """A generator of pictures under one claim; see ``Synthesizer``.

    ``_learn`` and ``_foresee`` are given ``EncodedImages``, and ``_draw`` returns pictures
    (n, channels, h, w), one per condition; values beyond [0, 1] are cut.

    Parameters
    ----------
    condition : {"label+group", "label"}
        What the pictures are conditioned on. With "label" samples have no groups, and nothing
        balances them but the method itself.
    neighbors, noise, random_state
        See ``Synthesizer``.
    """

    payload: ClassVar[str] = "images"
    fewer_numbers: ClassVar[str] = "learn smaller pictures, or fewer labels and groups"
    codec_type: ClassVar[type[ImageCodec]] = ImageCodec

    codec_: ImageCodec = field(init=False)

    condition: str = "label+group"

    def fit(
        self,
        images: ArrayLike,
        y: ArrayLike,
        *,
        sensitive_features: Any = None,
        budget: Budget,
        classes: Sequence[Any] | None = None,
        groups: Sequence[Any] | Mapping[str, Sequence[Any]] | None = None,
        unit_ids: ArrayLike | None = None,
        per_unit: int = 1,
        unit_name: str = "person",
        store: Store | None = None,
        account: str = "default",
        progress: Progress | None = None,
    ) -> Self:
        """Learn from private pictures.

        Parameters
        ----------
        images : array of uint8, or of floats in [0, 1]; shape (n, h, w) or (n, h, w, 3)
            Private pictures. Their size is taken as public.
        y : array-like, shape (n,)
            Label of each. The name of a Series names the condition, else it is "label".
        sensitive_features : array-like (n,), DataFrame or GroupReference, optional
            Group of each; the groups of a DataFrame are the combinations of its columns. An
            array's condition is called "sensitive". A ``GroupReference`` predicts the groups
            by public pictures, a ``ClusterReference`` puts clusters of these in their place.
        budget : Budget
            What may be spent in all.
        classes, groups : sequence, optional
            All values that labels and groups may have, from public knowledge; for several
            sensitive columns a dict of them. If left out, the values that occur are taken as
            public, and the claim says so. How often they occur is private in any case.
        unit_ids : array-like, optional
            Whose picture it is; the claim is then for each of these.
        per_unit : int
            Pictures of one unit that are read, its first ones.
        unit_name : str
            What a unit is, in the claim.
        store, account : optional
            Where the account is kept; in memory if not given.
        progress : callable, optional
            Called with a stage, what is done and how much there is: for the curator, as the exact
            number of pictures is among it.

        Returns
        -------
        self
        """
        read = {"classes": classes, "groups": groups, "unit_ids": unit_ids, "per_unit": per_unit}
        return self._fit(
            self._read(images, y, sensitive_features, **read),
            budget=budget,
            neighbors=self._open(None if unit_ids is None else "unit_ids"),
            unit="record" if unit_ids is None else unit_name,
            store=store,
            account=account,
            progress=progress,
        )

    def check(
        self,
        images: ArrayLike,
        y: ArrayLike,
        *,
        budget: Budget,
        sensitive_features: Any = None,
        unit_ids: ArrayLike | None = None,
    ) -> None:
        """Raise what ``fit`` would raise before its first draw; nothing is charged or released."""
        payload = self._read(images, y, sensitive_features, unit_ids=unit_ids)
        neighbors = self._open(None if unit_ids is None else "unit_ids")
        self._could_learn(payload, budget, neighbors)

    def _read(
        self, images: ArrayLike, y: ArrayLike, sensitive_features: Any, **how: Any
    ) -> PrivateImages:
        """Return the private pictures, read and checked; nothing is released."""
        conditioned = _checks.one_of("condition", self.condition, CONDITIONS) == "label+group"
        reference = None
        if isinstance(sensitive_features, GroupReference):
            reference, sensitive_features = sensitive_features, sensitive_features.predict(images)
        how = {"classes": None, "groups": None, "per_unit": 1} | how
        codec, data = read_images(images, y, sensitive_features, **how, conditioned=conditioned)
        return PrivateImages(codec=codec, known=data, reference=reference)

    def _foresee(self, known: EncodedImages) -> None:
        require_memory(*self._memory(known))

    def _memory(self, data: EncodedImages) -> tuple[str, float, str]:
        """Return what needs memory, how many bytes, and what to lower; see ``require_memory``."""
        what = f"{_values.count(len(data))} pictures"
        return what, 2.0 * data.pixels.nbytes, "the number of pictures"

    def _evaluate(self, synthetic: Any, test: Any, **options: Any) -> ImageEvaluation:
        return evaluate_images(synthetic, test, **options)

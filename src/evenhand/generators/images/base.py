"""What every generator of images shares: fit under a budget, sample with exact conditions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand import _checks
from evenhand._random import as_generator
from evenhand.generators.aggregators import TableCounts
from evenhand.generators.budget_plan import BudgetPlan
from evenhand.generators.images.codec import EncodedImages, FloatPixels, ImageCodec, read_images
from evenhand.generators.images.predicted_groups import GroupReference
from evenhand.generators.memory import require_memory
from evenhand.generators.synthesizer import ConditionalGenerator, Progress
from evenhand.privacy import Budget, Ledger, Noise, Store
from evenhand.typing import Array, ArrayLike, IntArray, RandomState

COUNTS: Final = "number of pictures by label and group"
CONDITIONS: Final = ("label+group", "label")


@dataclass(frozen=True, kw_only=True, eq=False)
class ImageSample:
    """Pictures that were drawn.

    Parameters
    ----------
    images : ndarray of float32, shape (n, h, w) or (n, h, w, 3)
        In [0, 1].
    y : ndarray, shape (n,)
        Label of each, in the user's values.
    sensitive_features : ndarray, DataFrame or None
        Group of each, in the user's values; None where the generator knows no groups.
    """

    images: FloatPixels
    y: Array
    sensitive_features: Array | pd.DataFrame | None

    def __len__(self) -> int:
        return len(self.images)

    @property
    def uint8(self) -> NDArray[np.uint8]:
        """The pictures as bytes, 0 to 255."""
        bytes_: NDArray[np.uint8] = np.rint(self.images * 255.0).astype(np.uint8)
        return bytes_


class ImageSynthesizer(ConditionalGenerator):
    """A generator of pictures under one claim.

    A method says how it spends the budget (``_shares``), learns (``_learn``), draws (``_draw``)
    and what of it is kept in a file (``_arrays``, ``_restore``). All else is here.

    Parameters
    ----------
    condition : {"label+group", "label"}
        What the pictures are conditioned on. With "label" samples have no groups, and nothing
        balances them but the method itself.
    neighbors : str
        "add or remove one" (the number of pictures is then private) or "replace one".
    noise : Noise, optional
        Source of privacy noise; exact discrete noise if not given.
    random_state : int, Generator or None
        Seeds what is drawn besides privacy noise.

    Attributes
    ----------
    guarantee_ : Guarantee
        The claim.
    ledger_ : Ledger
        What was spent on what.
    codec_ : ImageCodec
        Size of the pictures, values of labels and groups.
    conditions_ : Conditions
        Label and groups.
    counts_ : ndarray of float64, shape (n_conditions,)
        Noisy number of pictures of each combination of label and group.
    counts_sigma_ : float
        Standard deviation of the noise on each of them.
    snr_ : SignalToNoise
        As predicted.
    notes_ : tuple of str
        What the user must know.
    """

    codec_: ImageCodec

    def __init__(
        self,
        *,
        condition: str = "label+group",
        neighbors: str = "add or remove one",
        noise: Noise | None = None,
        random_state: RandomState = None,
    ) -> None:
        super().__init__(neighbors=neighbors, noise=noise, random_state=random_state)
        self.condition = condition

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
            array's condition is called "sensitive". A ``GroupReference`` tells the groups from
            public pictures.
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
            Called with a stage, what is done and how much there is.

        Returns
        -------
        self
        """
        progress = progress or (lambda stage, done, total: None)
        rng = as_generator(self.random_state)
        conditioned = _checks.one_of("condition", self.condition, CONDITIONS) == "label+group"
        neighbors = self._open(None if unit_ids is None else "unit_ids")
        reference = sensitive_features if isinstance(sensitive_features, GroupReference) else None
        if reference is not None:
            sensitive_features = reference.predict(images)
        codec, data = read_images(
            images,
            y,
            sensitive_features,
            classes=classes,
            groups=groups,
            unit_ids=unit_ids,
            per_unit=per_unit,
            conditioned=conditioned,
        )
        self.codec_, self.conditions_ = codec, codec.conditions
        self._foresee(data)
        ledger = Ledger(
            budget,
            noise=self._noise_source(),
            store=store,
            account=account,
            unit=unit_name if unit_ids is not None else "record",
            neighbors=neighbors,
        )
        plan = BudgetPlan(ledger=ledger, shares=self._shares())
        plan.require_room()
        self._learn(data, plan, rng, progress)
        public = ["the size of the pictures", "the values of the labels"]
        if codec.sensitive:
            public.append("the values of the groups")
        if reference is not None:
            public.append("the reference pictures with their groups")
        notes = (*(() if reference is None else (reference.note,)), *self._remarks())
        self._close(ledger, self._claim(budget, ledger, public), notes)
        return self

    def sample(
        self,
        n: int | None = None,
        *,
        conditions: Mapping[str, object] | pd.DataFrame | None = None,
        balance: Sequence[str] = ("label", "sensitive"),
        shares: ArrayLike | None = None,
        random_state: RandomState = None,
    ) -> ImageSample:
        """Draw pictures with exact counts.

        Parameters
        ----------
        n : int, optional
            Number of pictures. Not needed with a table of conditions.
        conditions : mapping or DataFrame, optional
            Values of the label and of sensitive columns that all pictures have; or a table of
            these with one line per picture that is asked for.
        balance : sequence of str
            What is spread evenly, with counts that differ by at most 1: "label", "sensitive", both
            or none. The rest is drawn as often as it is, by the noisy counts.
        shares : array of shape (n_conditions,), optional
            Share of each combination of label and group, instead of a balance.
        random_state : int, Generator or None
            Seeds the pictures. Drawing costs no privacy.

        Returns
        -------
        ImageSample
            In random order; those of a table of conditions in its order.
        """
        request = self._request(n=n, conditions=conditions, balance=balance, shares=shares)
        rng = as_generator(random_state)
        drawn = request.rows(rng)
        pixels = np.clip(self._draw(drawn, rng), 0.0, 1.0).astype(np.float32)
        label, *groups = self.conditions_.parts(drawn)
        return ImageSample(
            images=self.codec_.pictures(pixels),
            y=self.codec_.label.decode(label),
            sensitive_features=self.codec_.groups(groups),
        )

    # What a method adds

    @abstractmethod
    def _learn(
        self, data: EncodedImages, plan: BudgetPlan, rng: np.random.Generator, progress: Progress
    ) -> None:
        """Learn, and set ``counts_``, ``counts_sigma_`` and ``snr_``."""

    @abstractmethod
    def _draw(self, conditions: IntArray, rng: np.random.Generator) -> FloatPixels:
        """Draw pictures (n, channels, h, w), one per condition; values beyond [0, 1] are cut."""

    def _memory(self, data: EncodedImages) -> tuple[str, float, str]:
        """Return what needs memory, how many bytes, and what to lower; see ``require_memory``."""
        return f"{len(data)} pictures", 2.0 * data.pixels.nbytes, "the number of pictures"

    def _remarks(self) -> tuple[str, ...]:
        """Return what a user should know about this fit, beside its warnings."""
        return ()

    # What is the same for all

    def _foresee(self, data: EncodedImages) -> None:
        """Stop before anything is spent if memory will not do."""
        require_memory(*self._memory(data))

    def _release_counts(self, data: EncodedImages, plan: BudgetPlan) -> None:
        """Set ``counts_`` and ``counts_sigma_`` by a release for the purpose ``COUNTS``."""
        counter = TableCounts(shapes=((1, self.conditions_.n),), per_unit=data.per_unit)
        counted = counter.total([(0 * data.condition, data.condition)])
        released = plan.release(counter, counted, COUNTS)
        self.counts_, self.counts_sigma_ = released.values, released.sigma

    def _shape(self) -> dict[str, Any]:
        return {"pictures": self.codec_.to_dict()}

    def _restore_shape(self, head: Mapping[str, Any]) -> None:
        self.codec_ = ImageCodec.from_dict(head["pictures"])
        self.conditions_ = self.codec_.conditions

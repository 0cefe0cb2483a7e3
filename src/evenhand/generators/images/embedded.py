"""What mean embeddings of pictures share: one release of mean features, and a fit to them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, Protocol, Self

import numpy as np

from evenhand._checks import did_you_mean
from evenhand._torch import torch
from evenhand.generators.budget_plan import BudgetPlan, under
from evenhand.generators.feature_means import MEANS, FeatureMeans
from evenhand.generators.images.codec import EncodedImages, FloatPixels
from evenhand.generators.images.mirrored import MirroredImages
from evenhand.generators.payload import Progress
from evenhand.generators.synthesizer import TorchSynthesizer
from evenhand.typing import Array, FloatArray, IntArray

CHUNK: Final = 1024  # pictures whose features are held at once
JUDGED: Final = 200
"""Pictures of each label and group by which ``misfit_`` is estimated."""

FAR: Final = 10.0
"""Misfit from which the fit is the limit, and a note says so."""

STAGE: Final = "network"
"""What the fit is called to ``progress``."""

_LEFT: Final = "left: "  # before the names of arrays from which an interrupted fit goes on
_OWN: Final = ("misfit", "sums", "seeds")  # arrays beside those that pictures are drawn with


class PictureFeatures(Protocol):
    """Public numbers of each picture by itself, whose private means are released.

    Every ``FeatureExtractor`` is one.

    Privacy
    -------
    Row i of ``transform`` reads picture i alone. Rows longer than 1 are shortened to 1 where they
    are added up, by ``FeatureSums``.
    """

    @property
    def dimension(self) -> int:
        """How many numbers a picture becomes."""

    def transform(self, pictures: FloatPixels) -> Array:
        """Return (n, dimension) features of pictures (n, c, h, w)."""


class PictureFit(Protocol):
    """A fit to released means, step by step; nothing of it is private."""

    n_steps: int
    """Steps, at most."""
    done: int
    """Steps that were taken."""

    @property
    def ended(self) -> bool:
        """Whether no step is left."""

    def step(self) -> None:
        """Take the next one."""

    def learnt(self) -> dict[str, Array]:
        """Return copies of what pictures are drawn with."""

    def state(self) -> dict[str, Array]:
        """Return copies of what a new fit needs to go on from here, bit for bit."""

    def take(self, state: Mapping[str, Array]) -> None:
        """Go on where ``state`` was."""


@dataclass(eq=False, repr=False, kw_only=True)
class EmbeddedImages(TorchSynthesizer, MirroredImages):
    """A generator whose pictures have the mean features of the private ones, plus noise.

    What is drawn is fitted to one Gaussian release, so the fit is free: how near it came is
    ``misfit_``, the squared distance of the mean features of what is drawn to the released ones,
    over what the noise alone would leave. It is 1 for draws from the private distribution itself;
    where it is much more, the fit is the limit, and more budget does not help.

    What was released is kept, in a saved folder too: an interrupted fit goes on by ``resume``, and
    ``refit`` begins again with more steps or another network. Neither reads a picture or costs
    anything.

    Attributes
    ----------
    misfit_ : float
        NaN while the fit has not ended.
    """

    of_fit: ClassVar[tuple[str, ...]]
    """Settings that decide nothing of what is released."""

    misfit_: float = field(init=False)
    released_: FeatureMeans | None = field(init=False)
    seeds_: IntArray = field(init=False)
    learnt_: Mapping[str, Array] = field(init=False)
    left_: Mapping[str, Array] = field(init=False)
    """From which an interrupted fit goes on; empty where it has ended."""

    _running: PictureFit | None = field(default=None, init=False)
    _begun: Mapping[str, Any] = field(init=False)

    @abstractmethod
    def _features(self, rng: np.random.Generator) -> PictureFeatures:
        """Return the features of pictures of this size, made without a look at one."""

    @abstractmethod
    def _fit_of(
        self, features: Any, released: FeatureMeans, seen: IntArray, rng: np.random.Generator
    ) -> PictureFit:
        """Return the fit to the released means of the combinations ``seen``, at its first step."""

    @abstractmethod
    def _paint(
        self, learnt: Mapping[str, Array], conditions: IntArray, rng: np.random.Generator
    ) -> FloatPixels:
        """Draw with what a fit learnt, as ``_draw``."""

    @property
    def unfinished_(self) -> bool:
        """Whether its fit was interrupted and can go on."""
        return self.is_fitted_ and bool(self.left_)

    def resume(self, *, progress: Progress | None = None) -> Self:
        """Go on with a fit that was interrupted, as if it had not been.

        Parameters
        ----------
        progress : callable, optional
            As that of ``fit``.

        Privacy
        -------
        Costs nothing and reads no picture.

        Raises
        ------
        ValueError
            If the fit has ended, or was begun with other settings, or on another kind of device.

        Examples
        --------
        >>> from evenhand.generators import load
        >>> made = load("faces").resume()  # doctest: +SKIP
        """
        self._require_released()
        if not self.unfinished_:
            raise ValueError(
                "The fit has ended: there is nothing left to resume. refit(n_steps=...) begins "
                "again with other settings, at no cost."
            )
        self._refuse_other(self._begun, "begin again with refit(), at no cost")
        self._fit_on(self._features(self._rng(0)), progress)
        return self

    def refit(self, *, progress: Progress | None = None, **settings: Any) -> Self:
        """Fit again to what was released, from the start, with other settings of the fit.

        Parameters
        ----------
        progress : callable, optional
            As that of ``fit``.
        **settings
            Any of ``of_fit``; the others decide what is released, and need a fit of their own.

        Privacy
        -------
        Costs nothing and reads no picture.

        Raises
        ------
        ValueError
            If a setting is none of these or out of range. All stays as it was then.
        """
        self._require_released()
        for name in settings:
            if name not in self.of_fit:
                raise ValueError(
                    f"refit takes {', '.join(self.of_fit)}, got {name!r}."
                    f"{did_you_mean(name, self.of_fit)} All else decides what is released, or is "
                    f"nothing of this method: that needs another fit() and its budget."
                )
        own = [name for name in self._begun if name not in self.of_fit]
        self._refuse_other(own, "fit() again, which has a cost: they decide what is released")
        replace(self, **settings)._check_settings()
        features = self._features(self._rng(0))
        for name, value in settings.items():
            setattr(self, name, value)
        self.left_ = {}
        self._fit_on(features, progress)
        return self

    def _refuse_other(self, names: Iterable[str], or_else: str) -> None:
        """Refuse settings that were changed since the fit began."""
        own = self.settings()
        if other := [name for name in names if own[name] != self._begun[name]]:
            was = ", ".join(f"{name}={self._begun[name]!r}" for name in other)
            now = ", ".join(f"{name}={own[name]!r}" for name in other)
            raise ValueError(
                f"The fit was begun with {was}, and has {now} now. Give it back what it had, or "
                f"{or_else}."
            )

    def _require_released(self) -> None:
        self._require_fitted()
        if self.released_ is None:
            raise ValueError(
                "This generator was saved by an earlier version, without what was released, so "
                "nothing can be fitted to it. It draws as it did."
            )

    def _shares(self) -> Mapping[str, float]:
        return {MEANS: 1.0}

    def _learn_turned(
        self, data: EncodedImages, plan: BudgetPlan, rng: np.random.Generator, progress: Progress
    ) -> None:
        self.seeds_ = rng.integers(0, 2**63, 2)
        features = self._features(self._rng(0))

        def features_of(rows: slice) -> FloatArray:
            progress("features", rows.start, len(data))
            return features.transform(data.pixels[rows]).astype(np.float64, copy=False)

        self.released_ = FeatureMeans.release(
            data,
            features_of,
            n_features=features.dimension,
            n_conditions=self.conditions_.n,
            chunk=CHUNK,
            plan=plan,
            purpose=MEANS,
        )
        progress("features", len(data), len(data))
        self.counts_, self.counts_sigma_ = self.released_.counts, self.released_.sigma
        self.snr_ = self.released_.snr
        self.misfit_, self.left_ = float("nan"), {}

    def _finish(self, progress: Progress) -> None:
        self._fit_on(self._features(self._rng(0)), progress)

    def _rng(self, i: int) -> np.random.Generator:
        """Return what draws the features, 0, or the fit, 1: the same one each time."""
        return np.random.default_rng(self.seeds_[i])

    def _fit_on(self, features: PictureFeatures, progress: Progress | None) -> None:
        """Take all steps from ``left_`` or from the start, and judge what came of them."""
        assert self.released_ is not None
        said = self._remarks()
        seen = np.setdiff1d(np.arange(self.conditions_.n), self._unseen()).astype(np.int64)
        seen = seen if len(seen) else np.arange(self.conditions_.n)
        # On all threads, for its products are large.
        with nullcontext() if self.device == "cpu" else torch.device(self.device):
            fit = self._fit_of(features, self.released_, seen, self._rng(1))
            if self.left_:
                fit.take(self.left_)
            self._running, self._begun, self.misfit_ = fit, self.settings(), float("nan")
            self._hold()
            said = self._say(instead_of=said)
            try:
                while not fit.ended:
                    fit.step()
                    if progress is not None:
                        progress(STAGE, fit.done, fit.n_steps)
            finally:
                self._hold()
                self._running = None
        self.misfit_, self.left_ = self._judged(features, self.released_, seen), {}
        self._say(instead_of=said)

    def _hold(self) -> None:
        """Take over where a running fit is."""
        if self._running is not None:
            self.learnt_, self.left_ = self._running.learnt(), self._running.state()

    def _judged(self, features: PictureFeatures, released: FeatureMeans, seen: IntArray) -> float:
        apart = 0.0
        for condition in seen:
            drawn = self._draw_turned(np.full(JUDGED, condition), np.random.default_rng(0))
            found = features.transform(np.clip(drawn, 0.0, 1.0)).astype(np.float64, copy=False)
            apart += float(squared_distance(found, released.means[condition]))
        return apart / float(released.squared_noise[seen].sum())

    def _draw_turned(self, conditions: IntArray, rng: np.random.Generator) -> FloatPixels:
        self._hold()
        return self._paint(self.learnt_, conditions, rng)

    def _remarks(self) -> tuple[str, ...]:
        if self.left_:
            return ("the fit of what is drawn has not ended: resume() goes on with it, at no cost",)
        if not self.misfit_ > FAR:
            return ()
        return (
            f"the mean features of what is drawn are {self.misfit_:.0f} times as far from the "
            f"released ones, in squares, as noise explains: the fit is the limit. Before a larger "
            f"budget take more steps or a larger network with refit(), which costs no privacy",
        )

    def _say(self, instead_of: tuple[str, ...]) -> tuple[str, ...]:
        """Put the remarks of now into the notes, before the warnings, and return them."""
        own = [words for words in self.notes_ if words not in instead_of]
        at, said = len(own) - len(self.warnings_), self._remarks()
        self.notes_ = (*own[:at], *said, *own[at:])
        return said

    def _arrays(self) -> dict[str, Array]:
        self._hold()
        out = dict(self.learnt_) | {_LEFT + name: value for name, value in self.left_.items()}
        if self.released_ is not None:
            out |= {"sums": self.released_.sums, "seeds": self.seeds_}
        # A file holds finite numbers alone.
        return out if np.isnan(self.misfit_) else out | {"misfit": np.array([self.misfit_])}

    def _restore(self, arrays: Mapping[str, Array]) -> None:
        # Generators of older files know neither how far they are nor what was released.
        self.misfit_ = float(arrays["misfit"][0]) if "misfit" in arrays else float("nan")
        self.released_ = None
        if "sums" in arrays:
            self.seeds_, sums = arrays["seeds"], arrays["sums"]
            if len(sums) != self.conditions_.n or self.seeds_.shape != (2,):
                raise ValueError("what was released is not of these labels and groups.")
            self.released_ = FeatureMeans(sums=sums, counts=self.counts_, sigma=self.counts_sigma_)
        self.left_, self._begun = under(arrays, _LEFT), self.settings()
        self.learnt_ = {
            n: a for n, a in arrays.items() if n not in _OWN and not n.startswith(_LEFT)
        }


def squared_distance(found: Any, wanted: Any) -> Any:
    """Return the squared distance of a mean to ``wanted``, from a sample, without bias.

    That of the sample's mean is too large by the variance of a mean, which would reward what is
    drawn for being all alike.

    Parameters
    ----------
    found : array or tensor, shape (..., n, d)
        n independent draws, at least 2.
    wanted : array or tensor, shape (..., d)

    Returns
    -------
    array or tensor, shape (...)
        Sum over d. May be below 0.

    Examples
    --------
    >>> squared_distance(np.array([[0.0], [2.0]]), np.array([1.0]))
    np.float64(-1.0)
    """
    n = found.shape[-2]
    mean = found.sum(-2) / n
    spread = ((found - mean[..., None, :]) ** 2).sum((-2, -1)) / (n - 1)
    return ((mean - wanted) ** 2).sum(-1) - spread / n

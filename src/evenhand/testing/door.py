"""What goes out by the ledger's door: every noised sum of a fit, and a second fit held to them.

A ``Grant`` hands out noise, and whoever asked adds it to a private sum. Here the door hands out
noise that remembers where it came from: the addition gives the noisy sum as always, and the sum
itself is written down. A second fit can be *pinned* to a first one: it gets the same noise, and
each of its additions gives what the first fit released. So both fits have the same history of
releases, and the difference of two sums is what a neighbor moves in that release.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from evenhand.privacy import DiscreteNoise, FloatNoise
from evenhand.privacy.grant import Grant
from evenhand.privacy.mechanism import Mechanism
from evenhand.privacy.noise import WORD, Noise
from evenhand.typing import Array, FloatArray, IntArray


class Diverged(Exception):
    """A pinned fit asked for other noise than the fit it is pinned to."""


@dataclass(kw_only=True, eq=False)
class Release:
    """One draw of one mechanism, and the sums that it was added to."""

    mechanism: Mechanism
    n_uses: int
    n_classes: int
    """``n_uses`` and ``n_classes``: as they were charged and drawn."""
    noise: Array
    """What was drawn: one row, or several, for each use."""
    drawn_as: tuple[tuple[str, float], ...]
    """Kind and scale of each draw from the source of noise."""
    source: Noise
    """Where the ledger draws from."""
    pinned_to: Release | None = None
    n_used: int | None = None
    twice: bool = False
    sums: FloatArray = field(init=False)
    released: FloatArray = field(init=False)
    scale: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        self.sums = np.full(self.noise.size, np.nan)
        self.released = np.full(self.noise.size, np.nan)
        self.scale = np.ones(self.noise.size)

    @property
    def n_rows(self) -> int:
        """Rows of noise: each is one vector of which the mechanism states the sensitivity."""
        return len(self.noise) if self.noise.ndim else 1

    @property
    def seen(self) -> Array:
        """Which numbers of the noise were added to something; shape (n_rows, width)."""
        return self._by_row(np.isfinite(self.sums))

    def moved(self, other: Release) -> FloatArray:
        """How far each sum of ``other`` is from this one, in units of the noise; 0 where unused."""
        apart = other.sums - self.sums
        used = np.isfinite(apart) & (apart != 0)
        with np.errstate(divide="ignore"):  # what moves without noise moves without bound
            return self._by_row(np.divide(apart, self.scale, where=used, out=np.zeros_like(apart)))

    def _by_row(self, values: Array) -> Array:
        return values.reshape(self.n_rows, -1) if self.noise.size else values.reshape(0, 1)

    def add(self, sums: Any, noise: Array, at: IntArray, scale: float) -> Array:
        """Write the sums down and return them noisy, or as the other fit released them."""
        noisy = np.asarray(sums + scale * noise if scale != 1.0 else sums + noise)
        where = np.broadcast_to(at, noisy.shape).ravel()
        plain = np.broadcast_to(np.asarray(sums, dtype=np.float64), noisy.shape).ravel()
        before = self.sums[where]
        # The same noise on two sums: their difference leaves without any.
        self.twice |= bool((np.isfinite(before) & (before != plain)).any())
        self.twice |= len(np.unique(where)) < len(where)
        self.sums[where], self.scale[where] = plain, scale
        if self.pinned_to is not None:
            known = self.pinned_to.released[where]
            if not np.isfinite(known).all():
                raise Diverged("noise is added that the first fit did not use")
            noisy = known.reshape(noisy.shape).astype(noisy.dtype)
        self.released[where] = noisy.ravel()
        return noisy


class _Number:
    """One number of observed noise, for code that decides row by row in plain numbers."""

    def __init__(self, release: Release, value: float, at: int) -> None:
        self._release, self._value, self._at = release, value, np.array([at])

    def __add__(self, other: float) -> float:
        out = self._release.add(np.array([other]), np.array([self._value]), self._at, 1.0)
        return out[0].item()  # type: ignore[no-any-return]  # a plain number, as it was without us

    __radd__ = __add__


class Observed(NDArrayOperatorsMixin):
    """Noise that writes down what it is added to. It refuses everything else.

    Parts, rows and other shapes of it may be taken, and a public factor; it is no array, and what
    would read the noise by itself is a ``TypeError``, so that nothing is passed over in silence.
    """

    def __init__(self, release: Release, noise: Array, at: IntArray, scale: float = 1.0) -> None:
        self._release, self._noise, self._at, self._scale = release, noise, at, scale

    @property
    def shape(self) -> tuple[int, ...]:
        """As of an array."""
        return self._noise.shape

    @property
    def size(self) -> int:
        """As of an array."""
        return self._noise.size

    @property
    def ndim(self) -> int:
        """As of an array."""
        return self._noise.ndim

    def __len__(self) -> int:
        return len(self._noise)

    def __iter__(self) -> Iterator[Observed]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> Observed:
        return self._like(lambda array: np.asarray(array[key]))

    def reshape(self, *shape: Any) -> Observed:
        """As of an array."""
        return self._like(lambda array: array.reshape(*shape))

    def ravel(self) -> Observed:
        """As of an array."""
        return self._like(np.ravel)

    def tolist(self) -> Any:
        """Nested lists of numbers that write down what they are added to."""
        if self.ndim:
            return [part.tolist() for part in self]
        return _Number(self._release, self._noise.item(), int(self._at))

    def _like(self, change: Callable[[Array], Array]) -> Observed:
        return Observed(self._release, change(self._noise), change(self._at), self._scale)

    def __array__(self, *_: Any, **__: Any) -> Array:
        raise TypeError("Observed noise is read by itself: an audit follows additions alone.")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        mine = [isinstance(one, Observed) for one in inputs]
        out = options.pop("out", None)
        if method != "__call__" or options or sum(mine) != 1 or len(inputs) != 2:
            return NotImplemented
        other = inputs[mine.index(False)]
        if ufunc is np.multiply and np.ndim(other) == 0 and out is None:
            return Observed(self._release, self._noise, self._at, self._scale * float(other))
        if ufunc is not np.add:
            return NotImplemented
        noisy = self._release.add(other, self._noise, self._at, self._scale)
        if out is not None:
            out[0][...] = noisy
            return out[0]
        return noisy


def coins(toss: int, *shape: int, secret: int = 0) -> IntArray:
    """Words of the ``toss``-th time, from 1 on, that a fit tosses coins for its records."""
    return np.random.default_rng([toss, 11, secret]).integers(WORD, size=shape)


@dataclass(kw_only=True, eq=False)
class Transcript:
    """All releases of one fit, in order."""

    pinned_to: Transcript | None = None
    """The fit whose released values this one sees."""
    removed: int | None = None
    """Row that this fit's table lacks, and the table of the audit has."""
    releases: list[Release] = field(default_factory=list)
    secret: int = 0
    """Which secrets, that are no noise, the fit gets: keys and coins. Two fits are compared under
    the same.
    """
    said: tuple[str, ...] = ()
    """What the fit warned of, in order, but for the curator alone; filled in when it ends."""
    n_tosses: int = 0
    n_keys: int = 0

    def toss(self, shape: tuple[int, ...]) -> IntArray:
        """Toss coins that no noise is made of: one per record, so that each keeps its own."""
        self.n_tosses += 1
        if self.removed is None or len(shape) != 1:
            return coins(self.n_tosses, *shape, secret=self.secret)
        words = coins(self.n_tosses, shape[0] + 1, secret=self.secret)
        return np.delete(words, self.removed)

    def key(self, n: int | None = None) -> bytes:
        """Return what the operating system would: the next secret key."""
        self.n_keys += 1
        seed = f"audit {self.secret} {self.n_keys}".encode()
        return hashlib.shake_256(seed).digest(32 if n is None else n)

    def write(
        self, mechanism: Mechanism, n_uses: int, n_classes: int, noise: Array, source: _Noted
    ) -> Observed:
        """Begin the entry of one draw; pinned, with the noise of the other fit."""
        first = None
        if self.pinned_to is not None:
            first = self._first(mechanism, n_uses, n_classes, tuple(source.draws))
            noise = first.noise
        release = Release(
            mechanism=mechanism,
            n_uses=n_uses,
            n_classes=n_classes,
            noise=noise,
            drawn_as=tuple(source.draws),
            source=source.noise,
            pinned_to=first,
        )
        self.releases.append(release)
        return Observed(release, noise, np.arange(noise.size).reshape(noise.shape))

    def _first(self, *drawn: Any) -> Release:
        """Return the release of the other fit that this draw repeats."""
        assert self.pinned_to is not None
        at, others = len(self.releases), self.pinned_to.releases
        if at >= len(others):
            raise Diverged(f"there is one release more than the {at} of the first fit")
        first = others[at]
        if (first.mechanism, first.n_uses, first.n_classes, first.drawn_as) != drawn:
            raise Diverged(f"release {at + 1} is of another kind, size or scale")
        return first


class _Noted:
    """A source of noise that notes kind and scale of what is drawn, and may leave it out."""

    def __init__(self, noise: Noise, *, silent: bool) -> None:
        self.noise, self._silent = noise, silent
        self.draws: list[tuple[str, float]] = []

    def gaussian(self, sigma: float, shape: tuple[int, ...]) -> Array:
        self.draws.append(("gaussian", sigma))
        return np.zeros(shape) if self._silent else self.noise.gaussian(sigma, shape)

    def laplace(self, scale: float, shape: tuple[int, ...]) -> Array:
        self.draws.append(("laplace", scale))
        return np.zeros(shape) if self._silent else self.noise.laplace(scale, shape)

    def random_words(self, shape: tuple[int, ...]) -> IntArray:
        self.draws.append(("words", 1.0))
        return np.zeros(shape, np.int64) if self._silent else self.noise.random_words(shape)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.noise, name)


@contextmanager
def recording(transcript: Transcript) -> Iterator[Transcript]:
    """Write down what leaves by the door of every ledger, in this process, while this is open.

    Two fits can be compared only where the secrets agree that are no noise: keys from the operating
    system, and coins that are tossed for each record. These follow from ``transcript.secret``, and
    coins stay with their record. Noise is what the fit's own source draws, or, for a pinned fit,
    that of the first.
    """
    grants: dict[int, Grant] = {}  # kept, so that no other grant gets the id of one of these
    made: dict[tuple[int, Mechanism], Release] = {}
    draw, settle = Grant.draw, Grant.settle
    at_the_door = False

    def observed(grant: Grant, mechanism: Mechanism, n_classes: int) -> Any:
        nonlocal at_the_door
        ledger, at_the_door = grant._ledger, True
        source = _Noted(ledger.noise, silent=transcript.pinned_to is not None)
        # The door itself checks, counts and draws, as ever; only its source of noise is noted.
        grant._ledger = SimpleNamespace(noise=source)  # type: ignore[assignment]
        try:
            drawn = np.asarray(draw(grant, mechanism, n_classes))
        finally:
            grant._ledger, at_the_door = ledger, False
        n_uses = grant._charged[mechanism][0].n_uses
        out = transcript.write(mechanism, n_uses, n_classes, drawn, source)
        grants[id(grant)], made[id(grant), mechanism] = grant, transcript.releases[-1]
        return out

    def by_step(grant: Grant, mechanism: Mechanism, n_classes: int) -> Any:
        return iter(observed(grant, mechanism, n_classes))  # small tables: all at once

    def settled(grant: Grant, used: Mapping[Any, int]) -> None:
        settle(grant, used)
        for mechanism, n in used.items():
            if (release := made.get((id(grant), mechanism))) is not None:
                release.n_used = n

    def tossed(of: Any) -> Callable[..., IntArray]:
        def random_words(noise: Noise, shape: tuple[int, ...]) -> IntArray:
            return of(noise, shape) if at_the_door else transcript.toss(shape)

        return random_words

    with (
        patch.object(Grant, "draw", observed),
        patch.object(Grant, "draw_by_step", by_step),
        patch.object(Grant, "settle", settled),
        patch.object(FloatNoise, "random_words", tossed(FloatNoise.random_words)),
        patch.object(DiscreteNoise, "random_words", tossed(DiscreteNoise.random_words)),
        # Not for all: a source of noise has a key of its own, which nobody may hold still.
        patch("evenhand.teachers.partition.secrets", SimpleNamespace(token_bytes=transcript.key)),
    ):
        yield transcript

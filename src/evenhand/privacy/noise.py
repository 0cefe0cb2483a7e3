"""Where the randomness of a release comes from: exact integers, fast floats, or a seed."""

from __future__ import annotations

import math
import secrets
from functools import cache
from typing import Any, Final, Protocol

import numpy as np

from evenhand._checks import at_least, positive
from evenhand._stored import stored
from evenhand.privacy.integer_noise import discrete_gaussian_mu, discrete_laplace_mu, laplace_mu
from evenhand.privacy.inversion import LARGEST_TABLE, discrete_gaussian
from evenhand.privacy.keystream import Keystream
from evenhand.typing import Array, FloatArray, IntArray

LARGEST_SCALE: Final = 2.0**50
"""Above it a draw could reach the end of int64, where OpenDP clamps: 2**62 is 4096 scales away."""

WORD: Final = 2**63
"""Words are below it: the largest range of whole numbers that int64 holds from 0 on."""


class Noise(Protocol):
    """A source of noise, and what one count costs under it.

    Only ``evenhand.privacy`` draws from one, after the ledger has charged the cost.
    """

    @property
    def name(self) -> str:
        """Words for the guarantee."""

    @property
    def protects(self) -> bool:
        """False when somebody could repeat the noise, and so remove it."""

    def gaussian(self, sigma: float, shape: tuple[int, ...]) -> Array:
        """Independent Gaussian noise of standard deviation ``sigma``."""

    def laplace(self, scale: float, shape: tuple[int, ...]) -> Array:
        """Independent Laplace noise of the given scale."""

    def random_words(self, shape: tuple[int, ...]) -> IntArray:
        """Independent whole numbers, uniform on [0, 2**63)."""

    def gaussian_mu(self, sigma: float) -> float:
        """Gaussian DP parameter of one count that moves by 1 under this Gaussian noise."""

    def laplace_mu(self, scale: float) -> float:
        """Gaussian DP parameter of one count that moves by 1 under this Laplace noise."""


def checked_noise(noise: Noise) -> Noise:
    """Return a source of noise; a name of one, or its class, is refused before anything is read."""
    if isinstance(noise, type) or not hasattr(noise, "protects"):
        raise TypeError(
            f"noise must be a source of noise, got {noise!r:.60}. Pass an object: DiscreteNoise(), "
            f"or FloatNoise(); None is the default."
        )
    return noise


@stored
class DiscreteNoise:
    """Exact noise on the integers, from OpenDP and the operating system's randomness.

    The samplers use integer arithmetic only (Canonne, Kamath and Steinke 2020), so what is
    drawn has the distribution that is charged for; floating-point noise only comes near it.
    It has no state, and copies of it are independent.

    Examples
    --------
    >>> drawn = DiscreteNoise().gaussian(40.0, (2, 3))
    >>> drawn.shape, drawn.dtype
    ((2, 3), dtype('int64'))
    """

    name: str = "exact discrete noise (OpenDP)"
    protects: Final = True

    def gaussian(self, sigma: float, shape: tuple[int, ...]) -> IntArray:
        """Discrete Gaussian noise: P(k) is proportional to exp(-k**2 / (2 sigma**2))."""
        return _drawn(_opendp_gaussian(_within("sigma", sigma)), shape)

    def laplace(self, scale: float, shape: tuple[int, ...]) -> IntArray:
        """Discrete Laplace noise: k has a probability proportional to ``exp(-|k| / scale)``."""
        return _drawn(_opendp_laplace(_within("scale", scale)), shape)

    def random_words(self, shape: tuple[int, ...]) -> IntArray:
        """Whole numbers, uniform on [0, 2**63): bytes of the operating system, one bit dropped."""
        shape = _shape(shape)
        drawn = np.frombuffer(secrets.token_bytes(8 * math.prod(shape)), dtype=np.uint64)
        return (drawn >> np.uint64(1)).astype(np.int64).reshape(shape)

    def gaussian_mu(self, sigma: float) -> float:
        """Gaussian DP parameter of one count that moves by 1."""
        return _discrete_gaussian_mu(_within("sigma", sigma))

    def laplace_mu(self, scale: float) -> float:
        """Gaussian DP parameter of one count that moves by 1."""
        return _discrete_laplace_mu(_within("scale", scale))

    def __repr__(self) -> str:
        return "DiscreteNoise()"


@stored
class InversionNoise(DiscreteNoise):
    """The noise of ``DiscreteNoise``, a hundred times as fast: Gaussian draws by inversion.

    The distribution is the same to the last bit, and so is the cost. The sampler is this package's
    own (``evenhand.privacy.inversion``, with its proof), which is why single fits use OpenDP's, and
    sweeps over thousands of settings this one. Laplace noise, and Gaussian noise of a sigma above
    8192, come from OpenDP.

    Examples
    --------
    >>> drawn = InversionNoise().gaussian(40.0, (2, 3))
    >>> drawn.shape, drawn.dtype
    ((2, 3), dtype('int64'))
    """

    name = "exact discrete noise (inversion)"

    def gaussian(self, sigma: float, shape: tuple[int, ...]) -> IntArray:
        """Discrete Gaussian noise: P(k) is proportional to exp(-k**2 / (2 sigma**2))."""
        if _within("sigma", sigma) > LARGEST_TABLE:
            return super().gaussian(sigma, shape)
        shape = _shape(shape)
        return discrete_gaussian(sigma, math.prod(shape)).reshape(shape)

    def __repr__(self) -> str:
        return "InversionNoise()"


@stored
class FloatNoise:
    """Fast noise in doubles, from a cryptographic generator (``Keystream``).

    The cost is that of real-valued noise. Doubles are not real numbers (Mironov 2012), so the
    guarantee names this noise. A copy, a pickle and a forked process get a key of their own:
    two releases with the same noise would cancel it.

    Examples
    --------
    >>> FloatNoise().gaussian_mu(40.0)
    0.025
    """

    name: Final = "floating-point noise (its rounding is not covered)"
    protects: Final = True

    def __init__(self) -> None:
        self._stream = Keystream()

    def gaussian(self, sigma: float, shape: tuple[int, ...]) -> FloatArray:
        """Gaussian noise, in doubles."""
        sigma, shape = positive("sigma", sigma), _shape(shape)
        return self._stream.gaussian(math.prod(shape)).reshape(shape) * sigma

    def laplace(self, scale: float, shape: tuple[int, ...]) -> FloatArray:
        """Laplace noise, in doubles."""
        scale, shape = positive("scale", scale), _shape(shape)
        return self._stream.laplace(math.prod(shape)).reshape(shape) * scale

    def random_words(self, shape: tuple[int, ...]) -> IntArray:
        """Whole numbers, uniform on [0, 2**63), of the same generator."""
        shape = _shape(shape)
        return self._stream.words(math.prod(shape)).reshape(shape)

    def gaussian_mu(self, sigma: float) -> float:
        """``1 / sigma``."""
        return 1.0 / positive("sigma", sigma)

    def laplace_mu(self, scale: float) -> float:
        """Gaussian DP parameter of the Laplace mechanism with sensitivity 1."""
        return _laplace_mu(positive("scale", scale))

    def __reduce__(self) -> tuple[type[FloatNoise], tuple[()]]:
        return FloatNoise, ()

    def __repr__(self) -> str:
        return "FloatNoise()"


@stored
class SeededNoise:
    """Repeatable noise, for tests and demonstrations. It protects nobody.

    Parameters
    ----------
    seed : int
        Whoever knows it can subtract the noise, so a guarantee made with it does not hold.

    Examples
    --------
    >>> SeededNoise(7).gaussian(1.0, (2,)).round(3)
    array([0.001, 0.299])
    """

    name: Final = "repeatable noise from a seed (test mode)"
    protects: Final = False

    def __init__(self, seed: int) -> None:
        self.seed = at_least("seed", seed, 0)
        self._rng = np.random.default_rng(self.seed)

    def gaussian(self, sigma: float, shape: tuple[int, ...]) -> FloatArray:
        """Gaussian noise, in doubles."""
        return self._rng.normal(0.0, positive("sigma", sigma), _shape(shape))

    def laplace(self, scale: float, shape: tuple[int, ...]) -> FloatArray:
        """Laplace noise, in doubles."""
        return self._rng.laplace(0.0, positive("scale", scale), _shape(shape))

    def random_words(self, shape: tuple[int, ...]) -> IntArray:
        """Whole numbers, uniform on [0, 2**63)."""
        return self._rng.integers(WORD, size=_shape(shape))

    def gaussian_mu(self, sigma: float) -> float:
        """``1 / sigma``: what the same noise would cost without the seed."""
        return 1.0 / positive("sigma", sigma)

    def laplace_mu(self, scale: float) -> float:
        """Return what the same noise would cost without the seed."""
        return _laplace_mu(positive("scale", scale))

    def __repr__(self) -> str:
        return f"SeededNoise({self.seed})"


class UnitNoise:
    """The noise of another source, priced for a unit that moves a count by more than 1.

    A count that moves by m is m steps of 1, each of them mu-GDP, so their composition as a group
    is (m mu)-GDP (Dong, Roth and Su 2022, group privacy). Whatever adds up ``gaussian_mu`` or
    ``laplace_mu`` of counts is right for such a unit too: if m votes move from one class to
    another, each of the two counts moves by m.

    Parameters
    ----------
    noise : Noise
        Draws.
    moves : int
        By how much one unit moves one count; at least 1. Public.

    Examples
    --------
    >>> UnitNoise(FloatNoise(), moves=3).gaussian_mu(30.0)
    0.1
    """

    def __init__(self, noise: Noise, moves: int) -> None:
        self.noise, self.moves = noise, at_least("moves", moves, 1)

    @property
    def name(self) -> str:
        """Words for the guarantee: those of the source."""
        return self.noise.name

    @property
    def protects(self) -> bool:
        """Whether nobody can repeat the noise."""
        return self.noise.protects

    def gaussian(self, sigma: float, shape: tuple[int, ...]) -> Array:
        """Gaussian noise of the source."""
        return self.noise.gaussian(sigma, shape)

    def laplace(self, scale: float, shape: tuple[int, ...]) -> Array:
        """Laplace noise of the source."""
        return self.noise.laplace(scale, shape)

    def random_words(self, shape: tuple[int, ...]) -> IntArray:
        """Words of the source."""
        return self.noise.random_words(shape)

    def gaussian_mu(self, sigma: float) -> float:
        """Gaussian DP parameter of one count that moves by ``moves``."""
        return self.moves * self.noise.gaussian_mu(sigma)

    def laplace_mu(self, scale: float) -> float:
        """Gaussian DP parameter of one count that moves by ``moves``."""
        return self.moves * self.noise.laplace_mu(scale)

    def __repr__(self) -> str:
        return f"UnitNoise({self.noise!r}, moves={self.moves})"


class NoPrivacy:
    """No noise at all, for references: what is released is what was counted.

    Costs are those of noise that was not added. They weigh releases against each other, and bound
    nothing: a guarantee made with it does not hold.

    Examples
    --------
    >>> NoPrivacy().gaussian(40.0, (2,))
    array([0., 0.])
    """

    name: Final = "no noise"
    protects: Final = False

    def gaussian(self, sigma: float, shape: tuple[int, ...]) -> FloatArray:
        """Zeros."""
        positive("sigma", sigma)
        return np.zeros(_shape(shape))

    def laplace(self, scale: float, shape: tuple[int, ...]) -> FloatArray:
        """Zeros."""
        positive("scale", scale)
        return np.zeros(_shape(shape))

    def random_words(self, shape: tuple[int, ...]) -> IntArray:
        """Refuse: what is decided by coins cannot be decided without them."""
        raise ValueError("NoPrivacy draws no coins. Use SeededNoise(seed) to leave privacy out.")

    def gaussian_mu(self, sigma: float) -> float:
        """``1 / sigma``: what the noise that is left out would cost."""
        return 1.0 / positive("sigma", sigma)

    def laplace_mu(self, scale: float) -> float:
        """Return what the noise that is left out would cost."""
        return _laplace_mu(positive("scale", scale))

    def __repr__(self) -> str:
        return "NoPrivacy()"


# The parameters are found numerically; a ledger asks for the same few again and again.
_discrete_gaussian_mu = cache(discrete_gaussian_mu)
_discrete_laplace_mu = cache(discrete_laplace_mu)
_laplace_mu = cache(laplace_mu)


@cache
def _opendp_gaussian(sigma: float) -> Any:
    """Make OpenDP's measurement: integer vector in, the same plus noise out."""
    dp = _opendp()
    return dp.m.make_gaussian(
        dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T=float), sigma
    )


@cache
def _opendp_laplace(scale: float) -> Any:
    """Make OpenDP's measurement: integer vector in, the same plus noise out."""
    dp = _opendp()
    return dp.m.make_laplace(
        dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T=float), scale
    )


@cache
def _opendp() -> Any:
    """Load OpenDP when it is first needed; its samplers carry the flag 'contrib'."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp


def _drawn(measurement: Any, shape: tuple[int, ...]) -> IntArray:
    shape = _shape(shape)
    zeros = [0] * math.prod(shape)
    return np.asarray(measurement(zeros), dtype=np.int64).reshape(shape)


def _within(name: str, scale: float) -> float:
    scale = positive(name, scale, "Zero noise would release the counts as they are.")
    if scale > LARGEST_SCALE:
        raise ValueError(
            f"{name} must be at most 2**50 for discrete noise, got {name}={scale!r}: int64 would "
            f"clamp it. Use FloatNoise(), or count in larger units."
        )
    return scale


def _shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(at_least("every side of shape", side, 0) for side in shape)


def require_real(noise: Noise) -> None:
    """Refuse whole numbers where noise is added to gradients."""
    if isinstance(noise, DiscreteNoise):
        raise ValueError(
            f"Gradients are real numbers, and {noise!r} draws whole numbers. Use FloatNoise(); the "
            f"guarantee then names its rounding."
        )

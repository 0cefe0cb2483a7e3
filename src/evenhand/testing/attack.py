"""An attack on what was released: a lower bound on mu, from noise drawn anew or from whole fits.

Two ways to sample, and one test. ``attack_noise`` takes the sums of one fit and of its neighbor,
and draws the noise of every release many times from the fit's own source: seconds, and it sees how
much noise there is, how it adds up, and a source that repeats itself. ``attack_fits`` fits anew
each time, on the table and on its neighbor: it sees besides what depends on the course of a fit.

The score is the logarithm of the likelihood ratio of the neighbor to the table, the strongest there
is; ``audit_mu_lower_bound`` turns scores into a bound that is too high with a stated probability.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from evenhand.privacy import FloatNoise
from evenhand.privacy.audit import audit_mu_lower_bound
from evenhand.privacy.noise import Noise
from evenhand.testing.audit import Case, claimed_mu, declared_mu, run
from evenhand.testing.door import Diverged, Release, Transcript
from evenhand.testing.neighbors import Neighbor
from evenhand.typing import Array, FloatArray, IntArray

FALSE_ALARM: Final = 1e-6
"""Probability, over runs, that an attack refutes a claim that holds."""

WORST: Final = "moves all that is declared"
"""A neighbor that no table has: in every release its record moves as much as is charged for."""


class HalfNoise(FloatNoise):
    """A broken build, on purpose: it charges for its noise and draws half of it.

    An audit that does not convict every method with
    this source would not see such a defect in it.
    """

    def gaussian(self, sigma: float, shape: tuple[int, ...]) -> FloatArray:
        """Gaussian noise of half the standard deviation."""
        return super().gaussian(sigma / 2, shape)

    def laplace(self, scale: float, shape: tuple[int, ...]) -> FloatArray:
        """Laplace noise of half the scale."""
        return super().laplace(scale / 2, shape)

    def random_words(self, shape: tuple[int, ...]) -> IntArray:
        """Words of half the range: the large ones, which make an answer a lie, never come."""
        return super().random_words(shape) // 2

    def __reduce__(self) -> tuple[type[FloatNoise], tuple[()]]:
        return HalfNoise, ()  # copies are as broken


_CERTAIN: Final = 1e12

Mode = Literal["system", "fixed seed"]


@dataclass(frozen=True, kw_only=True)
class Attack:
    """What an attack showed."""

    method: str
    neighbor: str
    mode: str
    runs: int
    """Samples on each side."""
    mu_shown: float
    """Lower bound; too high with probability ``FALSE_ALARM``."""
    mu_claimed: float

    @property
    def refuted(self) -> bool:
        """Whether more was shown than is claimed."""
        return self.mu_shown > self.mu_claimed


def attack_noise(
    case: Case, neighbor: Neighbor | None = None, *, runs: int, noise: Noise | None = None
) -> Attack:
    """Fit once, and draw the noise of its releases ``runs`` times for each side.

    Parameters
    ----------
    case : Case
    neighbor : Neighbor, optional
        Whose sums to tell from the table's; without one, sums that move all that is declared
        (``WORST``), so that what is tested is the noise and what it is charged for.
    runs : int
        At least 100.
    noise : Noise, optional
        As for ``audit_sensitivity``.
    """
    first = Transcript()
    run(case, case.rows, noise, 0, first)
    if neighbor is None:
        apart = [_worst(release) for release in first.releases]
    else:
        second = Transcript(pinned_to=first, removed=neighbor.removed)
        run(case, neighbor.rows, noise, 0, second)
        apart = [a.moved(b) for a, b in zip(first.releases, second.releases, strict=True)]
    pairs = list(zip(first.releases, apart, strict=True))

    def score(there: float) -> float:
        drawn = ((release, moved, _drawn(release)) for release, moved in pairs)
        return math.fsum(_log_ratio(release, z, moved, there) for release, moved, z in drawn)

    sides = [[score(there) for _ in range(runs)] for there in (0.0, 1.0)]
    return _judged(case, neighbor, "noise drawn anew", runs, sides, claimed_mu(first))


def attack_fits(
    case: Case, neighbor: Neighbor, *, runs: int, mode: Mode, noise: Noise | None = None
) -> Attack:
    """Fit ``runs`` times on each side, each fit with noise of its own.

    Parameters
    ----------
    mode : {"system", "fixed seed"}
        Whether splits and first weights are another secret in each fit, and the attack knows
        released values alone; or one public seed for all, and the attack repeats the whole fit on
        the other side with what was released.
    """
    rows = (case.rows, neighbor.rows)
    sides: list[list[float]] = [[], []]
    released: list[list[FloatArray]] = [[], []]
    claimed = 0.0
    for at in range(runs):
        for there in (0, 1):
            seed = at if mode == "system" else 0
            own = Transcript(removed=neighbor.removed if there else None, secret=seed)
            run(case, rows[there], noise, seed, own)
            claimed = max(claimed, claimed_mu(own))
            if mode == "system":
                released[there].append(_values(own))
                continue
            other = Transcript(pinned_to=own, removed=None if there else neighbor.removed)
            try:
                run(case, rows[1 - there], noise, 0, other)
            except Diverged:  # it could not have released this: there is no doubt
                sides[there].append(_CERTAIN * (2 * there - 1))
            else:
                sides[there].append(_transcript_ratio(own, other, there))
    if mode == "system":
        sides = _projected(released)
    return _judged(case, neighbor, mode, runs, sides, claimed)


def _judged(
    case: Case,
    neighbor: Neighbor | None,
    mode: str,
    runs: int,
    sides: list[list[float]],
    claimed: float,
) -> Attack:
    return Attack(
        method=case.name,
        neighbor=WORST if neighbor is None else neighbor.name,
        mode=mode,
        runs=runs,
        mu_shown=audit_mu_lower_bound(*sides, confidence=1.0 - FALSE_ALARM),
        mu_claimed=claimed,
    )


def _drawn(release: Release) -> FloatArray:
    noise: Array = release.mechanism.draw_noise(release.source, release.n_uses, release.n_classes)
    return np.asarray(noise, dtype=np.float64).reshape(release.n_rows, -1)


def _worst(release: Release) -> FloatArray:
    """Return sums that move, in every row that is used, by what the mechanism declares."""
    apart = np.zeros_like(release.noise, dtype=np.float64).reshape(release.n_rows, -1)
    kind, scale = release.drawn_as[0]
    used = release.seen.any(axis=1)
    if kind == "words":
        apart[used, 0] = 1.0
    elif kind == "laplace" and hasattr(release.mechanism, "epsilon"):
        apart[used, 0] = release.mechanism.epsilon * scale
    elif kind == "laplace":  # two counts, one each way
        apart[used, 0], apart[used, 1] = 1.0, -1.0
    else:
        apart[used, 0] = declared_mu(release) * scale
    return apart


def _log_ratio(release: Release, z: FloatArray, apart: FloatArray, there: float) -> float:
    """Log likelihood of what ``z`` releases, neighbor to table; ``there`` is 1 at the neighbor."""
    kind, scale = release.drawn_as[0]
    if kind == "words":
        return _of_answers(release, z, apart, there)
    noise = z + there * apart  # seen from the table
    if kind == "laplace":
        return float((np.abs(noise) - np.abs(noise - apart)).sum() / scale)
    return float((noise * apart - np.square(apart) / 2).sum() / scale**2)


def _of_answers(release: Release, z: FloatArray, apart: FloatArray, there: float) -> float:
    """Ratio of randomised answers: those people count whose group is another."""
    moved = apart != 0
    k = release.mechanism.n_groups  # type: ignore[attr-defined]
    answer = (z[moved] + there * apart[moved]) % k  # less the group at the table
    says_other, says_own = answer == apart[moved] % k, answer == 0
    return float(release.mechanism.epsilon * (says_other.sum() - says_own.sum()))  # type: ignore[attr-defined]


def _transcript_ratio(own: Transcript, other: Transcript, there: int) -> float:
    """Log likelihood ratio of one fit's releases, by the sums of both sides."""
    total = 0.0
    for mine, theirs in zip(own.releases, other.releases, strict=True):
        apart = mine.moved(theirs) if not there else theirs.moved(mine)
        z = np.asarray(mine.noise, dtype=np.float64).reshape(mine.n_rows, -1)
        total += _log_ratio(mine, np.where(apart != 0, z, 0.0), apart, float(there))
    return total


def _values(transcript: Transcript) -> FloatArray:
    """All released values; 0 where noise was left over, and in units of the noise."""
    return np.concatenate(
        [np.nan_to_num(r.released) / r.drawn_as[0][1] for r in transcript.releases]
    )


def _projected(released: list[list[FloatArray]]) -> list[list[float]]:
    """Score released values along the difference of the sides' means, learnt on every second."""
    length = min(len(values) for side in released for values in side)
    table, neighbor = (np.array([values[:length] for values in side]) for side in released)
    direction = neighbor[::2].mean(axis=0) - table[::2].mean(axis=0)
    return [(table @ direction).tolist(), (neighbor @ direction).tolist()]

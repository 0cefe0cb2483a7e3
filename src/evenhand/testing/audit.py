"""Audits: what a change of one record moves at the ledger's door, against what is declared.

Three checks, of which the first two use no statistics. A fit on a table is written down by
``recording``; fits on neighbors are pinned to it, so that all have the same noise and the same
history of releases (``evenhand.testing.door``). Then

1. *sensitivity*: each released sum may move by what its mechanism declares, in its mechanism's norm
   and in units of the noise that was really asked for, and by no more; each number of noise stands
   on one sum; both fits ask for the same releases;
2. *nothing beside the ledger*: with the same releases both fits must publish the same files, bit
   for bit, and say the same in warnings, or something of a record leaves un-noised;
3. *noise*: what the fit's own source draws is drawn many times, and a likelihood ratio test of the
   two neighbors gives a lower bound on mu, with stated confidence (``evenhand.testing.attack``).

What it cannot see: neighbors that were not tried; sums that another process noises; a use of noise
other than its addition to a sum (this raises, and is not passed over); amplification by sampling,
so methods that sample are audited with every record in every step, where they claim none; what a
fit raises; timing.
"""

from __future__ import annotations

import io
import json
import math
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from scipy.stats import norm

from evenhand.privacy import FloatNoise
from evenhand.privacy.noise import Noise
from evenhand.testing.door import Diverged, Release, Transcript, recording
from evenhand.testing.neighbors import Neighbor, Rows, neighbors_of
from evenhand.typing import FloatArray

TOLERANCE: Final = 1e-9
"""Of a share of the declared sensitivity: what sums of doubles round."""

FOR_THE_CURATOR: Final = "for the curator"
"""Words of a warning that may depend on private rows, and says that it is not to be published."""

_OF_THE_DAY: Final = ("charged_at", "account", "created", "saved_at", "seconds", "__id__")


@dataclass(frozen=True, kw_only=True)
class Case:
    """A method to audit, and the small table on which it is fitted."""

    name: str
    """Words for the table of results."""
    fit: Callable[[Rows, Noise | None, int], Any]
    """``fit(rows, noise, seed)`` returns the fitted estimator or generator; ``noise`` may be None,
    for the source that the method takes by itself.
    """
    rows: Rows
    """The private table."""
    relation: str
    """The declared neighbors: one of ``evenhand.privacy.NEIGHBORS``."""
    uncovered: Mapping[str, str] = field(default_factory=dict)
    """Neighbors that the claim of this method is not about, and why."""
    more_runs: int = 1
    """So many times the samples of an attack show half of its noise. Of Laplace noise alone the mu
    that holds everywhere is far above what it shows at most events.
    """


@dataclass(frozen=True, kw_only=True)
class Movement:
    """What one neighbor moves in one release."""

    mechanism: str
    n_rows: int
    """Vectors of which the mechanism declares the sensitivity, as far as they were used."""
    largest: float
    """Largest movement of one, as a share of what is declared."""
    mu: float
    """Of all of them together, in Gaussian DP, by the noise that was asked for."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What one neighbor showed."""

    method: str
    neighbor: str
    skipped: str = ""
    """Why this neighbor says nothing about the claim; empty if it does."""
    movements: tuple[Movement, ...] = ()
    """One for each release."""
    mu_claimed: float = math.nan
    """Of all releases together, as charged."""
    problems: tuple[str, ...] = ()
    """What refutes the claim."""

    @property
    def largest(self) -> float:
        """Largest movement as a share of what is declared; at most 1 if the claim holds."""
        return max((move.largest for move in self.movements), default=0.0)

    @property
    def mu_moved(self) -> float:
        """What the releases say about this neighbor, in Gaussian DP; at most ``mu_claimed``."""
        return math.hypot(*(move.mu for move in self.movements))

    @property
    def refuted(self) -> bool:
        """Whether the declared claim does not hold."""
        return bool(self.problems)


def audit_sensitivity(
    case: Case, *, noise: Noise | None = None, seed: int = 0, names: Sequence[str] | None = None
) -> list[Finding]:
    """Fit once on the table and once, pinned to it, on each neighbor, and compare.

    Parameters
    ----------
    case : Case
    noise : Noise, optional
        Source of the fit's noise; the method's own if not given.
    seed : int
        ``random_state`` of all fits, as a user fixes it: splits and first weights are then public,
        and a claim that holds only while they are secret is refuted.
    names : sequence of str, optional
        Neighbors to try; all if not given.

    Returns
    -------
    list of Finding
        One for each neighbor; those outside the declared relation are skipped and say so.
    """
    first = Transcript()
    published = saved_files(run(case, case.rows, noise, seed, first))
    found = []
    for neighbor in neighbors_of(case.rows):
        if names is not None and neighbor.name not in names:
            continue
        skipped = case.uncovered.get(neighbor.name, "")
        if case.relation not in neighbor.relations:
            skipped = f"no neighbor under {case.relation!r}"
        if skipped:
            found.append(Finding(method=case.name, neighbor=neighbor.name, skipped=skipped))
        else:
            found.append(_compare(case, neighbor, noise, seed, first, published))
    return found


def _compare(
    case: Case,
    neighbor: Neighbor,
    noise: Noise | None,
    seed: int,
    first: Transcript,
    published: Mapping[str, Any],
) -> Finding:
    problems = _unfollowed(first)
    second = Transcript(pinned_to=first, removed=neighbor.removed)
    try:
        other = saved_files(run(case, neighbor.rows, noise, seed, second))
    except Diverged as apart:
        problems.append(f"the neighbor's fit asks for other releases: {apart}")
    except ValueError as error:
        problems.append(f"the neighbor cannot be fitted ({type(error).__name__})")
    else:
        if len(first.releases) != len(second.releases):
            problems.append("the neighbor's fit asks for fewer releases")
        changed = [
            name for name in {**published, **other} if published.get(name) != other.get(name)
        ]
        if changed:
            problems.append(f"published beside the ledger: {', '.join(changed)}")
        if first.said != second.said:
            problems.append("warned of beside the ledger")
    pairs = list(zip(first.releases, second.releases, strict=False))
    moves = tuple(movement(a, b) for a, b in pairs)
    for at, move in enumerate(moves):
        if move.largest > 1.0 + TOLERANCE:
            problems.append(
                f"release {at + 1} ({move.mechanism.split('(')[0]}) moves {move.largest:.3g} times "
                f"what is declared"
            )
    return Finding(
        method=case.name,
        neighbor=neighbor.name,
        movements=moves,
        mu_claimed=claimed_mu(first),
        problems=tuple(problems),
    )


def run(case: Case, rows: Rows, noise: Noise | None, seed: int, transcript: Transcript) -> Any:
    """Fit, write down in ``transcript`` what is released and said, and return what was fitted."""
    with recording(transcript), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        fitted = case.fit(rows, noise, seed)
    texts = (str(one.message) for one in said)
    transcript.said = tuple(text for text in texts if FOR_THE_CURATOR not in text)
    return fitted


def saved_files(fitted: Any) -> dict[str, Any]:
    """Return what ``save`` publishes: the content of each file, less dates and account names."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "model"
        fitted.save(made)
        return {
            str(file.relative_to(made)): _content(file.suffix, file.read_bytes())
            for file in sorted(made.rglob("*"))
            if file.is_file() and file.name != "manifest.json"  # digests of the others
        }


def _content(suffix: str, data: bytes) -> Any:
    """Return what a file says, whatever the order of its keys and the addresses in memory."""
    if suffix == ".json":
        return _lasting(json.loads(data))
    if suffix == ".safetensors":
        end = 8 + int.from_bytes(data[:8], "little")
        return json.loads(data[8:end]), data[end:]
    if suffix == ".skops":
        with zipfile.ZipFile(io.BytesIO(data)) as parts:
            arrays = [name for name in parts.namelist() if name != "schema.json"]
            schema = parts.read("schema.json").decode()
            for at, name in enumerate(arrays):  # they are named by addresses
                schema = schema.replace(name, f"array {at}")
            return _lasting(json.loads(schema)), [parts.read(name) for name in arrays]
    return data


def _lasting(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _lasting(item) for key, item in value.items() if key not in _OF_THE_DAY}
    return [_lasting(item) for item in value] if isinstance(value, list) else value


def _unfollowed(transcript: Transcript) -> list[str]:
    """Say which noise was drawn, charged and never seen on a sum, or seen on two."""
    problems = []
    for at, release in enumerate(transcript.releases):
        n_rows = int(release.seen.any(axis=1).sum())
        used = release.n_uses if release.n_used is None else release.n_used
        if n_rows * release.n_uses != used * release.n_rows:
            problems.append(
                f"release {at + 1} settles {used} uses, and noise was added {n_rows} times"
            )
        if release.twice:
            problems.append(f"release {at + 1} puts the same noise on two sums")
    return problems


def movement(first: Release, second: Release) -> Movement:
    """Measure what moved, by the norm of the mechanism and the noise that was asked for."""
    apart = first.moved(second)
    declared, kind = declared_mu(first), first.drawn_as[0][0]
    moved: FloatArray
    if kind == "words":  # a person's own answer: how many people's moved
        moved = declared * (apart != 0).sum(axis=1)
    elif hasattr(first.mechanism, "epsilon") and kind == "laplace":
        share = np.abs(apart).sum(axis=1) / first.drawn_as[0][1] / first.mechanism.epsilon
        moved = declared * share
    else:
        # mu is homogeneous: a number that moves by k costs at most k times one that moves by 1.
        source = FloatNoise()
        per_one = source.gaussian_mu if kind == "gaussian" else source.laplace_mu
        moved = np.sqrt(np.square(apart).sum(axis=1)) * per_one(first.drawn_as[0][1])
    seen = first.seen.any(axis=1)
    return Movement(
        mechanism=repr(first.mechanism),
        n_rows=int(seen.sum()),
        largest=float(moved.max(initial=0.0) / declared),
        mu=float(np.sqrt(np.square(moved).sum())),
    )


def declared_mu(release: Release) -> float:
    """Gaussian DP parameter that the mechanism declares for one row of its noise.

    A mechanism of pure epsilon is Gaussian-DP for the mu at which the curve of epsilon lies on that
    of mu: ``2 Phi^-1(e^epsilon / (1 + e^epsilon))``. One that samples is taken without its
    amplification.
    """
    mechanism: Any = release.mechanism
    if hasattr(mechanism, "noise_multiplier"):
        return float(1.0 / mechanism.noise_multiplier)
    if hasattr(mechanism, "epsilon"):
        return float(-2.0 * norm.ppf(1.0 / (1.0 + math.exp(mechanism.epsilon))))
    return math.sqrt(mechanism.mu_squared(FloatNoise()))


def claimed_mu(transcript: Transcript) -> float:
    """Gaussian DP parameter of all releases together, as they were charged."""
    squares = [
        declared_mu(release) ** 2 * release.seen.any(axis=1).sum()
        for release in transcript.releases
    ]
    return math.sqrt(math.fsum(squares))

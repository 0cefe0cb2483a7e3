"""What it costs to publish a frontier: every run on private data is a release of its own."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from evenhand import _checks
from evenhand.frontier.run import MEASURED_ON, Run
from evenhand.privacy.gaussian import epsilon_from_mu
from evenhand.privacy.renyi import RenyiCurve
from evenhand.privacy.selection import Repetitions, gaussian_curve

NOT_COVERED = (
    "choosing one of these runs because its numbers on private rows are the best is not covered; "
    "publish all at this price, or pay for a private choice"
)


@dataclass(frozen=True, kw_only=True)
class PartCost:
    """The cost of all runs on one data set, for one unit and one kind of neighbors."""

    data: str
    unit: str
    neighbors: str
    n_runs: int
    """Releases on these data."""
    n_gaussian: int
    n_basic: int
    n_unbounded: int
    """``n_gaussian``, ``n_basic`` and ``n_unbounded``: of them: whose mu**2 is known, and adds up
    without loss; whose cost is known at one delta only, so that epsilons and deltas are added; who
    promise nothing.
    """
    mu_squared: float
    """Sum over the first kind."""
    epsilon: float
    """Of all together, at ``delta``; infinite if one run promises nothing, or if the deltas add up
    to 1.
    """
    delta: float

    def __str__(self) -> str:
        n = f"{self.n_runs:,} run{'s' * (self.n_runs > 1)} on {self.data}"
        if self.n_unbounded:
            return (
                f"publishing {n} has no bound on its cost: {self.n_unbounded:,} of them "
                f"promise{'s' * (self.n_unbounded == 1)} nothing"
            )
        if not math.isfinite(self.epsilon):
            return f"publishing {n} promises nothing: the deltas add up to {self.delta:.3g}"
        said = (
            f"publishing {n} is ({self.epsilon:.4g}, {self.delta:.3g})-differentially private for "
            f"each {self.unit} (neighbors: {self.neighbors})"
        )
        if self.n_basic:
            said += (
                f"; {self.n_basic:,} are added by basic composition, for their cost is known at "
                f"one delta only"
            )
        return said


@dataclass(frozen=True, kw_only=True)
class ReleaseCost:
    """What publishing all runs that are shown costs together, and what that leaves out.

    Notes
    -----
    That runs share their teachers, or the cached votes of them, makes them no cheaper: each run
    asks again, with noise of its own. Only runs that share the noisy *answers* share the price, as
    one student and another on the same answers do; this sum does not know and counts them all.
    """

    parts: tuple[PartCost, ...]
    """One for each data set, unit and kind of neighbors: costs of two kinds do not add, and two
    data sets are taken to be of different people.
    """
    n_stand_in: int
    n_published: int
    """``n_stand_in`` and ``n_published``: runs on stand-in data, and points that others reported.
    Neither costs anything here.
    """
    n_not_covered: int
    """Runs on private data whose measurements were made on private rows without noise."""
    n_noisy: int
    """Runs whose measurements carry noise. That noise was charged to a ledger of its own and is not
    in this sum.
    """

    @classmethod
    def of(cls, runs: Sequence[Run], *, delta: float | None = None) -> ReleaseCost:
        """Add up the runs.

        Parameters
        ----------
        runs : sequence of Run
            All that are shown, those of every seed included.
        delta : float, optional
            Where mu**2 is turned into epsilon; the largest delta of these runs if not given.
        """
        if delta is not None:
            _checks.open_unit("delta", delta)
        private = [run for run in runs if run.data_kind == "private"]
        kinds: dict[tuple[str, str, str], list[Run]] = {}
        for run in private:
            unit = str(run.guarantee.get("unit", "record"))
            neighbors = str(run.guarantee.get("neighbors", "replace one"))
            kinds.setdefault((run.setting.data, unit, neighbors), []).append(run)
        return cls(
            parts=tuple(_part(*kind, own, delta) for kind, own in sorted(kinds.items())),
            n_stand_in=sum(run.data_kind.endswith("stand-in") for run in runs),
            n_published=sum(run.data_kind == "published" for run in runs),
            n_not_covered=sum(run.measured_on == MEASURED_ON[1] for run in private),
            n_noisy=sum(run.measured_on == MEASURED_ON[2] for run in private),
        )

    @property
    def prices(self) -> tuple[str, ...]:
        """What is paid for each part, in words, and of which data that is not all."""
        parts = Counter(part.data for part in self.parts)
        return (
            *map(str, self.parts),
            *(
                f"the {n} prices of {data} are for different neighbors or units and do not add up: "
                f"publishing all runs on it costs more than each of them says"
                for data, n in sorted(parts.items())
                if n > 1
            ),
        )

    @property
    def epsilon(self) -> float:
        """The largest epsilon of the parts; 0 if no private data were touched.

        Of several parts on one data set it is less than all of them cost (``prices``).
        """
        return max((part.epsilon for part in self.parts), default=0.0)

    def __str__(self) -> str:
        said = list(self.prices)
        if not said:
            said = ["no run here was trained on private data, so publishing them costs nothing"]
        if self.n_stand_in:
            said.append(
                f"{self.n_stand_in:,} run{'s' * (self.n_stand_in > 1)} on stand-in data cost "
                f"nothing, and say what may be expected on the private data, not what is so"
            )
        if self.n_published:
            said.append(f"{self.n_published:,} published by others are not counted")
        if self.n_not_covered:
            said.append(
                f"measurements of {self.n_not_covered:,} on private rows are not covered: they "
                f"were made without noise"
            )
        if self.n_noisy:
            said.append(
                f"measurements of {self.n_noisy:,} on private rows carry noise, charged to a "
                f"ledger of its own and not part of this sum"
            )
        if self.parts:
            said.append(
                "sharing teachers makes no run cheaper, for each asked them with noise of its own"
            )
            said.append(NOT_COVERED)
        text = "; ".join(said) + "."
        return text[0].upper() + text[1:]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; an infinite epsilon becomes None."""
        out = asdict(self)
        for part in out["parts"]:
            part["epsilon"] = part["epsilon"] if math.isfinite(part["epsilon"]) else None
        out["parts"] = list(out["parts"])
        return out | {"sentence": str(self)}


def choosing_cost(
    runs: Sequence[Run],
    repetitions: Repetitions,
    *,
    delta: float,
    score_mu_squared: float,
) -> float:
    """Return epsilon of training at random, a random number of times, and publishing the best.

    Parameters
    ----------
    runs : sequence of Run
        The settings that one is drawn from, uniformly, at each try: all on one data set.
    repetitions : Repetitions
        How many tries: ``NegativeBinomialRepetitions`` or ``PoissonRepetitions``.
    delta : float
    score_mu_squared : float
        Cost of the noisy score that tries are compared by, on the same private rows; 0 if it is
        measured on public rows. A score on private rows without noise cannot be priced.

    Returns
    -------
    float
        In nats. It pays for one model, and for no other number of the frontier. Trying fewer often
        is much cheaper than publishing them all; a fixed number of tries is not covered.

    Raises
    ------
    ValueError
        If the runs are of several data sets, units or neighbors, or if some run's mu**2 is not
        known: the choice among those is not covered.

    References
    ----------
    Papernot and Steinke 2022, "Hyperparameter tuning with Renyi differential privacy".
    """
    score = _checks.non_negative("score_mu_squared", score_mu_squared)
    cost = ReleaseCost.of(runs)
    if len(cost.parts) != 1 or cost.parts[0].n_runs != len(runs):
        raise ValueError(
            "One choice is among private runs on one data set, for one unit and one kind of "
            f"neighbors; got {len(runs)} runs in {len(cost.parts)} such groups."
        )
    (part,) = cost.parts
    if part.n_gaussian != part.n_runs:
        raise ValueError(
            f"The choice is not covered: mu_squared is not known for "
            f"{part.n_runs - part.n_gaussian} of {part.n_runs} runs. Choose among the others."
        )
    most = max(run.mu_squared or 0.0 for run in runs)
    once: RenyiCurve = gaussian_curve(most + score, part.neighbors)
    return repetitions.cost(once).epsilon(delta)


def _part(
    data: str, unit: str, neighbors: str, runs: Sequence[Run], delta: float | None
) -> PartCost:
    promised = [run for run in runs if _promises(run)]
    gaussian = [run for run in promised if run.mu_squared is not None]
    basic = [run for run in promised if run.mu_squared is None]
    mu_squared = math.fsum(run.mu_squared or 0.0 for run in gaussian)
    total = math.fsum(run.delta for run in basic)
    epsilon = math.fsum(run.epsilon for run in basic)
    if gaussian:
        at = max(run.delta for run in gaussian) if delta is None else delta
        total += at
        epsilon += epsilon_from_mu(math.sqrt(mu_squared), at)
    unbounded = len(runs) - len(promised)
    return PartCost(
        data=data,
        unit=unit,
        neighbors=neighbors,
        n_runs=len(runs),
        n_gaussian=len(gaussian),
        n_basic=len(basic),
        n_unbounded=unbounded,
        mu_squared=mu_squared,
        epsilon=math.inf if unbounded or total >= 1 else epsilon,
        delta=total,
    )


def _promises(run: Run) -> bool:
    """Whether a run has a claim, and the claim holds: nothing is assumed where it says nothing."""
    claim: Mapping[str, Any] = run.guarantee
    return claim.get("holds") is True and math.isfinite(run.epsilon) and math.isfinite(run.delta)

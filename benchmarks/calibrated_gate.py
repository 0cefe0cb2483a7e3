"""The gate on true classes beside one that computes the interval anew for every class.

Both decide from the same calibration rows. The plain one asks ``CalibratedJoint`` for the upper
limit of the gap after each answer that it might give, limits of proportions included.

Run: python benchmarks/calibrated_gate.py [--save]
"""

from __future__ import annotations

import time

import _harness
import numpy as np

from evenhand.fairness import EqualizedOdds
from evenhand.fairness.calibration import CalibratedJoint
from evenhand.fairness.gate.calibrated import CalibratedGate, GateCalibration
from evenhand.fairness.tally import JointTally, Tally

SEED = 0
MARGIN = 0.15
WIDER = 0.3
"""Beyond 2 x 2: rarer cells have wider limits."""
LEFT_OUT = 1e-4
"""Decisions this near to the margin are not compared: our limits are rounded to millionths."""


class Recomputed(CalibratedGate):
    """Every candidate class from the tables alone."""

    nearest = 1.0

    def _within_after_one_more(self, group: int) -> tuple[int, ...]:
        assert self.calibration is not None
        found = []
        for label in range(self.n_classes):
            counts = self.counts
            counts[group, label] += 1
            active = np.flatnonzero(counts.sum(axis=1))
            joint = CalibratedJoint(
                answered=Tally(counts=counts[active]),
                labelled=JointTally(counts=self.calibration.labelled.counts[active]),
                sampled=False,
            )
            high = joint.gap(self.notion).high
            self.nearest = min(self.nearest, abs(high - self.notion.margin))
            if high <= self.notion.margin:
                found.append(label)
        return tuple(found)


def known(n_groups: int, n_classes: int) -> GateCalibration:
    truth = 0.7 * np.eye(n_classes) + 0.3 / n_classes
    counts = np.random.default_rng(SEED).poisson(4000 * truth, (n_groups, n_classes, n_classes))
    return GateCalibration(labelled=JointTally(counts=counts))


def opened(kind: type[CalibratedGate], size: tuple[int, int]) -> CalibratedGate:
    margin = MARGIN if size == (2, 2) else WIDER
    return kind(EqualizedOdds(margin=margin), *size, calibration=known(*size), cold_start=10)


def decide(gate: CalibratedGate, stream: list[tuple[int, int]]) -> list[bool]:
    return [
        label in gate.admissible(group) and gate.offer(group, label).given
        for group, label in stream
    ]


def measure(size: tuple[int, int], n: int, warmth: int) -> None:
    """Time ``n`` decisions after so many answers to each cell."""
    rng = np.random.default_rng(SEED)
    rates = rng.dirichlet(np.full(size[1], 8.0), size=size[0])
    # All groups are under comparison before the clock starts: two groups in turn, then others.
    warm = [(z, k) for z in range(size[0]) for k in range(size[1]) for _ in range(warmth)]
    groups = rng.integers(0, size[0], n).tolist()
    stream = [(z, int(rng.choice(size[1], p=rates[z]))) for z in groups]

    def gate(
        kind: type[CalibratedGate],
        size: tuple[int, int] = size,
        warm: list[tuple[int, int]] = warm,
    ) -> CalibratedGate:
        made = opened(kind, size)
        for group, label in warm:
            made.give_by_hand(group, label)
        return made

    def check(stream: list[tuple[int, int]] = stream, gate: object = gate) -> None:
        ours, plain = gate(CalibratedGate), gate(Recomputed)  # type: ignore[operator]
        same = decide(ours, stream) == decide(plain, stream)
        assert same or plain.nearest < LEFT_OUT, "they decide differently"

    many = (stream * (2000 // n + 1))[:2000]

    def alone(_: float, many: list[tuple[int, int]] = many, gate: object = gate) -> object:
        own, start = gate(CalibratedGate), time.process_time()  # type: ignore[operator]
        decide(own, many)
        return {"us_per_decision": round(1e6 * (time.process_time() - start) / len(many), 1)}

    _harness.run(
        "calibrated_gate",
        ours=lambda stream=stream, gate=gate: decide(gate(CalibratedGate), stream),
        plain=lambda stream=stream, gate=gate: decide(gate(Recomputed), stream),
        check=check,
        sizes={"groups": size[0], "classes": size[1], "decisions": n},
        repeats=3 if size == (2, 2) else 2,
        seed=SEED,
        clock=time.process_time,
        target="below 100 us a decision at 2 x 2",
        also=alone,
    )


def main() -> None:
    # An answer by hand takes 30 ms at 10 x 10: fewer of them.
    for size, n, warmth in (((2, 2), 60, 8), ((5, 3), 20, 8), ((5, 5), 10, 8), ((10, 10), 2, 1)):
        measure(size, n, warmth)


if __name__ == "__main__":
    main()

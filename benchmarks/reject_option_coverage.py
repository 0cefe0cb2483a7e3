"""How long a late group should wait: coverage, and groups starved, by cold start and margin.

Streams at Adult's rates, 4,000 requests, 60 seeds; with ``--data``, what a private model says of
test rows of Adult, ACS-Income and Bank (``DPSGDClassifier``, epsilon 1, six fits of each, two
orders of 6,000 rows). A group is starved when fewer than a fifth of its labels are given. Cold
start "default" is 50 or 2 / margin, and a first block of 1 / (2 margin) - 1 labels or more; a
number stands alone.

Run: python benchmarks/reject_option_coverage.py [--data] [--save]
"""

from __future__ import annotations

import argparse

import _harness
import numpy as np

from evenhand.fairness import DemographicParity, RejectOption
from evenhand.fairness.gate.table_gate import default_cold_start

N_REQUESTS, N_SEEDS, STARVED = 4000, 60, 0.2
N_FITS, N_ORDERS, N_ROWS = 6, 2, 6000
SETTINGS = (
    *((0.01, cold) for cold in (100, 200, 500)),
    *((0.02, cold) for cold in (50, 100, 250)),
    *((0.05, cold) for cold in (50, 100)),
    *((0.1, cold) for cold in (50, 100)),
    *((margin, None) for margin in (0.01, 0.02, 0.05, 0.1)),
)
OF_DATA = tuple((margin, cold) for margin in (0.02, 0.05, 0.1) for cold in (None, 0, 100))
"""0 stands for 50 or 2 / margin, whatever the block."""


Stream = tuple[np.ndarray, np.ndarray]


def drawn(seed: int) -> Stream:
    """Draw labels and groups at Adult's rates."""
    rng = np.random.default_rng(seed)
    groups = (rng.random(N_REQUESTS) < 0.32).astype(int)
    return (rng.random(N_REQUESTS) < np.where(groups == 1, 0.1136, 0.3125)).astype(int), groups


def said(data: str) -> tuple[list[Stream], list[str]]:
    """Ask private models about test rows, in several orders."""
    from evenhand import Budget, DPSGDClassifier, datasets
    from evenhand.fairness.groups import encode_groups
    from evenhand.privacy import FloatNoise

    streams: list[Stream] = []
    for seed in range(N_FITS):
        split = getattr(datasets, f"load_{data}")().split(public=0.2, test=0.25, random_state=seed)
        model = DPSGDClassifier(
            Budget(epsilon=1.0, delta=1e-5),
            n_steps=600,
            batch_size=1024,
            noise=FloatNoise(),
            random_state=seed,
        ).fit(split.private.X, split.private.y, X_public=split.public.X)
        groups = encode_groups(split.test.groups)
        labels = np.asarray(model.predict(split.test.X)).astype(int)
        for order in range(N_ORDERS):
            rows = np.random.default_rng([seed, 16, order]).permutation(len(labels))[:N_ROWS]
            streams.append((labels[rows], groups.codes[rows]))
    return streams, list(groups.names)


def shares(stream: Stream, margin: float, cold_start: int | None) -> tuple[float, np.ndarray]:
    """Return the share given of all labels, and of each group's."""
    labels, groups = stream
    if cold_start == 0:
        cold_start = default_cold_start(margin)
    option = RejectOption(
        DemographicParity(margin=margin), ["0", "1"], ["no", "yes"], cold_start=cold_start
    )
    option.decide(labels, groups)
    option.deliver()
    assert option.gap <= margin
    table = option.coverage
    return table.overall, table.given.sum(axis=1) / table.offered.sum(axis=1)


def line_of(
    streams: list[Stream], margin: float, cold_start: int | None, **about: object
) -> dict[str, object]:
    """Return what one setting gives over all streams."""
    runs = [shares(stream, margin, cold_start) for stream in streams]
    overall = [one for one, _ in runs]
    by_group = np.array([each for _, each in runs])
    sizes = {"requests": len(streams[0][0]), "seeds": len(streams)}
    return {
        **_harness.heading("reject_option_coverage", seed=0, sizes=sizes),
        **about,
        "margin": margin,
        "cold_start": "default" if cold_start is None else cold_start or default_cold_start(margin),
        "coverage": round(float(np.mean(overall)), 3),
        "coverage_sd": round(float(np.std(overall)), 3),
        "coverage_by_group": by_group.mean(axis=0).round(3).tolist(),
        "runs_with_a_starved_group": int((by_group.min(axis=1) < STARVED).sum()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--save", action="store_true", help="append the lines to results.jsonl")
    parser.add_argument("--data", action="store_true", help="labels of models, of three data sets")
    given = parser.parse_args()
    if not given.data:
        streams = [drawn(seed) for seed in range(N_SEEDS)]
        for margin, cold_start in SETTINGS:
            _harness.report(line_of(streams, margin, cold_start), save=given.save)
        return
    for data in ("adult", "acs_income", "bank"):
        streams, names = said(data)
        for margin, cold_start in OF_DATA:
            found = line_of(streams, margin, cold_start, data=data, groups=names)
            _harness.report(found, save=given.save)


if __name__ == "__main__":
    main()

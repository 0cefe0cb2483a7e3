"""Thresholds around DP-SGD beside rivals from the literature, by hypervolumes over seeds.

    python reproductions/rivals.py [--seeds 10] [--data NAME ...] [--kept FILE] [--save]

Tables: Adult, Credit and ACS-Income (Connecticut). Every seed is a split of its own, as in
``beside_glued``: 65 % private, 15 % public and 20 % test rows, the same for every way; epsilon 1
and 3 at delta 1e-5; noise from the operating system. Public rows scale the columns of all ways, and
cut those of DP-EBM into bins; no label of theirs is read. No setting is read off these tables.

- *DP-SGD, thresholds* (ours): ``DPSGDClassifier`` with its defaults, and one threshold per group
  that is set on the public rows, whose groups it reads. Measured again on the same splits when
  curves had come to it, and when it whitened its rows; rows of the others are those of commit
  74177e5, handed on in ``--kept``.
- *DP-EBM, thresholds*: ``DPEBMClassifier`` with its defaults (log-odds, rate .2, chosen on
  ACS-Income of Maryland), and the same thresholds.
- *DP-EBM as printed, thresholds*: residuals of the label, rate .01, no recalibration, which are the
  paper's; bins are public here.
- *DP2DP*: ``DP2DPClassifier`` with its defaults, which are reconstructions.
- *DP-decoupled*, *DP-post-processing*: with their defaults, the latter for demographic parity; a
  quarter of epsilon is for the table.
- *FairDP*: ``FairDPClassifier`` with its defaults, logistic regression. It has no margin to set,
  and so one point; its authors train a network of 32 units, by an optimiser whose state reads
  private batches.

- *SAFES*: rows of ``MarginalSynthesizer``, whose categories and bounds are released from the same
  budget, 20,000 drawn as often as they come; then ``OptimizedPreprocessing`` with its defaults, and
  scikit-learn's logistic regression of what it gives. All margins are of the same rows, and cost
  nothing more. Added after the others were measured, by the same rules.

- *Barycenters* (Xian, Li and Zhao 2024): ``DPBarycenterClassifier`` with its defaults, parts of
  which are reconstructions; a quarter of epsilon is for the table. Added later too, by the same
  rules.

All but FairDP and SAFES read the group of whom they decide about. Margins .01, .02, .05, .1 and .2
of demographic parity between every two groups, and none; for DP2DP each is a fit of its own that
spends the whole budget, and publishing all of them would cost more. What is drawn at random is
drawn once.

Of each way the points (error, gap) on the test rows have a hypervolume in the unit square. What is
shown is ours minus the rival's, its mean and 95 % interval over seeds, pair by pair. Rules, written
before the first run: a row agrees ("yes") if the interval lies above 0, does not ("no") if it lies
below, and is "level" if it holds 0. "no" rows stay.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from _paired import differences
from _table import Mean, Runs, asked, commit, interval, rule, select, write
from beside_glued import BUILT_IN, DELTA, MARGINS, Split, volume
from sklearn.linear_model import LogisticRegression

from evenhand import Budget, DemographicParity, DPPostProcessingClassifier, DPSGDClassifier
from evenhand.baselines.barycenter import DPBarycenterClassifier
from evenhand.baselines.decoupled import DPDecoupledClassifier
from evenhand.baselines.dp2dp import DP2DPClassifier
from evenhand.baselines.explainable_boosting import DPEBMClassifier
from evenhand.baselines.fairdp import FairDPClassifier
from evenhand.baselines.safes import OptimizedPreprocessing
from evenhand.datasets import Dataset, PublicEncoder
from evenhand.generators import MarginalSynthesizer
from evenhand.privacy import FloatNoise

OURS, EBM, PRINTED = "DP-SGD, thresholds", "DP-EBM, thresholds", "DP-EBM as printed, thresholds"
DP2DP, DECOUPLED, POST, FAIRDP = "DP2DP", "DP-decoupled", "DP-post-processing", "FairDP"
SAFES, BARYCENTERS = "SAFES", "Barycenters"
WAYS = (OURS, EBM, PRINTED, DP2DP, DECOUPLED, POST, FAIRDP, SAFES, BARYCENTERS)
DRAWN = 20_000
GROUP, LABEL = "its group", "its label"
CUT: dict[str, Any] = {
    OURS: DPSGDClassifier,
    EBM: DPEBMClassifier,
    PRINTED: functools.partial(DPEBMClassifier, residuals="label", recalibrated=False),
}
DERIVED: dict[str, Any] = {
    DECOUPLED: DPDecoupledClassifier,
    POST: DPPostProcessingClassifier,
    BARYCENTERS: DPBarycenterClassifier,
}
TABLES = {"Adult": "adult", "Credit": "credit", "ACS-Income (CT)": "acs-ct"}
EPSILONS = (1.0, 3.0)
NONE = 1.0
"""A margin that nothing is outside of."""
SHOWN = 0.05
NAME = "rivals"

Points = list[tuple[float, float, float]]
"""Margin, error and gap."""


def parity(margin: float) -> DemographicParity:
    """Return demographic parity between every two groups."""
    return DemographicParity(margin=margin, reference="pairwise")


def points(way: str, split: Split, epsilon: float) -> Points:
    """Return the points of one way on the test rows."""
    common = {
        "budget": Budget(epsilon=epsilon, delta=DELTA),
        "random_state": split.seed,
    }
    private, public, test = split.private, split.public, split.test
    if way == SAFES:
        return [(m, *split.point(decided)) for m, decided in safes(split, common)]
    told = {"X_public": public.X}
    if way in CUT:
        model = CUT[way](**common).fit(private.X, private.y, **told)
        found = [(NONE, *split.point(model.predict(test.X)))]
        models = [
            (margin, model.with_group_thresholds(public.X, public.groups, fairness=parity(margin)))
            for margin in MARGINS
        ]
    else:
        told["sensitive_features"] = private.groups
        found = []
        if way == FAIRDP:
            model = FairDPClassifier(**common).fit(private.X, private.y, **told)
            return [(NONE, *split.point(model.predict(test.X)))]
        if way == DP2DP:
            models = [
                (m, DP2DPClassifier(**common, fairness=parity(m)).fit(private.X, private.y, **told))
                for m in (*MARGINS, NONE)
            ]
        else:
            model = DERIVED[way](**common, fairness=parity(NONE))
            model.fit(private.X, private.y, **told)
            models = [(m, model.with_fairness(parity(m))) for m in (*MARGINS, NONE)]
    for margin, one in models:
        decided = one.predict(test.X, sensitive_features=test.groups, random_state=0)
        found.append((margin, *split.point(decided)))
    return found


def safes(split: Split, common: dict[str, Any]) -> Iterator[tuple[float, Any]]:
    """Yield margins, and what a model of drawn rows that were moved to it decides."""
    encoder = PublicEncoder().fit(split.public.X)
    private, test = split.private, encoder.transform(split.test.X)
    frame = private.X.assign(
        **{GROUP: np.asarray(private.groups), LABEL: np.asarray(private.y).astype(str)}
    )
    named = {"label": LABEL, "sensitive": GROUP}
    made = MarginalSynthesizer(random_state=split.seed, noise=FloatNoise())
    made.fit(frame, **named, budget=common["budget"])
    rows = made.sample(DRAWN, balance=(), random_state=split.seed)
    for margin in (*MARGINS, NONE):
        moved = OptimizedPreprocessing(margin=margin).transform(
            rows, **named, random_state=split.seed
        )
        X = encoder.transform(moved.drop(columns=[GROUP, LABEL])[list(split.public.X.columns)])
        model = LogisticRegression(max_iter=500).fit(X, moved[LABEL])
        yield margin, model.predict(test).astype(split.classes.dtype)


@functools.cache
def load(name: str) -> Dataset:
    """Return a table, read once."""
    return BUILT_IN[TABLES[name]]()


def measure(data: str, way: str, epsilon: float, seed: int) -> dict[str, Any]:
    """Return the points of one way, seed and epsilon."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = points(way, Split(load(data), seed), epsilon)
    return {"data": data, "way": way, "epsilon": epsilon, "seed": seed, "points": found}


def size(row: dict[str, Any]) -> float:
    """Return the hypervolume of a run."""
    return volume([(error, gap) for _, error, gap in row["points"]])


def verdicts(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what the rules of the docstring say, by table, epsilon and rival."""
    found = []
    for name, epsilon, rival in product(TABLES, EPSILONS, WAYS[1:]):
        own = select(rows, data=name, epsilon=epsilon)
        ours, theirs = select(own, way=OURS), select(own, way=rival)
        apart = differences(ours, theirs, "seed", of=size)
        if len(apart) < 2:  # no interval
            continue
        difference = interval(apart.values())
        found.append(
            {
                "data": name,
                "epsilon": epsilon,
                "rival": rival,
                "ours": interval(map(size, ours)).mean,
                "its": interval(map(size, theirs)).mean,
                "difference": difference.mean,
                "pm": difference.half,
                "seeds": len(apart),
                "agrees": difference.judged("yes", "level", "no"),
            }
        )
    return found


def cell(rows: list[dict[str, Any]], margin: float) -> str:
    """Return mean error and gap at a margin, with half widths of 95 % intervals."""
    at = [(e, g) for row in rows for m, e, g in row["points"] if m == margin]
    if not at:
        return "-"
    return " / ".join(f"{interval(column):.4f}" for column in zip(*at, strict=True))


def lines(rows: list[dict[str, Any]]) -> list[str]:
    """Return the tables of a page."""
    out = ["| data | epsilon | rival | hypervolume: ours | its | ours minus its | agrees? |"]
    out.append(rule(7))
    out += [
        f"| {v['data']} | {v['epsilon']:g} | {v['rival']} | {v['ours']:.4f} | {v['its']:.4f} | "
        f"{Mean(v['difference'], v['pm']):+.4f} | {v['agrees']} |"
        for v in verdicts(rows)
    ]
    out += ["", f"| data | epsilon | way | error / gap: no margin | margin {SHOWN:g} |", rule(5)]
    for name, epsilon, way in product(TABLES, EPSILONS, WAYS):
        if own := select(rows, data=name, epsilon=epsilon, way=way):
            cells = " | ".join(cell(own, margin) for margin in (NONE, SHOWN))
            out.append(f"| {name} | {epsilon:g} | {way} | {cells} |")
    return out


def main() -> None:
    """Measure what is missing, and print the tables."""
    given = asked(__doc__, seeds=10, data=TABLES).parse_args()
    rows = Runs(given.kept)
    rows.complete(measure, seed=range(given.seeds), data=given.data, epsilon=EPSILONS, way=WAYS)
    print(*lines(rows), sep="\n")
    if given.save:
        save(rows, commit())


def save(rows: list[dict[str, Any]], commit: str) -> None:
    """Write the points as JSON and as tables."""
    counted = pd.DataFrame(rows).groupby(["data", "way", "epsilon"])["seed"].nunique()
    write(
        NAME,
        {"commit": commit, "verdicts": verdicts(rows), "rows": rows},
        f"# Thresholds around DP-SGD beside rivals from the literature, {counted.min()} seeds\n",
        f"`python reproductions/{NAME}.py --save`; the ways, their settings and the rules of the "
        f"verdicts stand in the script. Commit {commit}.\n",
        *lines(rows),
    )


if __name__ == "__main__":
    main()

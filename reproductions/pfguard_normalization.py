"""Two normalisations of fair sampling, by what is drawn and by digits: PFGuard's Section E.4.

    python reproductions/pfguard_normalization.py [--data NAME] [--seeds 5] [--runs FILE] [--save]

PFGuard divides a picture's weight by the sum of all weights (N1), or by that of all others (N2,
``leave_one_out``; Skare et al. 2003). By the paper FID is lower with N2, the more so the smaller
batches are, and about the same with large ones. As there, one of the classes 3 and 1 is three times
as rare, and one picture in four of each is turned: shares of 9, 3, 3 and 1 in sixteen.

"law": how often each of these four is drawn from a part of n pictures, over every part that there
is, weighed by how likely it is; no noise and no chance. *Disparity* is the L2 distance of these
shares to even ones. Weights are by the true shares (PFGuard's Equation 5; here they are public), or
even in the partition, which is our default and counted apart. A row agrees if N2 is nearer. Batches
are drawn with replacement from all that a teacher holds, so none of this depends on their size.

"digits": GS-WGAN with dense networks at the scale, sizes and signal to noise of
``pfguard_teachers.py``, conditioned on the label alone, weights by the public shares; a teacher has
about 8 pictures, as in the paper, and batches of 8, 16 and 32, a quarter of the paper's. All
critics answer at every step, so batches cost nothing here. FD-pixels is a Frechet distance in the
pixels, no FID, and KL is of groups to even shares by a classifier of real pictures. Claims are the
paper's of FD-pixels, and ours of KL, apart; verdicts by the rule of ``pfguard_teachers.py``.

The table "law" had been calculated for several shares before this was written; "digits" and its
rules were fixed before the first fit, which read the test pictures. "no" rows stay.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Mapping
from functools import partial
from itertools import combinations
from math import lgamma
from typing import Any

import numpy as np
from _table import Runs, asked, claim_lines, interval, rule, save_beside
from pfguard_bias import with_verdicts
from pfguard_teachers import DRAWN, SCALE, SIZES, TEACHERS, budget
from teacher_gan_choices import judged

from evenhand.datasets.images import ImageData, load_mnist
from evenhand.datasets.images.bias import binary_classes, rotated
from evenhand.generators import GroupBalancedSampler
from evenhand.generators.images import GSWGANImages
from evenhand.typing import FloatArray, IntArray

SHARES = (1 / 16, 3 / 16, 3 / 16, 9 / 16)
"""Of 1 and 3, rotated and upright: the setting's own, known because it was made so."""

RATIO = 3.0
HELD = (2, 4, 8, 16, 32)
BATCHES = (8, 16, 32)
N1, N2 = "N1", "N2"
KNOWN, PARTITION = "by public shares", "even in the partition"
DATA = ["law", "digits"]
TITLES = {
    "law": "What is drawn from a part of so many pictures",
    "digits": "Digits that GS-WGAN draws, by batch size",
}


def sampler(weights: str, normalization: str) -> GroupBalancedSampler:
    """Return the sampler of a row."""
    known = {"scope": "public", "shares": SHARES} if weights == KNOWN else {}
    return GroupBalancedSampler(**known, leave_one_out=normalization == N2)


def parts(n: int, n_groups: int) -> IntArray:
    """Return how many of each group every part of ``n`` pictures may hold, one part a row."""
    bars = np.array(list(combinations(range(n + n_groups - 1), n_groups - 1)))
    ends = np.full((len(bars), 1), n + n_groups - 1)
    return np.diff(np.concatenate([0 * ends - 1, bars, ends], axis=1), axis=1) - 1


def law(n: int, of: GroupBalancedSampler) -> FloatArray:
    """Return how often each group is drawn, over all parts of ``n`` pictures with ``SHARES``."""
    found = np.zeros(len(SHARES))
    for held in parts(n, len(SHARES)):
        chance = lgamma(n + 1) - sum(lgamma(k + 1) for k in held) + held @ np.log(SHARES)
        codes = np.repeat(np.arange(len(SHARES)), held)
        drawn = np.bincount(codes, of.probabilities(codes), minlength=len(SHARES))
        found += np.exp(chance) * drawn
    return found


def calculate(data: str, weights: str, at: int) -> dict[str, Any]:
    """Return the disparity of both normalisations."""
    found = {}
    for way in (N1, N2):
        away = law(at, sampler(weights, way)) - 1.0 / len(SHARES)
        found[way] = float(np.linalg.norm(away))
    return {
        **{"data": data, "weights": weights, "at": at, **found},
        "apart": weights == PARTITION,
        "agrees": "yes" if found[N2] < found[N1] - 1e-9 else "no",
    }


def pictures(seed: int) -> tuple[ImageData, ImageData]:
    """Return private pictures, ``SCALE`` of all, and test pictures with even groups; 14 x 14."""
    every = binary_classes(load_mnist("train"), 3, 1, ratio=RATIO, random_state=seed)
    some = np.random.default_rng(seed).permutation(len(every))[: round(SCALE * len(every))]
    private = rotated(every.take(np.sort(some)), ratio=RATIO, random_state=seed)
    test = rotated(load_mnist("test"), classes=(3, 1), ratio=1.0, random_state=seed)
    return private.pooled(2), test.pooled(2)


def measure(data: str, at: int, way: str, seed: int) -> dict[str, Any]:
    """Fit with batches of ``at`` pictures, and measure what is drawn."""
    private, test = pictures(seed)
    began = time.process_time()
    made = GSWGANImages(
        random_state=seed,
        n_teachers=TEACHERS,
        critic_rows=at,
        sampler=sampler(KNOWN, way),
        **SIZES,
    ).fit(
        private.images,
        private.y,
        sensitive_features=private.sensitive_features,
        budget=budget(TEACHERS),
    )
    took = time.process_time() - began
    drawn = made.sample(DRAWN, balance=("label",), random_state=seed)
    return {
        **{"data": data, "at": at, "way": way, "seed": seed, "private": len(private)},
        **judged(drawn, test, private, seed),
        **{"snr": made.snr_.value, "holds": made.guarantee_.holds, "cpu_s": took},
    }


def rows_of(runs: Iterable[Mapping[str, Any]], data: str, seeds: int) -> list[dict[str, Any]]:
    """Return the rows of a table, with every repeat, and its claims."""
    own = [dict(run) for run in runs if run["data"] == data and run.get("seed", 0) < seeds]
    if data == "law":
        return own
    rows = [
        {
            **{"data": data, "at": at, "way": way},
            "runs": sorted(
                (run for run in own if (run["at"], run["way"]) == (at, way)),
                key=lambda run: run["seed"],
            ),
        }
        for at in BATCHES
        for way in (N1, N2)
    ]
    return [*rows, *({"data": data, **claim} for claim in claims(rows))]


def claims(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what is claimed of digits: differences that should be below 0, by seed."""

    def gain(at: int, key: str) -> Any:
        one, two = (
            np.array([run[key] for run in row["runs"]])
            for way in (N1, N2)
            for row in rows
            if (row["at"], row["way"]) == (at, way)
        )
        return two - one

    small, middle, large = BATCHES
    said: list[tuple[str, Any, bool]] = [
        (f"FD-pixels is lower with N2, batches of {at}", gain(at, "far"), False)
        for at in (small, middle)
    ]
    said.append(
        (
            f"N2 lowers FD-pixels by more with batches of {small} than with {large}",
            gain(small, "far") - gain(large, "far"),
            False,
        )
    )
    said += [
        (f"ours: KL is lower with N2, batches of {at}", gain(at, "kl"), True) for at in BATCHES
    ]
    return with_verdicts(said)


def page(rows: list[dict[str, Any]], commits: Mapping[str, str]) -> list[str]:
    """Return the page."""
    out = ["# Two normalisations of fair sampling: what is drawn, and digits"]
    for data in DATA:
        own = [row for row in rows if row["data"] == data]
        if own:
            out += ["", f"## {TITLES[data]}", "", f"Commit {commits[data]}.", ""]
            out += _law(own) if data == "law" else _digits(own)
    return out


def _law(rows: list[dict[str, Any]]) -> list[str]:
    shares = ", ".join(f"{16 * share:.0f}" for share in SHARES)
    head = ("weights", "pictures of a part", "disparity, N1", "N2", "N2 is nearer?")
    out = [f"Exact; groups have {shares} sixteenths.", "", f"| {' | '.join(head)} |"]
    return [*out, rule(len(head))] + [
        f"| {row['weights']} | {row['at']} | {row[N1]:.4f} | {row[N2]:.4f} | {row['agrees']} |"
        for row in rows
    ]


def _digits(rows: list[dict[str, Any]]) -> list[str]:
    fits = [row for row in rows if "runs" in row]
    every = [run for row in fits for run in row["runs"]]
    sizes = ", ".join(f"{key}={value!r}" for key, value in SIZES.items())
    head = ("batch", "normalisation", "FD-pixels", "KL", "disparity", "MLP accuracy", "odds gap")
    out = [
        f"{TEACHERS} teachers on {every[0]['private']:,} pictures, `{sizes}`; "
        f"{len(fits[0]['runs'])} seeds, half widths are of 95 % intervals over them. Fits took "
        f"{sum(run['cpu_s'] for run in every) / 60:.0f} minutes of processor time.",
        *("", f"| {' | '.join(head)} |", rule(len(head))),
    ]
    for row in fits:
        cells = [
            format(interval(run[key] for run in row["runs"]), ".2f" if key == "far" else ".3f")
            for key in ("far", "kl", "disparity", "accuracy", "odds")
        ]
        out.append(f"| {row['at']} | {row['way']} | {' | '.join(cells)} |")
    return [*out, "", *claim_lines(rows)]


save = partial(save_beside, "pfguard_normalization", DATA, page)


def main() -> None:
    """Measure, print, and save if asked."""
    given = asked(__doc__, seeds=5, data=DATA).parse_args()
    warnings.simplefilter("ignore", UserWarning)
    runs = Runs(given.kept)
    for data in given.data:
        if data == "law":
            runs.complete(calculate, data=[data], weights=(KNOWN, PARTITION), at=HELD)
        else:
            runs.complete(measure, data=[data], seed=range(given.seeds), at=BATCHES, way=(N1, N2))
        rows = rows_of(runs, data, given.seeds)
        print(*page(rows, {data: "now"}), sep="\n")
        if given.save:
            save(rows, data)


if __name__ == "__main__":
    main()

"""DP-SGD on top of reweighting, by where gradients are clipped: PFGuard's Figure 3.

    python reproductions/pfguard_clip.py [--seeds 5] [--runs FILE] [--save]

By the paper DP-SGD harms a reweighted generator at either end of the clip norm C: a small one cuts
the gradients that were made longer for fairness, a large one needs noise that drowns the pictures.
MNIST, 3 against 1, 14 x 14, one picture turned for four upright ones in each class; one Wasserstein
critic by DP-SGD (``DPWGANImages``), conditioned on the label alone; pictures are weighted before
they are clipped, by one over the public share of their label and group, the rarest ones 1 ("none":
not at all). Sizes are those of ``pfguard_mnist.py``, chosen there on held-out training pictures,
with 4 about the median norm of a gradient that is not weighted. C is a sixteenth to sixteen times
that. A fifth of the pictures is private, and epsilon is raised until the predicted signal to noise
is that of all of them at epsilon 10 and delta 1e-5; noise comes from the operating system.

Test pictures have even groups. KL is of groups of drawn pictures to even shares, by a classifier of
real ones, and FD-pixels a Frechet distance in the pixels, no FID. A claim agrees, does not, or has
no verdict by the rule of ``pfguard_teachers.py``. Rules and settings were fixed before the first
fit. "no" rows stay.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from _table import Runs, asked, claim_lines, commit, interval, repeated, rule, write
from pfguard_bias import with_verdicts
from pfguard_mnist import WGAN
from pfguard_sampling import NONE, OWN
from pfguard_teachers import DRAWN, SCALE, budget
from teacher_gan_choices import judged

from evenhand.datasets.images import ImageData, load_mnist
from evenhand.datasets.images.bias import rotated
from evenhand.generators.images import DPWGANImages

WEIGHTED = "reweighted"
CLIPS = (0.25, 1.0, 4.0, 16.0, 64.0)
SMALL, _, MIDDLE, _, LARGE = CLIPS
CASES = {WEIGHTED: CLIPS, NONE: (SMALL, MIDDLE)}
SAMPLERS = {WEIGHTED: OWN, NONE: None}
NAME = "pfguard_clip"


def pictures(seed: int) -> tuple[ImageData, ImageData]:
    """Return private pictures, ``SCALE`` of all, and test pictures with even groups."""
    every = load_mnist("train")
    every = every.take(np.isin(every.y, (1, 3)))
    some = np.random.default_rng(seed).permutation(len(every))[: round(SCALE * len(every))]
    private = rotated(every.take(np.sort(some)), ratio=4.0, random_state=seed)
    test = rotated(load_mnist("test"), classes=(3, 1), ratio=1.0, random_state=seed)
    return private.pooled(2), test.pooled(2)


def measure(way: str, clip_norm: float, seed: int) -> dict[str, Any]:
    """Fit once, and measure what is drawn."""
    private, test = pictures(seed)
    settings = {**WGAN, "clip_norm": clip_norm, "sampler": SAMPLERS[way]}
    began = time.process_time()
    made = DPWGANImages(condition="label", random_state=seed, **settings).fit(
        private.images,
        private.y,
        sensitive_features=private.sensitive_features,
        budget=budget(1, of=round(1 / SCALE)),
    )
    took = time.process_time() - began
    drawn = made.sample(DRAWN, balance=("label",), random_state=seed)
    return {
        **{"way": way, "clip_norm": clip_norm, "seed": seed, "private": len(private)},
        **judged(drawn, test, private, seed),
        **{"snr": made.snr_.value, "holds": made.guarantee_.holds, "cpu_s": took},
    }


def rows_of(runs: Iterable[Mapping[str, Any]], seeds: int) -> list[dict[str, Any]]:
    """Return the rows, with every repeat, and the claims."""
    cases = [{"way": way, "clip_norm": at} for way, every in CASES.items() for at in every]
    rows = repeated(runs, cases, seeds)
    return [*rows, *claims(rows)]


def claims(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what is claimed: differences that should be below 0, by seed."""
    found = {
        (row["way"], row["clip_norm"], key): np.array([run[key] for run in row["runs"]])
        for row in rows
        for key in ("kl", "far", "accuracy")
    }

    def gain(clip_norm: float) -> Any:
        return found[NONE, clip_norm, "kl"] - found[WEIGHTED, clip_norm, "kl"]

    def away(of: float, than: float, key: str) -> Any:
        return found[WEIGHTED, of, key] - found[WEIGHTED, than, key]

    return with_verdicts(
        (words, differences, False)
        for words, differences in (
            (
                f"fairness: KL is lower with C {MIDDLE:g} than {SMALL:g}",
                away(MIDDLE, SMALL, "kl"),
            ),
            (
                f"fairness: reweighting lowers KL by less with C {SMALL:g} than {MIDDLE:g}",
                gain(SMALL) - gain(MIDDLE),
            ),
            (
                f"utility: FD-pixels is lower with C {MIDDLE:g} than {LARGE:g}",
                away(MIDDLE, LARGE, "far"),
            ),
            (
                f"utility: accuracy is lower with C {LARGE:g} than {MIDDLE:g}",
                away(LARGE, MIDDLE, "accuracy"),
            ),
        )
    )


def lines(rows: list[dict[str, Any]]) -> list[str]:
    """Return the tables of the page."""
    head = ("weights", "C", "KL", "disparity", "FD-pixels", "MLP accuracy", "odds gap")
    out = [f"| {' | '.join(head)} |", rule(len(head))]
    for row in rows:
        if "runs" in row:
            cells = [
                format(interval(run[key] for run in row["runs"]), ".1f" if key == "far" else ".3f")
                for key in ("kl", "disparity", "far", "accuracy", "odds")
            ]
            out.append(f"| {row['way']} | {row['clip_norm']:g} | {' | '.join(cells)} |")
    return [*out, "", *claim_lines(rows)]


def save(rows: list[dict[str, Any]], commit: str) -> None:
    """Write the JSON and the page."""
    every = [run for row in rows for run in row.get("runs", ())]
    sizes = ", ".join(f"{key}={value!r}" for key, value in WGAN.items() if key != "clip_norm")
    write(
        NAME,
        {"commit": commit, "rows": rows},
        "# DP-SGD on top of reweighting: where gradients are clipped\n",
        f"MNIST, 3 against 1, a fifth turned; {every[0]['private']:,} pictures, `{sizes}`; "
        f"{len(rows[0]['runs'])} seeds, half widths are of 95 % intervals over them. Fits took "
        f"{sum(run['cpu_s'] for run in every) / 60:.0f} minutes of processor time. Commit "
        f"{commit}.\n",
        *lines(rows),
    )


def main() -> None:
    """Measure, print, and save if asked."""
    given = asked(__doc__, seeds=5).parse_args()
    warnings.simplefilter("ignore", UserWarning)
    runs = Runs(given.kept)
    for seed in range(given.seeds):
        for way, clips in CASES.items():
            runs.complete(measure, seed=[seed], way=[way], clip_norm=clips)
    rows = rows_of(runs, given.seeds)
    print(*lines(rows), sep="\n")
    if given.save:
        save(rows, commit())


if __name__ == "__main__":
    main()

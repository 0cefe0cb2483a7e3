"""MNIST 3 against 1 with a rotated minority: synthetic pictures, PFGuard's Tables 1, 2 and 3.

    python reproductions/pfguard_mnist.py [--runs FILE] [--keep] [--save]

The digits 3 and 1 of MNIST's training part at 14 x 14 (one row: 28 x 28), one in five turned by 90
degrees (12,873 pictures, none augmented: copies of one picture in several teachers would break the
claim). Tests are on the digits 3 and 1 of the test part, half of them turned. Noise is from the
operating system; delta is 1e-5. Every seed turns other pictures. 4,000 pictures are drawn; the
published networks are trained on them for 10 epochs. Groups of drawn pictures are those that a
classifier sees, which is trained on the private pictures, as many of each group; its accuracy on
the test pictures stands beside. Distances are in features of EfficientNet-Lite0, from at most 25
test pictures of each label and group, so they are not the published FIDs and have no verdict.
Teachers are 400 in 200 steps of 16 pictures, a fraction of the papers' sizes, with one seed.
G-PATE, DataLens and the ways of sampling are in pfguard_sampling.py. Of Table 3, "Reweighting",
"DP-SGD-F" and "DPSGD-GA" are DP-WGAN: its critic learns from clipped gradients of single private
pictures. In GS-WGAN it is gradients in drawn pictures that are clipped, and these belong to no
private group. It has three seeds, the third because two did not agree about the order of ways to
clip. With --keep what is saved in results/ is not measured again; every run names its commit.

A row agrees if the mean of every measure with a published number beside it is at least as good. The
published numbers are at epsilon 10, which does not hold for GS-WGAN (coherent accounting of its
noise gives 379); ours holds, and is at epsilon 10 or 1, as the row says. A claim that PFGuard
lowers a gap agrees if the mean over seeds is lower. Rows beside DP-SGD-F and DPSGD-GA have no
verdict: Table 3 shows these as failures, and to be better than they are says nothing. The order
that Table 3 gives to two methods agrees if the means over seeds have the same order. "no" rows
stay.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from _table import RESULTS, commit, interval, keep, kept, rule, write

from evenhand import Budget
from evenhand.datasets.features import EfficientNetLite0
from evenhand.datasets.images import ImageData, load_mnist
from evenhand.datasets.images.bias import rotated, unknown_groups
from evenhand.generators import GroupBalancedSampler
from evenhand.generators.images import (
    DPWGANImages,
    GroupReference,
    GSWGANImages,
    MeanEmbeddingImages,
    PlainGANImages,
    TeacherGANImages,
)
from evenhand.generators.images.codec import ImageSample
from evenhand.generators.images.evaluation import evaluate_images
from evenhand.generators.images.synthesizer import ImageSynthesizer

ROWS = 4_000
EVENLY = GroupBalancedSampler()
SIZES: dict[str, Any] = {"n_teachers": 400, "n_steps": 200, "n_rows": 16}
# Chosen by a few runs with a fifth of the training pictures held out, and one seed that is not used
# here; no test picture was looked at. The bound is about the median of the gradients' norms.
WGAN: dict[str, Any] = {
    "n_batches": 25,
    "n_steps": 300,
    "hidden": (24,),
    "critic_rate": 4e-3,
    "clip_norm": 4.0,
}
PER_GROUP = 25
REFERENCE = 0.1
MODELS = ("MLP", "CNN")
# Method: KL, distribution disparity; then EO gap, demographic gap and accuracy of MLP and of CNN.
PUBLISHED: Mapping[str, tuple[float, ...]] = {
    "Vanilla": (0.229, 0.459),
    "Fair-only": (0.021, 0.117),
    "GS-WGAN": (0.177, 0.383, 0.153, 0.061, 0.910, 0.172, 0.069, 0.927),
    "GS-WGAN + PFGuard": (0.067, 0.242, 0.067, 0.044, 0.900, 0.063, 0.035, 0.927),
    "Reweighting": (0.009, 0.044),
    "DP-SGD-F": (0.659, 0.494),
    "DPSGD-GA": (0.693, 0.707),
}
FAILURES = {"DP-SGD-F", "DPSGD-GA"}
NO_TEACHERS = "mean embedding"  # what it agrees with says nothing for PFGuard
# Table 3: epsilon (None: no privacy), KL, distribution disparity.
THIRD = {
    "Vanilla": (None, 0.229, 0.459),
    "DP-only": (10, 0.177, 0.383),
    "Fair-only": (None, 0.021, 0.117),
    "Reweighting": (13, 0.009, 0.044),
    "DP-SGD-F": (11, 0.659, 0.494),
    "DPSGD-GA": (10, 0.693, 0.707),
    "PFGuard": (10, 0.067, 0.242),
    "PFGuard (perc=0.1)": (10, 0.004, 0.041),
}
READ = {
    "kl": ("KL", 0),
    "disparity": ("distribution disparity", 1),
    "mlp_odds": ("MLP EO gap", 2),
    "mlp_demographic": ("MLP demographic gap", 3),
    "mlp_accuracy": ("MLP accuracy", 4),
    "cnn_odds": ("CNN EO gap", 5),
    "cnn_demographic": ("CNN demographic gap", 6),
    "cnn_accuracy": ("CNN accuracy", 7),
}
GREATER = {"mlp_accuracy", "cnn_accuracy"}


def mean_embedding(**settings: Any) -> ImageSynthesizer:
    """Return the default method."""
    return MeanEmbeddingImages(**settings)


def base(kind: Callable[..., ImageSynthesizer], **sizes: Any) -> Callable[..., ImageSynthesizer]:
    """Return a GAN without PFGuard: on labels alone, minibatches as they are."""
    return lambda **settings: kind(condition="label", sampler=None, **sizes, **settings)


def fair(kind: Callable[..., ImageSynthesizer], **sizes: Any) -> Callable[..., ImageSynthesizer]:
    """Return the same with balanced minibatches inside every partition."""
    return lambda **settings: kind(condition="label", sampler=EVENLY, **sizes, **settings)


def on_both(kind: Callable[..., ImageSynthesizer], **sizes: Any) -> Callable[..., ImageSynthesizer]:
    """Return the same conditioned on label and group."""
    return lambda **settings: kind(sampler=EVENLY, **sizes, **settings)


def clipped(**sizes: Any) -> Callable[..., ImageSynthesizer]:
    """Return one critic that learns by DP-SGD, on labels alone."""
    return lambda **settings: DPWGANImages(condition="label", **WGAN, **sizes, **settings)


AS_IS, EVEN, INFERRED = (
    "mean embedding, as it is",
    "mean embedding, balanced (default)",
    "mean embedding, balanced, groups told by a reference set",
)
FULL = "mean embedding, balanced, 28 x 28"
FAIR_GAN = "GS-WGAN + balanced sampling"
WGAN_FLAT, REWEIGHTED, GROUPWISE, ADAPTED = (
    "DP-WGAN",
    "DP-WGAN, reweighted by released shares",
    "DP-WGAN, bounds by group (DP-SGD-F)",
    "DP-WGAN, one bound that adapts (Global-Adapt)",
)
RELEASED = GroupBalancedSampler(scope="noisy")
VANILLA, FAIR_ONLY = "GAN without privacy", "GAN without privacy, balanced sampling"
# Name: maker, what is spread evenly, the published row beside it, epsilons with their seeds.
SETTINGS: Mapping[str, tuple[Any, tuple[str, ...], str, Mapping[float, int]]] = {
    AS_IS: (mean_embedding, (), "GS-WGAN", {10.0: 3, 1.0: 3}),
    EVEN: (mean_embedding, ("label", "sensitive"), "GS-WGAN + PFGuard", {10.0: 3, 1.0: 3}),
    INFERRED: (mean_embedding, ("label", "sensitive"), "GS-WGAN + PFGuard", {10.0: 2}),
    FULL: (mean_embedding, ("label", "sensitive"), "GS-WGAN + PFGuard", {1.0: 2}),
    "GS-WGAN": (base(GSWGANImages, critic_steps=2, **SIZES), ("label",), "GS-WGAN", {10.0: 1}),
    FAIR_GAN: (
        *(fair(GSWGANImages, critic_steps=2, **SIZES), ("label",), "GS-WGAN + PFGuard"),
        {10.0: 1},
    ),
    "all teachers each step, on label and group": (
        *(on_both(TeacherGANImages, **SIZES), ("label", "sensitive"), "GS-WGAN + PFGuard"),
        {10.0: 1},
    ),
    VANILLA: (base(PlainGANImages), ("label",), "Vanilla", {10.0: 1}),
    FAIR_ONLY: (fair(PlainGANImages), ("label",), "Fair-only", {10.0: 1}),
    WGAN_FLAT: (clipped(), ("label",), "GS-WGAN", {10.0: 3}),
    REWEIGHTED: (clipped(sampler=RELEASED), ("label",), "Reweighting", {10.0: 3}),
    GROUPWISE: (clipped(clip="group"), ("label",), "DP-SGD-F", {10.0: 3}),
    ADAPTED: (clipped(clip="global-adapt"), ("label",), "DPSGD-GA", {10.0: 3}),
}
PAIRS = [(name, f"{name} + balanced sampling") for name in SETTINGS if "+" not in name]
PAIRS = [(AS_IS, EVEN), *(pair for pair in PAIRS if pair[1] in SETTINGS)]
THIRD_OF = {
    VANILLA: "Vanilla",
    AS_IS: "DP-only",
    WGAN_FLAT: "DP-only",
    FAIR_ONLY: "Fair-only",
    REWEIGHTED: "Reweighting",
    GROUPWISE: "DP-SGD-F",
    ADAPTED: "DPSGD-GA",
    EVEN: "PFGuard",
    FAIR_GAN: "PFGuard",
    INFERRED: "PFGuard (perc=0.1)",
}
# By the KL of Table 3 the first is fairer than the second.
ORDER = (
    (REWEIGHTED, WGAN_FLAT),
    (WGAN_FLAT, GROUPWISE),
    (WGAN_FLAT, ADAPTED),
    (REWEIGHTED, FAIR_GAN),
    (FAIR_GAN, GROUPWISE),
    (FAIR_GAN, ADAPTED),
)


@cache
def digits(seed: int, factor: int) -> tuple[ImageData, ImageData]:
    """Return private and test pictures, ``factor`` times smaller than they are."""
    private = rotated(load_mnist("train"), classes=(3, 1), ratio=4, random_state=seed)
    test = rotated(load_mnist("test"), classes=(3, 1), ratio=1, random_state=seed)
    return private.pooled(factor), test.pooled(factor)


class Remembered:
    """An extractor that reads the same pictures once."""

    def __init__(self) -> None:
        self.network = EfficientNetLite0.load()
        self.name = self.network.name
        self.known: dict[bytes, Any] = {}

    def transform(self, images: Any) -> Any:
        """Return their features."""
        key = images.tobytes()
        if key not in self.known:
            self.known[key] = self.network.transform(images)
        return self.known[key]


def one_run(name: str, epsilon: float, seed: int, extractor: Any) -> dict[str, Any]:
    """Fit one generator and measure what it draws."""
    maker, even, _, _ = SETTINGS[name]
    private, test = digits(seed, 1 if name == FULL else 2)
    pictures, right = private, None
    groups: Any = private.sensitive_features
    if name == INFERRED:
        parts = unknown_groups(private, reference=REFERENCE, random_state=seed)
        pictures = parts.private
        groups = GroupReference(parts.reference.images, parts.reference.sensitive_features)
        right = float((groups.predict(pictures.images) == parts.truth).mean())
    began = time.process_time()
    made = maker(random_state=seed).fit(
        pictures.images,
        pictures.y,
        sensitive_features=groups,
        budget=Budget(epsilon=epsilon, delta=1e-5),
        classes=(1, 3),
        groups=("rotated", "upright"),
    )
    drawn: ImageSample = made.sample(ROWS, balance=even, random_state=seed)
    took = time.process_time() - began
    found = evaluate_images(
        drawn,
        test,
        train=private,
        models=MODELS,
        extractor=extractor,
        n_per_group=PER_GROUP,
        random_state=seed,
    )
    assert found.judged is not None
    models = {u.model: u for u in found.utility}
    return {
        "setting": name,
        "epsilon": epsilon,
        "seed": seed,
        "cpu_s": took,
        "snr": made.snr_.value,
        "holds": made.guarantee_.holds,
        "kl": found.judged.balance.kl.value,
        "disparity": found.judged.balance.disparity.value,
        "judge": found.judged.accuracy,
        "inferred": right,
        **{
            f"{model.lower()}_{what}": value
            for model, u in models.items()
            for what, value in (
                ("odds", u.gaps["equalized_odds_pairwise"].value),
                ("demographic", u.gaps["demographic_parity_pairwise"].value),
                ("accuracy", u.accuracy.value),
            )
        },
        "n_frechet": min((d.n for d in found.distances), default=0),
        "frechet": {d.group: d.frechet for d in found.distances},
    }


def row(name: str, epsilon: float, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Compare one setting at one epsilon with the published row beside it."""
    beside = SETTINGS[name][2]
    paper = PUBLISHED[beside]
    means = {key: float(np.mean([run[key] for run in runs])) for key in READ}
    agrees = all(
        means[key] >= paper[at] if key in GREATER else means[key] <= paper[at]
        for key, (_, at) in READ.items()
        if at < len(paper)
    )
    return {
        "setting": name,
        "epsilon": epsilon,
        "beside": beside,
        "published": list(paper),
        "runs": runs,
        "apart": name.startswith(NO_TEACHERS),
        "agrees": "-" if beside in FAILURES else "yes" if agrees else "no",
    }


def order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return which of two methods Table 3 gives the lower KL, measured."""
    by_seed = {
        r["setting"]: {run["seed"]: run["kl"] for run in r["runs"]}
        for r in rows
        if r["epsilon"] == 10.0
    }
    ours = {name: float(np.mean(list(found.values()))) for name, found in by_seed.items()}
    return [
        {
            "lower": one,
            "higher": other,
            "published": [THIRD[THIRD_OF[name]][1] for name in (one, other)],
            "ours": [ours[one], ours[other]],
            "seeds": [
                by_seed[one][seed] < by_seed[other][seed]
                for seed in sorted(by_seed[one].keys() & by_seed[other].keys())
            ],
            "agrees": "yes" if ours[one] < ours[other] else "no",
        }
        for one, other in ORDER
        if one in ours and other in ours
    ]


def claims(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the directions that PFGuard is published to have, measured."""
    said = []
    for without, with_it in PAIRS:
        for epsilon in SETTINGS[without][3]:
            one, other = (
                next((r for r in rows if r["setting"] == n and r["epsilon"] == epsilon), None)
                for n in (without, with_it)
            )
            if one is None or other is None:
                continue
            for key in ("kl", "mlp_odds", "cnn_odds"):
                a, b = ([run[key] for run in r["runs"]] for r in (one, other))
                said.append(
                    {
                        "claim": f"{READ[key][0]} is lower: {with_it}, than {without}",
                        "epsilon": epsilon,
                        "without": float(np.mean(a)),
                        "with": float(np.mean(b)),
                        "apart": with_it.startswith(NO_TEACHERS),
                        "agrees": "yes" if np.mean(b) < np.mean(a) else "no",
                    }
                )
    return said


def told(runs: list[dict[str, Any]], key: str, digits_: int = 3) -> str:
    """Return mean and half width; the mean alone of one run."""
    return f"{interval(run[key] for run in runs):.{digits_}f}"


def spent(row: dict[str, Any]) -> str:
    """Return the epsilon that holds."""
    return f"{row['epsilon']:g}" if row["runs"][0]["holds"] else "none"


def lines(rows: list[dict[str, Any]]) -> list[str]:
    """Return the page."""
    minutes = sum(run["cpu_s"] for r in rows for run in r["runs"]) / 60
    commits = dict.fromkeys(run["commit"] for r in rows for run in r["runs"])
    out = [
        f"# Synthetic MNIST, 3 against 1, a fifth turned, 14 x 14, commit {commit()}",
        "",
        f"Fits and draws took {minutes:.0f} minutes of processor time in all. Half widths are of "
        "95 % intervals over seeds (of two seeds, where so few stand, they are wide). Runs were "
        f"made at commits {', '.join(commits)}.",
        "",
        "## Table 1: groups of the drawn pictures",
        "",
    ]
    head = ("setting, ours", "ε", "seeds", "SNR", "judge is right", "published, beside")
    head += ("KL: paper / ours", "distribution disparity: paper / ours", "all measures agree?")
    out += [f"| {' | '.join(head)} |", rule(len(head))]
    for r in rows:
        runs, paper = r["runs"], r["published"]
        snr = f"{np.mean([run['snr'] for run in runs]):.3g}" if runs[0]["holds"] else "no noise"
        out.append(
            f"| {r['setting']} | {spent(r)} | {len(runs)} | {snr} "
            f"| {np.mean([run['judge'] for run in runs]):.3f} | {r['beside']} "
            f"| {paper[0]:.3f} / {told(runs, 'kl', 4)} "
            f"| {paper[1]:.3f} / {told(runs, 'disparity')} | {r['agrees']} |"
        )
    out += [
        "",
        "FD-EfficientNet-Lite0 (not FID), lower is nearer; only distances of as many pictures of "
        "one size can be compared:",
        "",
    ]
    cells = list(rows[0]["runs"][0]["frechet"])
    out += [f"| setting | ε | pictures per group | {' | '.join(cells)} |", rule(3 + len(cells))]
    for r in rows:
        found = [
            np.mean([run["frechet"][c] for run in r["runs"] if c in run["frechet"]] or [np.nan])
            for c in cells
        ]
        shown = (f"{value:.0f}" if np.isfinite(value) else "too few drawn" for value in found)
        n = ", ".join(sorted({str(run["n_frechet"]) for run in r["runs"]}))
        out.append(f"| {r['setting']} | {spent(r)} | {n} | {' | '.join(shown)} |")
    out += ["", "## Table 2: networks trained on the drawn pictures", ""]
    head = ("setting, ours", "ε", "published, beside")
    head += tuple(f"{words}: paper / ours" for words, at in READ.values() if at > 1)
    out += [f"| {' | '.join(head)} |", rule(len(head))]
    for r in rows:
        cells = [
            f"{r['published'][at]:.3f} / {told(r['runs'], key)}"
            if at < len(r["published"])
            else f"- / {told(r['runs'], key)}"
            for key, (_, at) in READ.items()
            if at > 1
        ]
        out.append(f"| {r['setting']} | {spent(r)} | {r['beside']} | {' | '.join(cells)} |")
    out += ["", "## Table 3: beside other ways", ""]
    head = ("published", "ε, as published", "KL", "distribution disparity", "ours", "ε, ours")
    head += ("KL, ours", "distribution disparity, ours")
    out += [f"| {' | '.join(head)} |", rule(len(head))]
    for name, (epsilon, kl, disparity) in THIRD.items():
        said = "none" if epsilon is None else f"{epsilon}"
        mine = [
            f"{r['setting']} | {spent(r)} | {told(r['runs'], 'kl', 4)} "
            f"| {told(r['runs'], 'disparity')}"
            for r in rows
            if THIRD_OF.get(r["setting"]) == name and r["epsilon"] == 10.0
        ]
        for ours in mine or ["not measured | - | - | -"]:
            out.append(f"| {name} | {said} | {kl:.3f} | {disparity:.3f} | {ours} |")
    out += ["", "The order by KL that these rows have in the paper, and here:", ""]
    head = ("lower", "than", "KL: paper", "KL: ours", "seeds in this order", "agrees?")
    out += [f"| {' | '.join(head)} |", rule(len(head))]
    for o in order(rows):
        paper, here = (" < ".join(f"{kl:.3f}" for kl in o[key]) for key in ("published", "ours"))
        here = here if o["agrees"] == "yes" else here.replace("<", "≥")
        seeds = f"{sum(o['seeds'])} of {len(o['seeds'])}"
        out.append(f"| {o['lower']} | {o['higher']} | {paper} | {here} | {seeds} | {o['agrees']} |")
    guessed = [run["inferred"] for r in rows for run in r["runs"] if run["inferred"] is not None]
    if guessed:
        out += ["", f"Groups told by the reference set were right for {np.mean(guessed):.1%}."]
    out += ["", "## What fair sampling and balance change", ""]
    head = ("claim", "ε", "without", "with", "agrees?")
    out += [f"| {' | '.join(head)} |", rule(len(head))]
    out += [
        f"| {c['claim']} | {c['epsilon']:g} | {c['without']:.4f} | {c['with']:.4f} "
        f"| {c['agrees']} |"
        for c in claims(rows)
    ]
    return out


def saved_runs() -> list[dict[str, Any]]:
    """Return the runs in results/."""
    saved = json.loads((RESULTS / "pfguard_mnist.json").read_text())
    return [{"commit": saved["commit"], **run} for r in saved["rows"] for run in r["runs"]]


def save(rows: list[dict[str, Any]]) -> None:
    """Write the JSON and the page."""
    about = {"commit": commit(), "rows": rows, "claims": claims(rows), "order": order(rows)}
    write("pfguard_mnist", about, *lines(rows))


def main() -> None:
    """Measure, print, and save if asked."""
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--runs", type=Path, help="Finished runs, one a line; those are not redone."
    )
    parser.add_argument("--keep", action="store_true", help="Do not measure saved runs again.")
    parser.add_argument("--save", action="store_true")
    asked = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    done = (saved_runs() if asked.keep else []) + kept(asked.runs)
    extractor, at = Remembered(), commit()
    jobs = [
        (name, epsilon, seed)
        for name, (_, _, _, epsilons) in SETTINGS.items()
        for epsilon, seeds in epsilons.items()
        for seed in range(seeds)
    ]
    runs: dict[tuple[str, float, int], dict[str, Any]] = {}
    for job in sorted(jobs, key=lambda job: (SETTINGS[job[0]][0] is not mean_embedding, job[2])):
        known = [r for r in done if (r["setting"], r["epsilon"], r["seed"]) == job]
        runs[job] = known[0] if known else {**one_run(*job, extractor), "commit": at}
        if not known:
            keep(asked.runs, runs[job])
    rows = [
        row(name, epsilon, [runs[name, epsilon, seed] for seed in range(seeds)])
        for name, (_, _, _, epsilons) in SETTINGS.items()
        for epsilon, seeds in epsilons.items()
    ]
    print(*lines(rows), sep="\n")
    if asked.save:
        save(rows)


if __name__ == "__main__":
    main()

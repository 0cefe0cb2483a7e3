"""Sampling strategies, GOLD, and what fair sampling costs: PFGuard's Tables 7, 8 and 6.

    python reproductions/pfguard_sampling.py --data sampling|methods|... [--seeds 3] [--save]

MNIST, 3 against 1, 14 x 14, one rotated picture for four upright ones in each class; the test
pictures are even. Epsilon 10, delta 1e-5, replace one record; all noise is drawn from the operating
system, and every claim but that of the published sampling holds. Teachers are 400, steps 200 of 16
drawn pictures. The paper's generators know the label only, and so do these (``condition="label"``)
unless a row says "conditioned on groups": what a group's share becomes is then up to the sampling.

The group of a drawn picture is what a classifier of real pictures says (its accuracy is given);
KL and disparity are of these shares to even ones. FD-pixels is a Frechet distance in the pixels
themselves, 300 pictures of each label and group on either side, and no FID: compare rows of ours.
A seed chooses which pictures are rotated and seeds the fit; the half widths are of a 95 % interval
over seeds, and with one seed of a bootstrap over its 4,000 drawn pictures. The defaults were first
chosen with a look at models tested on these very test pictures; ``teacher_gan_choices.py`` has
since tried those of the all-teachers GAN and of GS-WGAN again, on validation pictures that are not
among them. A row agrees if KL and disparity fall (or rise) against the row above it in the paper as
they do in the paper. "no" rows stay. What fair sampling adds to the time is the processor time of
drawing rows with it, less that without, over that of a whole fit: a row agrees if it is below the
4 % of the paper.

"networks" are dense and convolutional ones of GS-WGAN side by side at 28 x 28, at the scale that
the page names, three seeds; "networks-g-pate" and "networks-datalens" are the same of the others,
at the same scale and by the same rules, fixed before their first run; nothing was tried for them.
(A first run of these two had an eighth of the teachers and of the pictures, at an epsilon of the
same signal to noise.) Convolutional critics have 8, 16 and 32 maps, and the generator has residual
blocks; all else is alike, and so is the predicted signal to noise. Rows agree by the rule above.
Convolutions pay where accuracy of the MLP or FD-pixels, in the mean over both samplings of a seed,
is better beyond the half width of its interval over seeds, and the other is not worse beyond it. A
few fits of GS-WGAN on the validation pictures of ``teacher_gan_choices.py`` were seen before:
convolutional was worse than dense there, and less so at the critics' rate of 3e-3, which both have
here. A first scale, 50 steps after two of the critics each, was stopped after six fits of GS-WGAN,
for neither network had learnt much (accuracies of .50 to .79, FD-pixels over 50); dense networks on
those validation pictures chose this one, which takes as long.

Tables 7, 8 and 1 have three seeds. They had two, one and two before, and were run again whole: rows
agree by the same rule, and no row of the first runs is kept.
"""

from __future__ import annotations

import time
import warnings
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from _table import asked, interval, keep, kept, rule, save_beside

from evenhand import Budget
from evenhand.baselines.pfguard import (
    GlobalSharesTeacherGANImages,
    GoldTeacherGANImages,
    StratifiedTeacherGANImages,
)
from evenhand.datasets.images import ImageData, load_mnist
from evenhand.datasets.images.bias import rotated, unknown_groups
from evenhand.generators import GroupBalancedSampler
from evenhand.generators.images import (
    DataLensImages,
    GPATEImages,
    GroupReference,
    GSWGANImages,
    TeacherGANImages,
)
from evenhand.generators.images.evaluation import evaluate_images
from evenhand.generators.images.teachers import Teachers
from evenhand.typing import Array, FloatArray

BUDGET = Budget(epsilon=10.0, delta=1e-5)
SIZES: dict[str, Any] = {"n_teachers": 400, "n_steps": 200, "n_rows": 16}


class Scale(NamedTuple):
    """Pixels beside each other that become one, and what a fit has."""

    pooled: int
    sizes: dict[str, Any]


SHORT = {**SIZES, "n_steps": 100, "critic_steps": 1, "critic_rows": 8, "critic_rate": 3e-3}
SCALES = {
    "14 x 14": Scale(2, SIZES),
    "28 x 28, short": Scale(1, SHORT),
}
ROWS = 4000
NETWORKS = ("dense", "convolutional")
NETWORKED = {
    "networks": "GS-WGAN",
    "networks-g-pate": "G-PATE",
    "networks-datalens": "DataLens",
}
ORDER = ["sampling", "unknown", "methods", *NETWORKED, "time"]
TITLES = {
    "sampling": "Table 7: sampling strategies, all-teachers GAN",
    "unknown": "Table 8: groups unknown, told by a public reference of a tenth of the size; GOLD",
    "methods": "Table 1: each method with and without fair sampling",
    **{
        data: f"Table 1 with dense and with convolutional networks, {base}"
        for data, base in NETWORKED.items()
    },
    "time": "Table 6: what fair sampling adds to the time",
}
EVEN = GroupBalancedSampler()
# Of 1 and 3, rotated and upright: the setting's own shares, known because it was made so.
OWN = GroupBalancedSampler(scope="public", shares=(0.1, 0.4, 0.1, 0.4))
NOISY = GroupBalancedSampler(scope="noisy")


NONE, STRATIFIED = "none", "stratified: half of the teachers for each group"
# Sampler, what generator and critics know, and whether the paper has such a row.
STRATEGIES: dict[str, dict[str, Any]] = {
    NONE: {"sampler": None},
    "in the partition": {"sampler": EVEN},
    "public shares": {"sampler": OWN},
    "noisy shares": {"sampler": NOISY},
    "global shares, as published: no claim holds": {},
    "in the partition, conditioned on groups": {"sampler": EVEN, "condition": "label+group"},
    STRATIFIED: {"sampler": None},
}
METHODS: dict[str, Any] = {
    "global shares, as published: no claim holds": GlobalSharesTeacherGANImages,
    STRATIFIED: StratifiedTeacherGANImages,
}
FAIR = ("none", "in the partition", "in the partition, conditioned on groups")
PLAIN = (0.177, 0.383)
# Method, the paper's KL and disparity without fair sampling and with it, and what is set.
BASES: dict[str, Any] = {
    "GS-WGAN": (GSWGANImages, (PLAIN, (0.067, 0.242)), {"critic_steps": 2}),
    "G-PATE": (GPATEImages, ((0.305, 0.522), (0.206, 0.431)), {}),
    "DataLens": (DataLensImages, ((0.220, 0.450), (0.161, 0.389)), {}),
}


class Setting(NamedTuple):
    """One row: what is fitted, the paper's KL and disparity, and the row it is compared with."""

    data: str
    name: str
    arguments: dict[str, Any]
    paper: tuple[float, float]
    against: str = ""
    method: Any = TeacherGANImages
    scale: str = "14 x 14"


def settings() -> list[Setting]:
    """Return all rows, in order."""
    fair, strata = (0.067, 0.242), (0.090, 0.209)
    papers_7 = {NONE: PLAIN, STRATIFIED: strata}
    rows = [
        Setting(
            data="sampling",
            name=name,
            arguments=arguments,
            paper=papers_7.get(name, fair),
            against="" if name == NONE else NONE,
            method=METHODS.get(name, TeacherGANImages),
        )
        for name, arguments in STRATEGIES.items()
    ]
    even, gold = "in the partition", GoldTeacherGANImages
    for name, method, arguments, paper, against in (
        (NONE, TeacherGANImages, {"sampler": None}, PLAIN, ""),
        (even, TeacherGANImages, {"sampler": EVEN}, (0.004, 0.041), NONE),
        (f"{even}, GOLD", gold, {"sampler": EVEN}, (0.090, 0.209), even),
    ):
        rows.append(
            Setting(
                data="unknown",
                name=name,
                arguments=arguments,
                paper=paper,
                against=against,
                method=method,
            )
        )
    for label, (method, papers, more) in BASES.items():
        for name in FAIR:
            rows.append(
                Setting(
                    data="methods",
                    name=f"{label}: {name}",
                    arguments=STRATEGIES[name] | more,
                    paper=papers[name != NONE],
                    against="" if name == NONE else f"{label}: {NONE}",
                    method=method,
                )
            )
    for data, network in product(NETWORKED, NETWORKS):
        method, papers, _ = BASES[NETWORKED[data]]
        for name, paper in zip((NONE, even), papers, strict=True):
            rows.append(
                Setting(
                    data=data,
                    name=f"{network}: {name}",
                    arguments=STRATEGIES[name] | {"network": network},
                    paper=paper,
                    against="" if name == NONE else f"{network}: {NONE}",
                    method=method,
                    scale="28 x 28, short",
                )
            )
    return rows


TIMED = {
    "GS-WGAN": (GSWGANImages, 1.21),
    "G-PATE": (GPATEImages, 3.38),
    "DataLens": (DataLensImages, 0.12),
    "all-teachers GAN": (TeacherGANImages, None),
}


class Pixels:
    """The pixels themselves, as features of a distance."""

    name = "pixels"

    def transform(self, images: Array) -> FloatArray:
        """Return the pixels of each picture."""
        return np.asarray(images, dtype=np.float64).reshape(len(images), -1)


def pictures(seed: int, pooled: int = 2) -> tuple[ImageData, ImageData]:
    """Return the private and the test pictures, 14 x 14 unless they are pooled less."""
    both = []
    for part, ratio in (("train", 4.0), ("test", 1.0)):
        data = rotated(load_mnist(part), classes=(3, 1), ratio=ratio, random_state=seed)
        both.append(data.pooled(pooled))
    return both[0], both[1]


def measure(setting: Setting, seed: int) -> dict[str, Any]:
    """Fit one setting once, and measure what it draws."""
    scale = SCALES[setting.scale]
    private, test = pictures(seed, scale.pooled)
    arguments = {"condition": "label", **scale.sizes, **setting.arguments}
    groups: Any = private.sensitive_features
    accuracy = None
    if setting.data == "unknown":
        parts = unknown_groups(private, reference=0.1, random_state=seed)
        private, judged_by = parts.private, parts.reference
        groups = GroupReference(judged_by.images, judged_by.sensitive_features)
        accuracy = float((groups.predict(private.images) == parts.truth).mean())
        train = judged_by
    else:
        train = private
    began = time.process_time()
    made = setting.method(random_state=seed, **arguments).fit(
        private.images, private.y, sensitive_features=groups, budget=BUDGET
    )
    took = time.process_time() - began
    drawn = made.sample(ROWS, random_state=seed)
    found = evaluate_images(
        drawn, test, train=train, models=("MLP",), extractor=Pixels(), n_per_group=300
    )
    assert found.judged is not None
    shown = found.judged.balance
    far = {d.group: d.frechet for d in found.distances}
    rare = [value for group, value in far.items() if group.endswith("rotated")]
    return {
        "seed": seed,
        "kl": [shown.kl.value, shown.kl.high - shown.kl.low],
        "disparity": [shown.disparity.value, shown.disparity.high - shown.disparity.low],
        "judge": found.judged.accuracy,
        "told": accuracy,
        "far": far.get("overall"),
        "far_rare": float(np.mean(rare)) if rare else None,
        "accuracy": found.mean("accuracy"),
        "odds": found.mean("equalized_odds_pairwise"),
        "snr": made.snr_.value,
        "holds": made.guarantee_.holds,
        "cpu_s": took,
    }


def over_seeds(setting: Setting, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Make one row of the runs of a setting: means, and the width of their intervals."""
    row: dict[str, Any] = {
        "data": setting.data,
        "name": setting.name,
        "paper": list(setting.paper),
        "against": setting.against,
        "seeds": len(runs),
    }
    if setting.data in NETWORKED:
        row["scale"] = setting.scale
    for key in ("kl", "disparity"):
        row[key] = runs[0][key]
        if len(runs) > 1:
            mean, half = interval([run[key][0] for run in runs])
            row[key] = [mean, 2.0 * half]
    for key in ("judge", "told", "far", "far_rare", "accuracy", "odds", "snr", "cpu_s"):
        values = [run[key] for run in runs if run[key] is not None]
        row[key] = float(np.mean(values)) if values else None
    row["holds"] = all(run["holds"] for run in runs)
    return row | {"repeats": runs}


def fit_all(data: str, seeds: int, file: Path | None) -> list[dict[str, Any]]:
    """Return the rows of a table; runs that a file of lines holds are not made again."""
    runs: dict[str, list[dict[str, Any]]] = {}
    for name, run in kept(file):
        runs.setdefault(name, []).append(run)
    own = [setting for setting in settings() if setting.data == data]
    for seed in range(seeds):
        for setting in own:
            mine = runs.setdefault(setting.name, [])
            if any(run["seed"] == seed for run in mine):
                continue
            mine.append(measure(setting, seed))
            print(setting.name, mine[-1], flush=True)
            keep(file, [setting.name, mine[-1]])
    return [
        over_seeds(setting, sorted(runs[setting.name], key=lambda run: run["seed"])[:seeds])
        for setting in own
    ]


def judge(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Say of each row whether it moves against another one as it does in the paper."""
    place = {(row["data"], row["name"]): row for row in rows}
    for row in rows:
        if row["data"] == "time":
            continue
        other = place.get((row["data"], row["against"]))
        row["agrees"] = "-"
        if other is not None:
            pairs = zip(("kl", "disparity"), row["paper"], other["paper"], strict=True)
            same = [(row[key][0] < other[key][0]) == (mine < theirs) for key, mine, theirs in pairs]
            row["agrees"] = "yes" if all(same) else "no"
    return rows


class Change(NamedTuple):
    """What convolutions change: means over seeds with half widths, and time as a multiple."""

    accuracy: tuple[float, float]
    far: tuple[float, float]
    times: float

    @property
    def pays(self) -> bool:
        """Whether one of two changes is better beyond its half width and the other no worse."""
        (more, half), (far, of_far) = self.accuracy, self.far
        better, worse = more > half or -far > of_far, -more > half or far > of_far
        return better and not worse

    @property
    def words(self) -> str:
        """The change in words, for the page."""
        (more, half), (far, of_far) = self.accuracy, self.far
        return (
            f"Convolutional less dense: accuracy {more:+.3f} ± {half:.3f}, FD-pixels {far:+.1f} "
            f"± {of_far:.1f}, in {self.times:.1f} times the time. By the rule of the script "
            f"convolutions {'pay' if self.pays else 'do not pay'} at this scale."
        )


def change(rows: list[dict[str, Any]]) -> Change:
    """Return what convolutions change, by pairs of fits with the same seed."""
    means = []
    for network in NETWORKS:
        own = [row["repeats"] for row in rows if row["name"].startswith(f"{network}:")]
        found = [[[run[key] for key in ("accuracy", "far", "cpu_s")] for run in r] for r in own]
        means.append(np.mean(found, axis=0))
    dense, other = means
    accuracy, far = (interval(away) for away in (other - dense)[:, :2].T.tolist())
    return Change(accuracy, far, float(other[:, 2].sum() / dense[:, 2].sum()))


def overhead(name: str) -> dict[str, Any]:
    """Time a fit, and in fits with and without the sampler the drawing of rows alone.

    What the sampler adds is far below what two fits on a busy machine differ by, so its own time is
    taken, and set against that of a whole fit.
    """
    method, paper = TIMED[name]
    private, _ = pictures(0)
    small = {"n_teachers": 200, "n_steps": 50, "n_rows": 16, "critic_steps": 2}
    draw = Teachers._draw

    def seconds(sampler: Any) -> tuple[float, float]:
        drawing: list[float] = []

        def timed(*arguments: Any) -> Any:
            began = time.process_time()
            rows = draw(*arguments)
            drawing.append(time.process_time() - began)
            return rows

        made = method(random_state=0, condition="label", sampler=sampler, **small)
        with mock.patch.object(Teachers, "_draw", timed):
            began = time.process_time()
            made.fit(
                private.images,
                private.y,
                sensitive_features=private.sensitive_features,
                budget=BUDGET,
            )
        return time.process_time() - began, sum(drawing)

    whole, plain = seconds(None)
    _, fair = seconds(EVEN)
    added = (fair - plain) / whole
    return {
        "data": "time",
        "name": name,
        "paper": paper,
        "fit_s": whole,
        "drawing_s": [plain, fair],
        "added": added,
        "agrees": "-" if paper is None else "yes" if added < 0.04 else "no",
    }


def page(rows: list[dict[str, Any]], commits: dict[str, str]) -> list[str]:
    """Return the page."""
    out = ["# Sampling strategies, GOLD, and time, on MNIST at epsilon 10"]
    head = (
        "sampling",
        "KL: paper / ours",
        "disparity: paper / ours",
        "judge right",
        "FD-pixels",
        "rotated alone",
        "MLP accuracy",
        "odds gap",
        "agrees?",
    )
    for data in ORDER[:-1]:
        own = [row for row in rows if row["data"] == data]
        if not own:
            continue
        out += ["", f"## {TITLES[data]}", "", f"Commit {commits[data]}.", ""]
        n, told = own[0]["seeds"], own[0]["told"]
        out += [f"{n} seeds." if n > 1 else "One seed.", ""]
        if data in NETWORKED:
            name = own[0]["scale"]
            scale = SCALES[name]
            words = ", ".join(f"{key}={value}" for key, value in scale.sizes.items())
            out += [f"Scale: {name}, `{words}`. Conditioned on the label alone.", ""]
        if told is not None:
            out += [f"The reference tells the groups of {told:.1%} of the private pictures.", ""]
        out += [f"| {' | '.join(head)} |", rule(len(head))]
        for row in own:
            out.append(
                f"| {row['name']} | {row['paper'][0]:.3f} / {row['kl'][0]:.3f} ± "
                f"{row['kl'][1] / 2:.3f} | {row['paper'][1]:.3f} / {row['disparity'][0]:.3f} ± "
                f"{row['disparity'][1] / 2:.3f} | {row['judge']:.3f} | {_two(row['far'])} "
                f"| {_two(row['far_rare'])} | {row['accuracy']:.3f} | {row['odds']:.3f} "
                f"| {row['agrees']} |"
            )
        if data in NETWORKED and n > 1:
            out += ["", change(own).words]
    timed = [row for row in rows if row["data"] == "time"]
    if timed:
        out += ["", f"## {TITLES['time']}", "", f"Commit {commits['time']}.", ""]
        out += ["| method | overhead, paper | overhead, ours | agrees? |", rule(4)]
        for row in timed:
            paper = "-" if row["paper"] is None else f"{row['paper']:.2f} %"
            out.append(
                f"| {row['name']} | {paper} | {100 * row['added']:.2f} % | {row['agrees']} |"
            )
    return out


def _two(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


save = partial(save_beside, "pfguard_sampling", ORDER, page)


def main() -> None:
    """Measure, print, and save if asked."""
    parser = asked(__doc__, seeds=3)
    parser.add_argument("--data", choices=ORDER, required=True)
    given = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    if given.data == "time":
        rows = [overhead(name) for name in TIMED]
    else:
        rows = fit_all(given.data, given.seeds, given.kept)
    rows = judge(rows)
    print(*page(rows, {given.data: "now"}), sep="\n")
    if given.save:
        save(rows, given.data)


if __name__ == "__main__":
    main()

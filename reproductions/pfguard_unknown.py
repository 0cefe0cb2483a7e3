"""Groups that nobody recorded: PFGuard's Figure 5 with a teacher GAN, and its Section C.3.

    python reproductions/pfguard_unknown.py [--data bound ...] [--seeds 3] [--runs FILE] [--save]

"reference": MNIST, 3 against 1, 14 x 14, one picture in five turned, groups unknown; GS-WGAN with
dense networks, conditioned on the label alone, at the scale, sizes and signal to noise of
``pfguard_teachers.py``. A public reference of .1 to 1 times as many pictures, with even groups,
serves in one of four ways:

- its groups are predicted for private pictures (``GroupReference``), and evened out in each part;
- density ratio (Choi et al. 2020), in each teacher: a logistic regression on ten principal
  components of the reference tells the teacher's own pictures from the reference, in two folds, and
  the teacher draws its pictures by the odds (cut to 1/20 and 20). It reads no group at all;
- density ratio of all private pictures, one model for all: that is no private computation, one
  record moves all teachers, and the claim says so;
- clusters (``ClusterReference``), two of them, are evened out in each part.

Group shares of drawn pictures are what a classifier of real ones says; KL is to even shares. By the
paper fairness is comparable with a small reference, and FID slightly higher: KL with a tenth is at
most .05 above KL with a reference of full size, and FD-pixels (a Frechet distance in the pixels, no
FID) is higher. A claim agrees, does not, or has no verdict by the rule of ``pfguard_teachers.py``.

"bound": floor(n min p(s)), the most teachers by PFGuard, without labels of groups. Section C.3
estimates the shares by K-means or by labelling a random subset. Clusters and predictions are those
of a public reference a tenth as large, with even groups; the shares of private pictures, or of 200
private pictures whose groups somebody told, are one noisy histogram at epsilon .5 and delta 1e-5,
add or remove one. A row agrees if the estimate is within a factor of 1.5 of the truth with every
seed. Predicted groups are ours, and are counted apart.

All of this was fixed before the first run, which read the test pictures. "no" rows stay.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any, ClassVar

import numpy as np
from _table import Runs, asked, claim_lines, interval, rule, save_beside
from pfguard_bias import RARE, digits, with_verdicts
from pfguard_sampling import NONE
from pfguard_teachers import DELTA, FAIR, SCALE, SIZES, TEACHERS, draw
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import KFold
from teacher_gan_choices import judged

from evenhand import Budget
from evenhand.datasets.images import ImageData, load_fashion_mnist, load_mnist
from evenhand.datasets.images.bias import rare_class, rotated, unknown_groups
from evenhand.generators import GroupBalancedSampler
from evenhand.generators.images import GroupReference, GSWGANImages
from evenhand.generators.images.adversarial import Lesson
from evenhand.generators.images.predicted_groups import ClusterReference
from evenhand.generators.images.teachers import AHEAD, Teachers
from evenhand.privacy import Guarantee, Ledger
from evenhand.typing import FloatArray, IntArray

EPSILON, LABELLED, WITHIN = 0.5, 200, 1.5  # of the table "bound"
COMPONENTS, FOLDS, CUT = 10, 2, 20.0
FULL, TENTH, NEAR = 1.0, 0.1, 0.05
REFERENCES = (TENTH, 0.25, 0.5, FULL)
PREDICTED = "groups predicted by the reference"
RATIO = "density ratio, in each teacher"
WHOLE = "density ratio of all private pictures: no claim holds"
CLUSTERS = "clusters of the reference"
WAYS = (PREDICTED, RATIO, WHOLE, CLUSTERS)
SUBSET = f"{LABELLED} private pictures labelled"
DATA = ["reference", "bound"]
TITLES = {
    "reference": "Figure 5: the size of the reference",
    "bound": "Section C.3: the bound on the number of teachers, without labels of groups",
}


def odds(own: FloatArray, public: FloatArray) -> FloatArray:
    """Return how much likelier each picture of ``own`` is in ``public``, by its fold's model.

    Choi et al. (2020) weigh by c / (1 - c), with c the probability that a picture is of the
    reference where both kinds are as many.
    """
    if len(own) < 2 * FOLDS:
        return np.ones(len(own))
    components = PCA(COMPONENTS, random_state=0).fit(public)  # of the public pictures alone
    x = np.concatenate([own, public])
    is_public = np.arange(len(x)) >= len(own)
    model = LogisticRegression(class_weight="balanced", max_iter=300)
    scale = np.sqrt(components.explained_variance_)
    folds = [
        (np.concatenate([fit, np.flatnonzero(is_public)]), held)
        for fit, held in KFold(FOLDS, shuffle=True, random_state=0).split(own)
    ]
    z = components.transform(x) / scale
    found = np.ones(len(own))
    for fit, held in folds:
        found[held] = model.fit(z[fit], is_public[fit]).predict_proba(z[held])[:, 1]
    cut = np.clip(found, 1.0 / (1.0 + CUT), CUT / (1.0 + CUT))
    weights: FloatArray = cut / (1.0 - cut)
    return weights


class WeighingTeachers(Teachers):
    """Teachers that draw their pictures by given weights."""

    weights: FloatArray

    def _draw(self, rows: IntArray, rng: np.random.Generator) -> IntArray:
        chances = self.weights[rows]
        if not len(rows):
            return super()._draw(rows, rng)
        size = AHEAD * self.batch_size
        return rows[rng.choice(len(rows), size, p=chances / chances.sum())]


class RatioGAN(GSWGANImages):
    """``GSWGANImages`` whose teachers draw by a density ratio to a public reference.

    Privacy
    -------
    In each teacher: the model of a teacher reads its own pictures and public ones, so one record
    moves one teacher, as before. Of all private pictures: one record moves all of them, and the
    claim says that it does not hold.
    """

    teachers: ClassVar[type[Teachers]] = WeighingTeachers
    public: ClassVar[FloatArray]
    whole: ClassVar[bool] = False

    def _teachers(self, lesson: Lesson) -> Teachers:
        made = super()._teachers(lesson)
        assert isinstance(made, WeighingTeachers)
        pixels = lesson.data.pixels.reshape(len(lesson.data), -1).astype(np.float64)
        made.weights = np.ones(len(pixels))
        for rows in [np.arange(len(pixels))] if self.whole else lesson.partition.all_rows:
            made.weights[rows] = odds(pixels[rows], self.public)
        return made

    def _restate(self, claim: Guarantee) -> Guarantee:
        claim = super()._restate(claim)
        claim = replace(claim, public=(*claim.public, "the reference pictures"))
        if not self.whole:
            return claim
        return replace(claim, holds=False, reason="the density ratio reads all private pictures")


@cache
def parts(seed: int) -> tuple[ImageData, ImageData, ImageData]:
    """Return private pictures with their true groups, as large a reference, and test pictures."""
    every = load_mnist("train")
    every = every.take(np.isin(every.y, (1, 3)))
    order = np.random.default_rng(seed).permutation(len(every))
    n = round(SCALE * len(every))
    private = rotated(every.take(order[:n]), ratio=4.0, random_state=seed)
    public = rotated(every.take(order[n : 2 * n]), ratio=1.0, random_state=seed)
    groups = (np.flatnonzero(public.sensitive_features == g) for g in ("rotated", "upright"))
    public = public.take(np.column_stack([rows[: n // 2] for rows in groups]).ravel())  # in turn
    test = rotated(load_mnist("test"), classes=(3, 1), ratio=1.0, random_state=seed)
    return private.pooled(2), public.pooled(2), test.pooled(2)


def fit_one(data: str, at: float, way: str, seed: int) -> dict[str, Any]:
    """Fit with a reference that is ``at`` times as large, and measure what is drawn."""
    private, public, test = parts(seed)
    public = public.take(np.arange(len(public))[: round(at * len(private))])
    groups: Any = None
    kind: Any = GSWGANImages
    sampling = NONE if way == NONE else FAIR
    if way == PREDICTED:
        groups = GroupReference(public.images, public.sensitive_features)
    elif way == CLUSTERS:
        groups = ClusterReference(public.images, 2, random_state=seed)
    elif way in (RATIO, WHOLE):
        flat = public.images.reshape(len(public), -1) / 255.0
        kind = type("RatioGAN", (RatioGAN,), {"public": flat, "whole": way == WHOLE})
    drawn, about = draw(kind, private, sampling, n_teachers=TEACHERS, seed=seed, groups=groups)
    return {
        "data": data,
        "at": at,
        "way": way,
        "seed": seed,
        "private": len(private),
        **judged(drawn, test, private, seed),
        **about,
    }


def turned(load: Any, classes: tuple[Any, Any], seed: int) -> ImageData:
    """Return pictures of two classes, of which one in five is turned."""
    return rotated(load("train"), classes=classes, ratio=4.0, random_state=seed).pooled(2)


BOUNDS: dict[str, Any] = {
    "3 and 1, one in five turned": lambda seed: turned(load_mnist, (3, 1), seed),
    "sneakers and trousers, one in five turned": lambda seed: turned(
        load_fashion_mnist, ("sneaker", "trouser"), seed
    ),
    "ten digits, one 8 in five": lambda seed: rare_class(
        digits("train"), RARE, ratio=5.0, random_state=seed
    ),
}


def estimate(data: str, at: str, way: str, seed: int) -> dict[str, Any]:
    """Estimate the bound of one of ``BOUNDS``, from noisy shares, beside the true one."""
    known = unknown_groups(BOUNDS[at](seed), reference=TENTH, random_state=seed)
    names, truth = np.unique(known.truth, return_inverse=True)
    rng = np.random.default_rng(seed)
    if way == SUBSET:
        codes, counted = truth, rng.choice(len(truth), LABELLED, replace=False)
    else:
        reference: Any = (
            GroupReference(known.reference.images, known.reference.sensitive_features)
            if way == PREDICTED
            else ClusterReference(known.reference.images, len(names), random_state=seed)
        )
        said = reference.predict(known.private.images)
        codes, counted = np.unique(said, return_inverse=True)[1], np.arange(len(truth))
    spent = Budget(epsilon=EPSILON, delta=DELTA)
    shares = GroupBalancedSampler(scope="noisy").with_noisy_shares(
        codes[counted],
        len(names),
        Ledger(spent, neighbors="add or remove one"),
        mu_squared=0.99 * spent.mu_squared,
    )
    return {
        "data": data,
        "at": at,
        "way": way,
        "seed": seed,
        "estimated": shares.most_teachers(len(truth), each=1.0),
        "true": int(np.bincount(truth).min()),
        "rand": float(adjusted_rand_score(truth, codes)),
    }


def rows_of(runs: Iterable[Mapping[str, Any]], data: str, seeds: int) -> list[dict[str, Any]]:
    """Return the rows of a table, with every repeat, and its claims."""
    found: dict[tuple[Any, str], list[Any]] = {}
    for run in runs:
        if run["data"] == data and run["seed"] < seeds:
            found.setdefault((run["at"], run["way"]), []).append(run)
    rows: list[dict[str, Any]] = [
        {
            "data": data,
            "at": at,
            "way": way,
            "runs": sorted(own, key=lambda run: run["seed"]),
        }
        for (at, way), own in sorted(found.items(), key=_place)
    ]
    if data == "bound":
        for row in rows:
            ratios = [run["estimated"] / run["true"] for run in row["runs"]]
            row["apart"] = row["way"] == PREDICTED
            row["agrees"] = "yes" if all(1 / WITHIN <= r <= WITHIN for r in ratios) else "no"
        return rows
    return [*rows, *({"data": data, **claim} for claim in claims(rows))]


def _place(item: tuple[tuple[Any, str], Any]) -> tuple[int, int]:
    (at, way), _ = item
    ways, places = (NONE, *WAYS, SUBSET), (0.0, *REFERENCES, *BOUNDS)
    return ways.index(way), places.index(at)


def claims(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what is claimed of references: differences that should be below 0, by seed."""
    found = {
        (row["way"], row["at"], key): np.array([run[key] for run in row["runs"]])
        for row in rows
        for key in ("kl", "far")
    }
    plain = found[NONE, 0.0, "kl"]
    said: list[tuple[str, Any, bool]] = []
    for way in WAYS:
        apart = way in (CLUSTERS, WHOLE)  # not the paper's, or under no claim
        said += [
            (f"{way}, {at:g}: KL is lower than without", found[way, at, "kl"] - plain, apart)
            for at in REFERENCES
        ]
        rises = found[way, TENTH, "kl"] - found[way, FULL, "kl"] - NEAR
        nearer = found[way, FULL, "far"] - found[way, TENTH, "far"]
        said += [
            (f"{way}: KL with a tenth is at most {NEAR:g} above that of full size", rises, apart),
            (f"{way}: FD-pixels is lower at full size than with a tenth", nearer, apart),
        ]
    return with_verdicts(said)


def page(rows: list[dict[str, Any]], commits: Mapping[str, str]) -> list[str]:
    """Return the page."""
    out = ["# Groups that nobody recorded: references, clusters and few labels", ""]
    out.append("Half widths are of 95 % intervals over seeds.")
    for data in DATA:
        own = [row for row in rows if row["data"] == data]
        if not own:
            continue
        seeds = len(own[0]["runs"])
        out += ["", f"## {TITLES[data]}", "", f"Commit {commits[data]}; {seeds} seeds.", ""]
        out += TABLES[data](own)
    return out


def _reference(rows: list[dict[str, Any]]) -> list[str]:
    fits = [row for row in rows if "runs" in row]
    minutes = sum(run["cpu_s"] for row in fits for run in row["runs"]) / 60
    sizes = ", ".join(f"{key}={value!r}" for key, value in SIZES.items())
    out = [
        f"Scale {SCALE:g}: GS-WGAN with {TEACHERS} teachers on {fits[0]['runs'][0]['private']:,} "
        f"pictures, `{sizes}`. Fits took {minutes:.0f} minutes of processor time.",
        "",
    ]
    head = ("way", "reference, of the private", "KL", "disparity", "FD-pixels", "MLP accuracy")
    head += ("odds gap",)
    out += [f"| {' | '.join(head)} |", rule(len(head))]
    for row in fits:
        values = {
            key: interval(run[key] for run in row["runs"])
            for key in ("kl", "disparity", "far", "accuracy", "odds")
        }
        size = f"{row['at']:g}" if row["at"] else "-"
        cells = [
            f"{value:.2f}" if key == "far" else f"{value:.3f}" for key, value in values.items()
        ]
        out.append(f"| {row['way']} | {size} | {' | '.join(cells)} |")
    return [*out, "", *claim_lines(rows)]


def _bound(rows: list[dict[str, Any]]) -> list[str]:
    head = ("way", "pictures", "bound", "estimated, by seed", "adjusted Rand index", "agrees?")
    out = [f"| {' | '.join(head)} |", rule(len(head))]
    for row in rows:
        runs = row["runs"]
        told = ", ".join(f"{run['estimated']:,}" for run in runs)
        rand = "-" if row["way"] == SUBSET else f"{np.mean([run['rand'] for run in runs]):.2f}"
        bound = f"{np.mean([run['true'] for run in runs]):,.0f}"
        out.append(f"| {row['way']} | {row['at']} | {bound} | {told} | {rand} | {row['agrees']} |")
    return out


TABLES = {"reference": _reference, "bound": _bound}


save = partial(save_beside, "pfguard_unknown", DATA, page)


def main() -> None:
    """Measure, print, and save if asked."""
    given = asked(__doc__, seeds=3, data=DATA).parse_args()
    warnings.simplefilter("ignore", UserWarning)
    runs, seeds = Runs(given.kept), range(given.seeds)
    for data in given.data:
        if data == "bound":
            ways = (CLUSTERS, SUBSET, PREDICTED)
            runs.complete(estimate, data=[data], at=BOUNDS, way=ways, seed=seeds)
        else:
            runs.complete(fit_one, data=[data], at=[0.0], way=[NONE], seed=seeds)
            runs.complete(fit_one, data=[data], at=REFERENCES, way=WAYS, seed=seeds)
    for data, rows in {data: rows_of(runs, data, given.seeds) for data in given.data}.items():
        print(*page(rows, {data: "now"}), sep="\n")
        if given.save:
            save(rows, data)


if __name__ == "__main__":
    main()

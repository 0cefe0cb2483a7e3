"""Privacy, fairness and utility of a teacher GAN's pictures: PFGuard's Figures 6 to 8.

    python reproductions/pfguard_frontiers.py [--seeds 6] [--runs FILE] [--save]

MNIST, 3 against 1, 14 x 14, one picture turned for four upright ones in each class; GS-WGAN with
dense networks, conditioned on the label alone, with fair sampling in the partition (PFGuard,
Figures 6 and 8) and without (Figure 7). Sizes and the scale of a fifth, of the pictures and of
1,000 teachers, are those of ``pfguard_teachers.py``: epsilon is raised until the predicted signal
to noise is that of 1,000 teachers at the epsilon that stands in the table, delta 1e-5; noise comes
from the operating system. Test pictures have even groups. The figures are drawings without numbers;
their fairness is the disparity of groups among drawn pictures, by a classifier of real ones, and
their utility FID, in whose place FD-pixels stands, a Frechet distance in the pixels, beside the
accuracy of an MLP.

A claim agrees, does not, or has no verdict by the rule of ``pfguard_teachers.py``: a difference
over seeds, paired, that should be below 0 with its 95 % interval. "Similar performance where
privacy is weak" agrees where the whole interval of the accuracies' difference lies within .05, and
that of the disparities' within .1, does not where one of them lies beyond, and has no verdict else.
"Fairness varies more" compares, by bootstrap of the seeds, the logarithms of two standard
deviations. Rules, settings and claims were fixed before the first fit. "no" rows stay.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from _pictures import Panel, Series, around, axis, draw
from _table import Runs, asked, claim_lines, commit, interval, repeated, rule, write
from pfguard_bias import with_verdicts
from pfguard_clip import pictures
from pfguard_sampling import NONE, STRATEGIES
from pfguard_teachers import DRAWN, FAIR, SIZES, TEACHERS, budget
from teacher_gan_choices import judged

from evenhand.generators.images import GSWGANImages

NAME = "pfguard_frontiers"
EPSILONS = (1.0, 3.0, 10.0, 30.0)
STRONG, *_, WEAK = EPSILONS
SAMPLINGS = (NONE, FAIR)
NEAR = {"accuracy": 0.05, "disparity": 0.1}
MEASURES = {"disparity": ".3f", "far": ".1f", "accuracy": ".3f", "odds": ".3f"}
BOOTSTRAPS = 10_000


def measure(sampling: str, epsilon: float, seed: int) -> dict[str, Any]:
    """Fit once, and measure what is drawn."""
    private, test = pictures(seed)
    began = time.process_time()
    made = GSWGANImages(
        random_state=seed, n_teachers=TEACHERS, **SIZES, **STRATEGIES[sampling]
    ).fit(
        private.images,
        private.y,
        sensitive_features=private.sensitive_features,
        budget=budget(TEACHERS, epsilon=epsilon),
    )
    took = time.process_time() - began
    drawn = made.sample(DRAWN, balance=("label",), random_state=seed)
    return {
        **{"sampling": sampling, "epsilon": epsilon, "seed": seed, "private": len(private)},
        **judged(drawn, test, private, seed),
        **{"snr": made.snr_.value, "holds": made.guarantee_.holds, "cpu_s": took},
    }


def rows_of(runs: Iterable[Mapping[str, Any]], seeds: int) -> list[dict[str, Any]]:
    """Return the rows, with every repeat, and the claims."""
    cases = [{"sampling": sampling, "epsilon": at} for sampling in SAMPLINGS for at in EPSILONS]
    rows = repeated(runs, cases, seeds)
    return [*rows, *claims(rows)]


def claims(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what is claimed, with what was found."""
    found = {
        (row["sampling"], row["epsilon"], key): np.array([run[key] for run in row["runs"]])
        for row in rows
        for key in MEASURES
    }

    def fair(epsilon: float, key: str) -> Any:
        return found[FAIR, epsilon, key] - found[NONE, epsilon, key]

    def weaker(key: str) -> Any:
        return found[FAIR, WEAK, key] - found[FAIR, STRONG, key]

    away = [
        (f"Figures 7, 8: fair sampling lowers disparity at {STRONG:g}", fair(STRONG, "disparity")),
        (
            f"Figures 7, 8: by more at {STRONG:g} than at {WEAK:g}",
            fair(STRONG, "disparity") - fair(WEAK, "disparity"),
        ),
        (f"Figures 7, 8: fair sampling costs FD-pixels at {STRONG:g}", -fair(STRONG, "far")),
        (f"Figure 6: disparity is lower at {WEAK:g} than {STRONG:g}", weaker("disparity")),
        (f"Figure 6: FD-pixels is lower at {WEAK:g} than {STRONG:g}", weaker("far")),
    ]
    out = with_verdicts((words, differences, False) for words, differences in away)
    for key, most in NEAR.items():
        differences = fair(WEAK, key)
        mean, half = interval(differences)
        inside = "yes" if abs(mean) + half <= most else "-"
        out.append(
            {
                "claim": f"Figures 7, 8: {key} at {WEAK:g} is within {most:g} of that without",
                "differences": differences.tolist(),
                "agrees": "no" if abs(mean) - half > most else inside,
            }
        )
    for key, words, wide, narrow in (
        ("disparity", "fairness varies more", STRONG, WEAK),
        ("far", "utility varies more", WEAK, STRONG),
    ):
        low, high = spread(found[FAIR, narrow, key], found[FAIR, wide, key])
        out.append(
            {
                "spread": f"Figure 6: {words} at {wide:g} than at {narrow:g}",
                "interval": [low, high],
                "agrees": "yes" if high < 0 else "no" if low > 0 else "-",
            }
        )
    return out


def spread(narrow: Any, wide: Any) -> tuple[float, float]:
    """Return the bootstrap interval of the logarithm of one standard deviation over another."""
    rng, n = np.random.default_rng(0), len(narrow)
    at = rng.integers(n, size=(BOOTSTRAPS, n))
    first, second = (np.maximum(some[at].std(axis=1), 1e-12) for some in (narrow, wide))
    low, high = np.quantile(np.log(first / second), (0.025, 0.975))
    return float(low), float(high)


def mean_of(row: Mapping[str, Any], key: str) -> Any:
    """Return the mean of a measure over seeds, with its interval."""
    return interval(run[key] for run in row["runs"])


def lines(rows: list[dict[str, Any]]) -> list[str]:
    """Return the tables of the page."""
    head = ("fair sampling", "epsilon", "disparity", "FD-pixels", "MLP accuracy", "odds gap")
    out = [f"| {' | '.join(head)} |", rule(len(head))]
    for row in rows:
        if "runs" in row:
            cells = [format(mean_of(row, key), how) for key, how in MEASURES.items()]
            out.append(f"| {row['sampling']} | {row['epsilon']:g} | {' | '.join(cells)} |")
    out += ["", *claim_lines(rows), ""]
    out += ["| claim | log of a ratio of spreads, below 0 if it holds | agrees? |", rule(3)]
    for row in rows:
        if "spread" in row:
            low, high = row["interval"]
            out.append(f"| {row['spread']} | {low:+.2f} to {high:+.2f} | {row['agrees']} |")
    return out


def picture(rows: list[dict[str, Any]]) -> str:
    """Draw utility against fairness, a line over epsilon for each way of sampling."""
    panels = []
    for key, title in (("far", "FD-pixels"), ("accuracy", "accuracy of an MLP")):
        series = []
        for sampling in SAMPLINGS:
            own = [row for row in rows if row.get("sampling") == sampling]
            x, y = ([mean_of(row, name) for row in own] for name in ("disparity", key))
            series.append(
                Series(
                    name=f"fair sampling: {sampling}",
                    x=[mean.mean for mean in x],
                    y=[mean.mean for mean in y],
                    x_pm=[mean.half for mean in x],
                    y_pm=[mean.half for mean in y],
                    joined=True,
                )
            )
        sides = [around([*of.x], [*of.x_pm]) for of in series]
        heights = [around([*of.y], [*of.y_pm]) for of in series]
        panels.append(
            Panel(
                title=f"epsilon {', '.join(f'{e:g}' for e in EPSILONS)} along each line",
                x=axis("disparity of groups", [v for side in sides for v in side]),
                y=axis(title, [v for some in heights for v in some], zero=key == "far"),
                series=series,
            )
        )
    about = (
        "Figures 6 to 8, asked of digits: utility against fairness at four epsilons, means with "
        "intervals"
    )
    return draw(NAME, about, panels, 2)


def save(rows: list[dict[str, Any]], commit: str) -> None:
    """Write the JSON, the picture and the page."""
    every = [run for row in rows for run in row.get("runs", ())]
    sizes = ", ".join(f"{key}={value!r}" for key, value in SIZES.items())
    write(
        NAME,
        {"commit": commit, "rows": rows},
        "# Privacy, fairness and utility of drawn digits: GS-WGAN with and without PFGuard\n",
        f"MNIST, 3 against 1, a fifth turned; {every[0]['private']:,} pictures, {TEACHERS} "
        f"teachers, `{sizes}`; {len(rows[0]['runs'])} seeds, half widths are of 95 % intervals "
        f"over them. Fits took {sum(run['cpu_s'] for run in every) / 60:.0f} minutes of "
        f"processor time. Commit {commit}.\n",
        picture(rows),
        "",
        *lines(rows),
    )


def main() -> None:
    """Measure, print, and save if asked."""
    given = asked(__doc__, seeds=6).parse_args()
    runs = Runs(given.kept)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for seed in range(given.seeds):
            runs.complete(measure, seed=[seed], sampling=SAMPLINGS, epsilon=EPSILONS)
    rows = rows_of(runs, given.seeds)
    print(*lines(rows), sep="\n")
    if given.save:
        save(rows, commit())


if __name__ == "__main__":
    main()

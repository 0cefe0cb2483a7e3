"""What every script here needs: runs that are kept, means with intervals, and saved results."""

from __future__ import annotations

import argparse
import json
import math
import subprocess
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

RESULTS = Path(__file__).parent / "results"


ALGORITHMS = {
    "dp_fermi_adult": "DP-FERMI made sound: the clipping that its proof needs is enforced, which "
    "the authors' code does not do. It is a baseline of FairPATE.",
    "dpsgd_adult": "DP-SGD as published, with our penalty on the covariance of group and score "
    "clipped together with the gradient; thresholds are set on public rows.",
    "doubted_rows": "ours: noisy shares of votes about drawn rows, other rows.",
    "dpsgd_features": "DP-SGD as published, in features of ours; no paper's method.",
    "drawn_small_groups": "ours: `MarginalSynthesizer` with its defaults, and `even_rates`.",
    "drift": "ours; no paper's method.",
    "fairpate_color_mnist": "'printed' has the paper's gate, noise and student, charged soundly; "
    "'sound' our gate and student at the paper's noise; labels and shares are ours.",
    "fairpate_frontiers": "sound throughout. 'FairPATE, gate' is FairPATE alone with our gate and "
    "account (the student knows of no margin), not Algorithm 1 as printed; 'FairShares' is ours. "
    "As printed: [fairpate_accounting](fairpate_accounting.md).",
    "fairpate_utkface": "ours, with sound accounts; published numbers stand beside.",
    "fairpate_utkface_figures": "sound. 'gate' is FairPATE alone with our gate and account; 'gate, "
    "as printed' has the paper's gate and a sound account; 'shares' is ours.",
    "fidelity_beside_sdmetrics": "our scores, beside those of SDMetrics; no paper's method.",
    "generator_frontiers": "ours (noisy tables of counts), MERF and RON-Gauss made sound; neither "
    "PATE-GAN nor PFGuard ran. FairShares is ours, DP-SGD as published with our penalty.",
    "group_thresholds": "ours, beside what users glue together from packages, and "
    "error-parity's own code.",
    "intervention_points": "sound: our gates, and every answer charged, refused ones included. "
    "'S_in, fairlearn's reduction' has the student that the paper names. As printed: "
    "[fairpate_accounting](fairpate_accounting.md).",
    "jagielski_adult": "the linear program as printed on a table that is charged for; the model "
    "below it is DP-SGD, so that whole records are protected, where the paper protects groups.",
    "labels_or_shares": "ours: both students are held to the margin, which the paper's is not.",
    "many_records": "PATE by noisy shares (ours), alone and with noisy counts; DP-SGD as "
    "published, with our defaults.",
    "membership": "ours: `MarginalSynthesizer` with its defaults; the attacks are after others'.",
    "no_public_rows": "ours; uniform rows are TabPATE's idea with our votes and student, and "
    "training on drawn rows has our generator.",
    "pfguard_bias": "teachers made sound: balance within each teacher's own partition; base "
    "generators with an account that adds up. Elsewhere the mean embedding, which has no "
    "teachers: what it agrees with is counted apart, and says nothing for PFGuard.",
    "pfguard_clip": "a baseline of the paper: one critic by DP-SGD, whose weighted gradients are "
    "clipped, so that the claim holds.",
    "pfguard_faces": "G-PATE and DataLens made sound (steps are fixed before, every release is "
    "priced as what leaves), balance within each teacher's own partition; smaller than published.",
    "pfguard_frontiers": "fair sampling made sound: balance within each teacher's own partition; "
    "GS-WGAN with an account that adds up, at a fifth of the paper's size.",
    "pfguard_mnist": "made sound: balance within each teacher's own partition; base generators "
    "with an account that adds up, at smaller sizes than the papers'. The mean embedding has no "
    "teachers: what it agrees with is counted apart.",
    "pfguard_normalization": "fair sampling made sound: weights by public shares, or even within "
    "each teacher's own partition; GS-WGAN as in [pfguard_teachers](pfguard_teachers.md).",
    "pfguard_sampling": "made sound, save the row of the published sampling, which gives no "
    "guarantee.",
    "pfguard_table5": "ours (noisy tables of counts) in the place of PFGuard on PATE-GAN.",
    "pfguard_table5_methods": "made sound, each; the published epsilons of PATE-GAN, PFGuard and "
    "RON-Gauss do not hold. TabFairGDT and DECAF are their authors' code, as it is.",
    "pfguard_teachers": "GS-WGAN made sound (every critic answers at every step, and all of it is "
    "paid for), balance within each teacher's own partition; smaller than published.",
    "pfguard_unknown": "GS-WGAN made sound, as in [pfguard_teachers](pfguard_teachers.md). "
    "Predicted groups and clusters are ours; the density ratio is made sound in each teacher's own "
    "part, and without a claim where one model reads all private pictures.",
    "picture_budgets": "ours (`GaussianImages`, no teachers; `DiffusionImages`, a denoiser by "
    "DP-SGD around it), beside MERF made sound, MEPF with a fit of ours (`public features`; `random"
    " maps` are of a network that nobody trained), and private evolution with a program of ours "
    "that draws characters (`evolution`).",
    "published_points": "ours, and DP-FERMI made sound; published numbers stand as published.",
    "reviewers": "ours: `RejectOption` around DP-SGD; the reviewers are simulated.",
    "rivals": "each rival made sound for whole records, as its class says; DP2DP's steps and a "
    "part of the barycenters are reconstructions, FairDP has the certificate of a noisy table, "
    "and SAFES our synthesizer.",
    "rows_and_counts": "ours: noisy shares about public rows, drawn rows, or both; DP-SGD as "
    "published.",
    "sf_pate_table1": "ours: SF-PATE with sums over the groups, networks of two hidden layers as "
    "printed; M with unbiased weights; the sound PF-LD.",
    "silos": "ours, on votes of owners; no paper's method.",
    "small_groups": "ours.",
    "stand_in": "ours, with sound accounts.",
    "table_budgets": "ours: `MarginalSynthesizer` with its defaults.",
    "table_rivals": "ours: `MarginalSynthesizer` with its defaults; MST and AIM after the papers, "
    "in the bins of ours; PrivBayes by DataSynthesizer in these bins, whose epsilon does not hold "
    "as it runs: it reads from the rows how many there are and which states they have, in its "
    "favor. Without any guarantee: a Gaussian copula and CTGAN of SDV, CTGAN for 20 of 300 epochs.",
    "teachers_ahead": "PATE by noisy shares (ours), with forests as teachers and student; DP-SGD "
    "as published, with our defaults.",
    "teachers_tried": "PATE by noisy shares (ours), with other teachers, sums and students.",
    "theory": "claims as printed, tested as such; 'what holds' is ours.",
    "wide_table": "ours: `MarginalSynthesizer` with its defaults.",
}
"""Which algorithm ran, as printed, made sound or ours, where a page does not say it itself."""


class Mean(NamedTuple):
    """A mean over seeds, and half of its 95 % interval; a form such as ``.3f`` is for both."""

    mean: float
    half: float

    def __format__(self, form: str) -> str:
        """Write both, or the mean alone where there is no interval."""
        alone = format(self.mean, form)
        return (
            alone if math.isnan(self.half) else f"{alone} ± {format(self.half, form.lstrip('+'))}"
        )

    def judged(self, above: str, level: str, below: str) -> str:
        """Return the word for an interval above 0, around it, or below."""
        return above if self.mean > self.half else below if self.mean < -self.half else level


def interval(values: Iterable[float]) -> Mean:
    """Mean, and half width of its 95 % interval; NaN for one value."""
    values = list(values)
    mean, n = float(np.mean(values)), len(values)
    if n < 2:
        return Mean(mean, math.nan)
    half = quantile(n - 1) * np.std(values, ddof=1) / np.sqrt(n)
    return Mean(mean, float(half))


@cache  # many means are of equally many seeds
def quantile(degrees: int) -> float:
    """Return the 97.5 % quantile of Student's t."""
    return float(stats.t.ppf(0.975, degrees))


def select(rows: Iterable[Any], **wanted: Any) -> list[Any]:
    """Return the rows with these values."""
    return [row for row in rows if all(row.get(key) == value for key, value in wanted.items())]


def commit() -> str:
    """Return the short name of the commit that is measured; empty outside a checkout."""
    return subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=RESULTS.parent,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()


def claim_lines(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the table of the claims among rows: differences by seed, and whether it agrees."""
    return ["| claim | difference, below 0 if it holds | agrees? |", rule(3)] + [
        f"| {row['claim']} | {interval(row['differences']):+.3f} | {row['agrees']} |"
        for row in rows
        if "claim" in row
    ]


def repeated(
    runs: Iterable[Mapping[str, Any]], cases: Iterable[Mapping[str, Any]], seeds: int
) -> list[dict[str, Any]]:
    """Return a row for each case with its repeats, by seed."""
    own = [dict(run) for run in runs if run["seed"] < seeds]
    return [
        {**case, "runs": sorted(select(own, **case), key=lambda run: run["seed"])} for case in cases
    ]


def rule(n_columns: int) -> str:
    """Return the line below the head of a table."""
    return "| --- " * n_columns + "|"


def write(name: str, about: Mapping[str, Any], *lines: str) -> None:
    """Write ``results/<name>.json``, and ``results/<name>.md`` of these lines.

    Below the title of a page stands which algorithm ran, if ``ALGORITHMS`` says so.
    """
    RESULTS.mkdir(exist_ok=True)
    if name in ALGORITHMS:
        title, _, rest = lines[0].partition("\n")
        said = f"{title}\n\n*Which algorithm ran:* {ALGORITHMS[name]}"
        lines = (f"{said}\n{rest}", *lines[1:])
    (RESULTS / f"{name}.json").write_text(json.dumps(about, indent=1) + "\n")
    (RESULTS / f"{name}.md").write_text("\n".join(lines) + "\n")


def kept(file: Path | None) -> list[Any]:
    """Return what ``keep`` wrote, one per line; nothing without a file."""
    if file is None or not file.exists():
        return []
    return [json.loads(line) for line in file.read_text().splitlines()]


def keep(file: Path | None, *runs: Any) -> None:
    """Append finished runs to a file, so that a script goes on after a stop."""
    if file is not None:
        with file.open("a") as lines:
            lines.writelines(json.dumps(run) + "\n" for run in runs)


class Runs(list[dict[str, Any]]):
    """Finished runs of a script: those that a file keeps, and those that are measured."""

    def __init__(self, file: Path | None) -> None:
        super().__init__(kept(file))
        self.file = file

    def complete(self, measure: Callable[..., Any], **cases: Iterable[Any]) -> None:
        """Measure each case that no run is of, and keep it; the last of the names varies fastest.

        Cases are named as in the runs, and as the parameters of ``measure``, which returns one run
        or several.
        """
        done = {tuple(run.get(name) for name in cases) for run in self}
        for case in product(*cases.values()):
            if case not in done:
                found = measure(**dict(zip(cases, case, strict=True)))
                fresh = [found] if isinstance(found, dict) else list(found)
                keep(self.file, *fresh)
                self += fresh
                print(*case, flush=True)


def later(rows: Iterable[Mapping[str, Any]], first: str, second: str) -> str:
    """Say which rows were measured later, and at which commits: those that name one."""
    found = {(row[second], row[first], row["commit"]) for row in rows if "commit" in row}
    return "".join(f"; {one} of {other} at {at}" for other, one, at in sorted(found))


def asked(
    about: str | None, seeds: int | None = None, *, keeps: bool = True, **each: Iterable[str]
) -> argparse.ArgumentParser:
    """Return a parser of what scripts have in common.

    ``each`` are options by name, with all that is to be measured; a script that ``keeps`` finished
    runs goes on after a stop.
    """
    parser = argparse.ArgumentParser(description=about)
    for name, every in each.items():
        parser.add_argument(f"--{name}", nargs="+", choices=list(every), default=list(every))
    if seeds is not None:
        parser.add_argument("--seeds", type=int, default=seeds)
    if keeps:
        files = ("--kept", "--keep", "--runs")
        parser.add_argument(*files, type=Path, help="finished runs, to go on after a stop")
    parser.add_argument("--save", action="store_true", help="write reproductions/results/")
    return parser


def beside_saved(
    name: str, data: str, fresh: list[dict[str, Any]], order: list[str]
) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Return commits by data set and all rows: those of ``data`` fresh, the others as saved."""
    path = RESULTS / f"{name}.json"
    saved = json.loads(path.read_text()) if path.exists() else {"commits": {}, "rows": []}
    rows = [row for row in saved["rows"] if row["data"] != data] + fresh
    rows.sort(key=lambda row: order.index(row["data"]))  # stable: else as measured
    return {**saved["commits"], data: commit()}, rows


def save_beside(
    name: str,
    order: Iterable[str],
    page: Callable[[list[dict[str, Any]], dict[str, str]], Iterable[str]],
    fresh: list[dict[str, Any]],
    data: str,
    **tables: Callable[[list[dict[str, Any]]], Any],
) -> None:
    """Write rows of one data set beside the saved ones, what ``tables`` make of all, and a page."""
    commits, rows = beside_saved(name, data, fresh, list(order))
    about = {"commits": commits, "rows": rows} | {key: of(rows) for key, of in tables.items()}
    write(name, about, *page(rows, commits))

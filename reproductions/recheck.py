"""Re-run one cheap row of every reproduction, the same seed, and compare with the saved table.

    python reproductions/recheck.py [NAME ...]

What no noise enters must agree to the digit. Where noise comes from the operating system no seed
repeats it: there the fresh value must lie where one more seed would, by the saved mean and spread
(a 99.9 % prediction interval of Student's t). A ratio of times must agree within a factor of 2.
Nothing is saved. Exit code 1 if a row differs.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from _table import RESULTS, select
from scipy import stats

from evenhand.datasets import DataNotAvailable

CONFIDENCE: Final = 0.999
"""That correct code keeps a row with noise of its own within its interval."""


class Check(NamedTuple):
    """One number of a saved table, and the same number now.

    Parameters
    ----------
    row : str
        Which row and column.
    saved : float
    fresh : float
    within : float
        How far apart they may be: 0 where no noise enters.
    near : str
        What it is called if they are no further apart.
    """

    row: str
    saved: float
    fresh: float
    within: float = 0.0
    near: str = "within one more seed"

    @property
    def same(self) -> bool:
        """Whether they agree to the digit."""
        return math.isclose(self.saved, self.fresh, rel_tol=1e-9, abs_tol=1e-12)

    @property
    def verdict(self) -> str:
        """In words, for the table."""
        if self.same:
            return "to the digit"
        return self.near if abs(self.saved - self.fresh) <= self.within else "**differs**"


Checks = Iterator[Check]


def rows(script: str, /, **wanted: Any) -> list[dict[str, Any]]:
    """Return the saved rows of a script, those with these values."""
    return select(json.loads((RESULTS / f"{script}.json").read_text())["rows"], **wanted)


def exact(row: str, saved: Sequence[float], fresh: Sequence[float], *names: str) -> Checks:
    """Compare numbers that no noise enters."""
    for name, old, new in zip(names, saved, fresh, strict=True):
        yield Check(row=f"{row}: {name}", saved=float(old), fresh=float(new))


def noisy(row: str, repeats: Sequence[float], fresh: float, name: str) -> Check:
    """Compare a number of one seed with those of all seeds that are saved."""
    n = len(repeats)
    return _beside(row, float(np.mean(repeats)), float(np.std(repeats, ddof=1)), n, fresh, name)


def noisy_mean(row: str, mean: float, half: float, n: int, fresh: float, name: str) -> Check:
    """Do so where only the mean and the half width of its 95 % interval are saved."""
    spread = half * math.sqrt(n) / stats.t.ppf(0.975, n - 1)
    return _beside(row, mean, spread, n, fresh, name)


def _beside(row: str, mean: float, spread: float, n: int, fresh: float, name: str) -> Check:
    within = stats.t.ppf((1 + CONFIDENCE) / 2, n - 1) * spread * math.sqrt(1 + 1 / n)
    return Check(row=f"{row}: {name}", saved=mean, fresh=fresh, within=float(within))


def assessments(script: Any) -> Checks:
    """By sex, the gap of the population: no noise is drawn."""
    truth, decided, groupings = script.population()
    _, whole = script.joint_of(truth, decided, groupings["sex"])
    for name, notion in script.NOTIONS.items():
        saved = rows("assessments", by="sex", notion=name)[0]
        yield from exact("sex", [saved["gap"]], [script.gap_of(notion, whole).value], name)
    for table in ("HMDA", "resume"):
        _, decided, groupings = script.TABLES[table][0]()
        _, whole = script.joint_of(0 * decided, decided, groupings["race"])
        saved = rows("assessments", data=table, by="race")[0]
        notion = script.NOTIONS["demographic parity"]
        yield from exact(table, [saved["gap"]], [script.gap_of(notion, whole).value], "gap")


def blind_rules(script: Any) -> Checks:
    """Our rule on COMPAS, one margin: no noise is drawn."""
    row = rows("blind_rules", case="COMPAS, race", method="ours", seed=0, margin=0.05)[0]
    trial = script.Trial("COMPAS, race", 0)
    error, gap = trial.measured(script.ours(trial, 0.05))
    yield Check(row="COMPAS: error", saved=row["error"], fresh=error, within=0.002)
    yield Check(row="COMPAS: gap", saved=row["gap"], fresh=gap, within=0.01)


def margins_on_new_rows(script: Any) -> Checks:
    """German, one split: errors of all its fits, whose noise is drawn anew."""
    kept = rows("margins_on_new_rows", table="German")
    for way in script.WAYS:
        saved = [r["error"] for r in kept if r["way"] == way]
        now = [r["error"] for r in script.measure("German", 0, way)]
        yield noisy(f"German, {way}", saved, float(np.mean(now)), "error")


def many_records(script: Any) -> Checks:
    """One fit of each way, whose noise is drawn anew."""
    for way in script.WAYS:
        kept = rows("many_records", label="works", epsilon=1.0, way=way)
        now = script.measure("works", 0, 1.0, way)["error"]
        yield noisy(f"works, {way}", [row["error"] for row in kept], now, "error")


def beside_glued(script: Any) -> Checks:
    """Our side on German, one split and epsilon: the noise is drawn anew."""
    name, data = script.table_of("german", None, [])
    kept = rows("beside_glued", data=name, epsilon=1.0)
    fresh = script.ours(script.Split(data, 0), 1.0)
    for way in script.WAYS:
        saved = [script.volume(r["points"][way]) for r in kept]
        yield noisy(f"German, {way}", saved, script.volume(fresh[way]), "hypervolume")


def dpsgd_steps(script: Any) -> Checks:
    """COMPAS, 1,500 rows: errors of both ways, whose noise is drawn anew."""
    kept = rows("dpsgd_steps", table=script.named("COMPAS", 1_500))
    fresh = list(script.judged_on("COMPAS", 1_500, 0))
    for way in ("default", script.OLD):
        saved = [r["error"] for r in kept if r["way"] == way]
        now = [r["error"] for r in fresh if r["way"] == way]
        yield noisy(f"COMPAS, {way}", saved, float(np.mean(now)), "error")


def doubted_rows(script: Any) -> Checks:
    """Parkinsons, one split, every way: errors, whose noise is drawn anew."""
    yield from _tried("doubted_rows", "Parkinsons", script.measure(0, "Parkinsons"))


def dpsgd_features(script: Any) -> Checks:
    """Parkinsons, one split, every way: errors, whose noise is drawn anew."""
    yield from _tried("dpsgd_features", "Parkinsons", script.measure(0, "Parkinsons"))


def dpsgd_curves(script: Any) -> Checks:
    """COMPAS, one split: errors of the line, curves and whitened rows; the noise is drawn anew."""
    kept = [r for r in script.where(rows("dpsgd_curves"), "curved") if r["table"] == "COMPAS"]
    for way in ("line", "curves", script.WHITENED):
        saved = [r["error"] for r in kept if r["way"] == way]
        now = [r["error"] for r in script.judged_on("COMPAS", 0, way)]
        yield noisy(f"COMPAS, {way}", saved, float(np.mean(now)), "error")


def choices(script: Any) -> Checks:
    """German credit, the default, all its draws: the seeds fix the noise."""
    name, load, n_rows = script.TABLES[0]
    found = []
    for seed in script.SPLITS:
        runs = script.Runs(script.Split.of(load(), n_rows, seed))
        found += [
            runs.error(script.DEFAULT, epsilon, draw)
            for epsilon in script.EPSILONS
            for draw in range(4)
        ]
    saved = rows("choices")[0]["tables"][name]
    yield from exact(f"default, {name}", [saved], [float(np.mean(found))], "error")


def dp_fermi_adult(script: Any) -> Checks:
    """Adult, the first weight."""
    row = rows("dp_fermi_adult")[0]
    error, gap, _ = script.run(script.LOADERS[row["data"]](), row["epsilon"], row["weight"], 0)
    yield from _error_and_gap("Adult, weight 0", row, error, gap)


def dpsgd_adult(script: Any) -> Checks:
    """Adult, no penalty."""
    row = rows("dpsgd_adult")[0]
    _, error, gap, _ = next(script.runs(script.LOADERS[row["data"]](), row["epsilon"], 0))
    yield from _error_and_gap(f"Adult, {row['setting']}", row, error, gap)


def fairpate_color_mnist(script: Any) -> Checks:
    """Take what nobody can be better than, of seed 0: no network is trained for it."""
    run = script.Run(seed=0, folder=Path(tempfile.gettempdir()))
    for row in rows("fairpate_color_mnist", method="truth"):
        found, saved = run.truth(row["margin"]), row["runs"][0]
        names = ("error", "coverage")
        old, new = ([one[name] for name in names] for one in (saved, found))
        yield from exact(f"truth, margin {row['margin']:g}", old, new, *names)


def fairpate_figure2(script: Any) -> Checks:
    """Parkinsons, DP-SGD at its first margin."""
    own = rows("fairpate_figure2", data="Parkinsons")
    row = next(r for r in own if r["method"] == "DP-SGD")
    run = script.Run(script.LOADERS["Parkinsons"](), row["epsilon"], 0)
    _, _, error, gap = next(run.sgd())
    yield from _error_and_gap("Parkinsons, DP-SGD", row, error, gap)


def fairpate_frontiers(script: Any) -> Checks:
    """PATE without a margin, at epsilon 1: one setting of the sweep, in a store of its own."""
    row = rows("fairpate_frontiers", part="plain", data="Adult", method="PATE", epsilon=1.0)[0]
    grid = script.Grid(
        data=script.DataSource(name="adult"),
        runs=({"method": ["pate"], "epsilon": (1.0,), **script.LABELS},),
        seeds=(0,),
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        script.RunStore(Path(folder) / "runs.db") as store,
    ):
        script.sweep(grid, store, n_jobs=1, cache=Path(folder) / "votes")
        (run,) = store.get(store.keys())
    for name in ("error", "gap", "coverage"):
        yield noisy("PATE, epsilon 1", row[f"{name}s"], getattr(run, name), name)


def fairpate_settings(script: Any) -> Checks:
    """Income by sex, sound, at the centre: one seed."""
    case = script.CASES[0]
    row = rows("fairpate_settings", moved=case.moved)[0]
    data = script.TASKS[row["task"]]()
    share = script.POOL / (0.75 * len(data.y)) * 1.001
    split = data.split(public=share, test=0.25, random_state=0)
    error, _, answers, *_ = script.run(case, split, 0)
    yield noisy("centre", row["all_error"], error, "error")
    yield noisy("centre", row["all_answers"], answers, "labels")


def fairpate_utkface(script: Any) -> Checks:
    """Logistic regression on all private faces, without privacy."""
    wanted = {"method": "no privacy", "public": script.U_PUBLISHED}
    (row,) = script.select(rows("fairpate_utkface"), **wanted)
    whole = script.split(script.faces(), 0, script.U_PUBLISHED, script.faces().X.shape[1])
    _, _, model, _ = next(script.without_privacy(whole))
    found, names = script.measured(model, whole, None), ("accuracy", "gap")
    first = [row["repeats"][name][0] for name in names]
    yield from exact("no privacy", first, [found[name] for name in names], *names)


def fairpate_utkface_figures(script: Any) -> Checks:
    """Take the gate of one cell, without and with its reject option."""
    wanted = {"part": "cells", "method": script.GATE, "epsilon": 2.0, "margin": 0.05}
    (row,) = script.select(rows("fairpate_utkface_figures"), **wanted)
    data = script.split(script.faces(), 0, script.U_PUBLISHED, int(script.SETTINGS["components"]))
    model = script.gate(0.05, **script.common(data, 2.0, 0))
    model.fit(data.private.X, data.private.y, **script.public(data))
    found = script.measured(script.GATE, model, data) | script.answered(model, data, 0.05)
    for name in ("error", "answered error", "coverage"):
        yield noisy("gate, epsilon 2, margin .05", row["repeats"][name], found[name], name)


def fidelity_beside_sdmetrics(script: Any) -> Checks:
    """German credit: how many columns and pairs are compared, by kind; scores need SDMetrics."""
    real, made, schema = script.tables("German")
    found = script.fidelity(real, made, schema=schema)
    kinds = {column.name: column.kind == "numeric" for column in schema.columns}
    numbers = sum(kinds[column.name] for column in found.columns)
    pairs = sum(kinds[pair.first] and kinds[pair.second] for pair in found.pairs)
    fresh = {
        "KSComplement": numbers,
        "TVComplement": len(found.columns) - numbers,
        "CorrelationSimilarity": pairs,
        "ContingencySimilarity": len(found.pairs) - pairs,
    }
    for row in rows("fidelity_beside_sdmetrics", data="German"):
        metric = row["metric"]
        yield from exact(f"German, {metric}", [row["scores"]], [fresh[metric]], "scores")


def generator_frontiers(script: Any) -> Checks:
    """Adult, the default generator at epsilon 1, natural rows: one setting of the sweep."""
    wanted = {"method": "marginal", "epsilon": 1.0, "sees group": True, "way": script.NATURAL}
    row = script.one(rows("generator_frontiers"), data="Adult", **wanted)
    run_of = {**script.runs_of([1.0])[0], "method": ["marginal"]}
    grid = script.Grid(data=script.DataSource(name="adult"), runs=(run_of,), seeds=(0,))
    with (
        tempfile.TemporaryDirectory() as folder,
        script.RunStore(Path(folder) / "runs.db") as store,
    ):
        script.sweep(grid, store, n_jobs=1)
        (run,) = store.get(store.keys())
    for name in ("error", "gap"):
        yield noisy("marginal, epsilon 1, natural", row[f"{name}s"], getattr(run, name), name)


def group_thresholds(script: Any) -> Checks:
    """DP-SGD, the first margin; equalized odds on Credit without privacy, where no noise enters."""
    odds = json.loads((RESULTS / "group_thresholds.json").read_text())["odds"]["rows"]
    split = script.Scored(script.load_credit_default(), script.FREE, 0)
    for row in odds:
        if (row["data"], row["model"]) == ("Credit", script.FREE) and "ours" in row["rule"]:
            found = split.measured(row["rule"], row["margin"])
            words = f"Credit, {row['rule']}, margin {row['margin']:g}"
            yield from exact(words, row["repeats"][0][:2], found[:2], "error", "gap")
    row = rows("group_thresholds")[0]
    error, gap = script.measure(row["method"], row["epsilon"], 0)[0]
    yield noisy_mean("DP-SGD", row["error"], row["error_pm"], 5, error, "error")
    yield noisy_mean("DP-SGD", row["gap"], row["gap_pm"], 5, gap, "gap")


def intervention_points(script: Any) -> Checks:
    """PATE without a margin."""
    row = rows("intervention_points")[0]
    run = script.Run(script.LOADERS[row["data"]](), row["epsilon"], 0)
    found = dict(zip(script.COLUMNS, run.measure(*script.ROWS[row["point"]]), strict=True))
    for name in ("error", "gap"):
        half = row[f"{name}_pm"]
        yield noisy_mean(row["point"], row[name], half, row["seeds"], found[name], name)


def jagielski_adult(script: Any) -> Checks:
    """Take the reference without privacy, every margin."""
    saved = json.loads((RESULTS / "jagielski_adult.json").read_text())["exact"]
    for row, found in zip(saved, script.reference(script.load_adult(), 0), strict=True):
        words = f"not private, margin {row['margin']:g}"
        yield from exact(words, row["repeats"][0][:2], found[:2], "error", "gap")


def labels_or_shares(script: Any) -> Checks:
    """Parkinsons without a margin."""
    for row in rows("labels_or_shares", data="Parkinsons", epsilon=1.0, margin=None):
        data = script.LOADERS["Parkinsons"]()
        error, gap, *_ = script.measure(data, 1.0, None, row["answers"], 0)
        words = f"Parkinsons, {row['answers']}"
        yield noisy_mean(words, row["error"], row["error_pm"], 10, error, "error")
        yield noisy_mean(words, row["gap"], row["gap_pm"], 10, gap, "gap")


def membership(script: Any) -> Checks:
    """Credit with 500 private rows, every way."""
    fresh = {run["way"]: run["found"] for run in script.measure("Credit", 500, 0)}
    for row in rows("membership", data="Credit", n=500):
        for at, name in enumerate(("area", "found")):
            repeats = [run[at] for run in row["repeats"]]
            yield noisy(f"{row['way']}, distance", repeats, fresh[row["way"]][at], name)


def no_privacy(script: Any) -> Checks:
    """Parkinsons, the first ridge, all seeds."""
    row = rows("no_privacy", data="Parkinsons")[0]
    found = script.errors("Parkinsons", script.RIDGES[0], 10)
    yield from exact("Parkinsons", row[f"{script.RIDGES[0]:g}"][:1], [found.mean()], "error")


def drawn_small_groups(script: Any) -> Checks:
    """COMPAS at epsilon 1, every way."""
    fresh = {run["way"]: run for run in script.measure("COMPAS", 1.0, 0)}
    for row in rows("drawn_small_groups", data="COMPAS", epsilon=1.0):
        for name in ("error", "odds_all"):
            repeats, now = row["values"][name], fresh[row["way"]][name]
            yield noisy(f"COMPAS, {row['way']}", repeats, now, name)


def drift(script: Any) -> Checks:
    """ACS-Income, epsilon 3: errors without a margin, and how far apart a column is."""
    fresh = {run["kind"]: run for run in script.measure("ACS-Income", 3.0, 0)}
    for kind, found in fresh.items():
        own = rows("drift", data="ACS-Income", epsilon=3.0, kind=kind)
        yield noisy(f"ACS-Income, {kind}", [row["error"] for row in own], found["error"], "error")
        for name in ("AGEP",) if found["distances"] else ():
            saved = [row["distances"][name][0] for row in own]
            yield noisy(f"{kind}, {name}", saved, found["distances"][name][0], "distance")


def no_public_rows(script: Any) -> Checks:
    """ACS-Income, public rows, drawn ones and DP-SGD, epsilon 3, without a margin."""
    for way in (script.REAL, script.DRAWN, script.SGD):
        yield from _without_margin("no_public_rows", script, way)


def notions_on_adult(script: Any) -> Checks:
    """Noisy shares, the student without a margin."""
    found = script.measure(script.load_adult(), 3.0, "shares", 0)[0]
    keys = ("answers", "notion", "margin", "source")
    own = [r for r in rows("notions_on_adult") if all(r[key] == found[key] for key in keys)]
    for name in ("error", "gap"):
        yield noisy("no margin", [r[name] for r in own], found[name], name)


def owners(script: Any) -> Checks:
    """One private model of all records, epsilon 1."""
    row = rows("owners", way="pooled, private", epsilon=1.0)[0]
    split = script.load_adult().split(public=0.2, test=0.25, random_state=0)
    for name, fresh in zip(("error", "gap"), script.pooled(split, 1.0, 0), strict=True):
        yield noisy_mean("pooled, epsilon 1", row[name], row[f"{name}_pm"], 5, fresh, name)


def silos(script: Any) -> Checks:
    """MathAchieve, the first seed: owners alone, and their votes for each record at epsilon 1."""
    saved = json.loads((RESULTS / "silos.json").read_text())["runs"]
    mine = [run["rows"] for run in saved if run["set"] == "math-achieve"]
    scene = script.Scene("math-achieve", 0)
    own = [
        scene.judged(script.learned(scene.X[rows], scene.y[rows]).predict(scene.test))
        for rows in scene.owners
    ]
    row = "median owner alone, not private"
    yield from exact(row, mine[0][row], [float(x) for x in np.median(own, axis=0)], "error", "gap")
    row = "votes, for each record | 0.05 | 1.0"
    fresh = scene.voted(scene.votes("record"), 1.0, 0.05)
    for at, name in enumerate(("error", "gap")):
        yield noisy(row, [run[row][at] for run in mine], fresh[at], name)


def pfguard_bias(script: Any) -> Checks:
    """Clothes, the mean embedding at epsilon 10."""
    case = script.cases()[0]
    for found in script.measure(case, 10.0, 0):
        case_of = {"data": case.data, "name": case.name, "epsilon": 10.0}
        row = rows("pfguard_bias", **case_of, way=found["way"])[0]
        for name in ("snr", "kl", "mlp_accuracy"):
            yield noisy(row["way"], [run[name] for run in row["runs"]], found[name], name)


def pfguard_clip(script: Any) -> Checks:
    """One fit at the smallest clip norm, whose noise is drawn anew."""
    row = rows("pfguard_clip", way=script.WEIGHTED, clip_norm=script.SMALL)[0]
    found = script.measure(script.WEIGHTED, script.SMALL, 0)
    for name in ("snr", "kl", "accuracy"):
        yield noisy("smallest C", [run[name] for run in row["runs"]], found[name], name)


def pfguard_frontiers(script: Any) -> Checks:
    """One fit with fair sampling at the smallest epsilon."""
    row = rows("pfguard_frontiers", sampling=script.FAIR, epsilon=script.STRONG)[0]
    found = script.measure(script.FAIR, script.STRONG, 0)
    for name in ("snr", "disparity", "accuracy"):
        yield noisy("epsilon 1", [run[name] for run in row["runs"]], found[name], name)


def pfguard_faces(script: Any) -> Checks:
    """Take G-PATE on small faces, without fair sampling."""
    row = rows("pfguard_faces")[0]
    found = script.measure(row["data"], row["base"], row["sampling"], 0)
    yield from exact(row["base"], [row["runs"][0]["snr"]], [found["snr"]], "signal to noise")
    for name in ("accuracy", "men"):
        yield noisy(row["base"], [run[name] for run in row["runs"]], found[name], name)


def pfguard_mnist(script: Any) -> Checks:
    """Take the mean embedding as it is, at epsilon 10."""
    row = rows("pfguard_mnist")[0]
    found = script.one_run(row["setting"], row["epsilon"], 0, None)
    for name in ("snr", "kl", "mlp_accuracy"):
        yield noisy(row["setting"], [run[name] for run in row["runs"]], found[name], name)


def pfguard_sampling(script: Any) -> Checks:
    """Critics of teachers without fair sampling: the signal to noise, and KL beside its spread."""
    row = rows("pfguard_sampling")[0]
    found = script.measure(script.settings()[0], 0)
    yield from exact(row["name"], [row["snr"]], [found["snr"]], "signal to noise")
    yield noisy(row["name"], [run["kl"][0] for run in row["repeats"]], found["kl"][0], "kl")


def pfguard_table5(script: Any) -> Checks:
    """One generator, all its settings."""
    found, _ = script.one_seed(script.table(), 0)
    for row in rows("pfguard_table5"):
        for name in ("auroc", "demographic"):
            mean, half = row[name]
            yield noisy_mean(row["setting"], mean, half, 10, found[row["setting"]][name], name)


def pfguard_table5_methods(script: Any) -> Checks:
    """Take the first method, as it is."""
    row = rows("pfguard_table5_methods")[0]
    private, test = script.parts(script.table(), 0)
    made = script.FITS[row["method"]][0](0)
    made.fit(private, label="income", sensitive="sex", budget=script.BUDGET)
    measured = script.measured(script.drawn(made, row["rows"], 0), test, made.codec_.schema, 0)
    for name in ("auroc", "demographic"):
        mean, half = row[name]
        yield noisy_mean(row["method"], mean, half, row["seeds"], measured[name], name)


def pfguard_teachers(script: Any) -> Checks:
    """Figure 4 with all eights and fair sampling."""
    found = script.measure("bias", 1, script.FAIR, 0)
    row = rows("pfguard_teachers", data="bias", at=1, sampling=script.FAIR)[0]
    for name in ("snr", "recall", "others"):
        yield noisy("all eights", [run[name] for run in row["runs"]], found[name], name)


def pfguard_normalization(script: Any) -> Checks:
    """Shares that are drawn from a part of eight pictures: no noise and no chance."""
    for row in rows("pfguard_normalization", data="law", at=8):
        found = script.calculate("law", row["weights"], 8)
        names = (script.N1, script.N2)
        old, new = ([one[name] for name in names] for one in (row, found))
        yield from exact(f"8 pictures, {row['weights']}", old, new, *names)


def pfguard_unknown(script: Any) -> Checks:
    """Section C.3 on 3 and 1: the bound by clusters and by labels, with noise drawn anew."""
    for row in rows("pfguard_unknown", data="bound", at=next(iter(script.BOUNDS))):
        found = script.estimate("bound", row["at"], row["way"], 0)
        saved = [run["estimated"] for run in row["runs"]]
        yield noisy(f"{row['at']}, {row['way']}", saved, found["estimated"], "bound")


def picture_budgets(script: Any) -> Checks:
    """Digits at epsilon 10: one fit of a mixture and one of private evolution."""
    for method in (script.GAUSSIAN, script.EVOLUTION):
        wanted = {"data": "MNIST", "method": method, "epsilon": 10.0}
        saved = [row["accuracy"] for row in script.select(rows("picture_budgets"), **wanted)]
        fresh = script.measure("MNIST", method, 10.0, 0)["accuracy"]
        yield noisy(f"MNIST, {method}, epsilon 10", saved, fresh, "accuracy")


def published_points(script: Any) -> Checks:
    """Parkinsons at the largest epsilon, DP-SGD without a margin."""
    row = rows("published_points", data="Parkinsons", epsilon=9.0, method=script.GRADIENTS)[0]
    fits = script.Fits(script.LOADERS["Parkinsons"](), row["epsilon"], 0)
    _, error, gap = next(fits.gradients(script.PARITY))
    yield from _error_and_gap("Parkinsons, DP-SGD", row, error, gap)


def reviewers(script: Any) -> Checks:
    """Adult, one model, the widest margin and counts apart."""
    row = rows("reviewers", data="Adult", way="apart", margin=0.1, staff=1)[0]
    fresh = script.simulate(
        script.fitted("Adult", 0), "apart", 0.1, row["error"], row["factor"], row["staff"]
    )
    for name in ("not_right", "gap", "refused"):
        yield noisy_mean("Adult, apart", *row[name], row["seeds"], fresh[name], name)


def rivals(script: Any) -> Checks:
    """ACS-Income, epsilon 3, one split: two ways, whose noise is drawn anew."""
    for way in (script.OURS, script.EBM):
        wanted = ("ACS-Income (CT)", way, 3.0)
        saved = [
            script.size(row)
            for row in rows("rivals")
            if (row["data"], row["way"], row["epsilon"]) == wanted
        ]
        fresh = script.measure(*wanted, 0)
        yield noisy(f"ACS-Income, {way}", saved, script.size(fresh), "hypervolume")


def rows_and_counts(script: Any) -> Checks:
    """ACS-Income, real rows and counts, epsilon 3, without a margin."""
    yield from _without_margin("rows_and_counts", script, script.BOTH)


def sf_pate_choices(script: Any) -> Checks:
    """SF_S on German credit."""
    row = rows("sf_pate_choices")[0]
    load, most = script.TABLES["German"]
    data = load()
    train, validation = script.parts(data, most, 0)
    model = script.fitted(row["data"], train, script.CHOSEN_ON[0], 0, {})
    names = script.encode_groups(data.groups).names
    judged = script.judge(model, validation, names, script.CHOSEN_ON[0])
    # German comes first, and every seed has a run for each of the notions.
    own = row["repeats"][: len(row["repeats"]) // len(script.TABLES) : len(script.CHOSEN_ON)]
    for name, old, new in zip(
        ("accuracy", "violation"), zip(*own, strict=True), judged, strict=True
    ):
        yield noisy("SF_S, German", old, new, name)


def fairpate_accounting(script: Any) -> Checks:
    """FairPATE as printed, one seed, the first epsilon and margin."""
    row = rows("fairpate_accounting")[0]
    split = script.load_adult().split(public=0.2, test=0.25, random_state=0)
    kind, settings = script.pairs()[row["rules"]][row["method"]]
    model = next(script.fitted(kind, settings, split, 0))
    now = script.measure(model, split)
    for key in ("error", "answers"):
        yield noisy("as printed", row[f"all_{key}"], now[key], key)


def stand_in(script: Any) -> Checks:
    """Connecticut by Maryland, one seed: how errors are ordered."""
    row = rows("stand_in", data="CT", stand_in="MD")[0]
    fresh = [np.array(script.measure(script.TABLES[name](), 0)) for name in ("CT", "MD")]
    rank = float(stats.spearmanr(fresh[0][:, 0], fresh[1][:, 0])[0])
    yield noisy("CT by MD", [one["ranks"][0] for one in row["by_seed"]], rank, "rank of errors")


def sf_pate_figure2(script: Any) -> Checks:
    """Take the fair model with true groups, on Bank, and M on Parkinsons."""
    row = rows("sf_pate_figure2", method="fair")[0]
    data = script.LOADERS[row["data"]]()
    split = data.split(public=0.0, test=0.25, random_state=0)
    model = script.FIT["fair"](split.private, row["notion"], np.inf, 0)
    names = script.encode_groups(data.groups).names
    judged = script.judge(model, split.test, names, row["notion"])
    yield from exact("fair, Bank", row["repeats"][0], judged, "accuracy", "violation")
    row = rows("sf_pate_figure2", data="Parkinsons", method="M", epsilon=1.0)[0]
    data = script.LOADERS["Parkinsons"]()
    split = data.split(public=0.0, test=0.25, random_state=0)
    model = script.FIT["M"](split.private, row["notion"], 1.0, 0)
    judged = script.judge(model, split.test, script.encode_groups(data.groups).names, row["notion"])
    for at, name in enumerate(("accuracy", "violation")):
        yield noisy("M, Parkinsons", [run[at] for run in row["repeats"]], judged[at], name)


def sf_pate_figure3(script: Any) -> Checks:
    """Parkinsons, every way, size and epsilon."""
    found = script.of_seed(script.LOADERS["Parkinsons"](), 0)
    for row in rows("sf_pate_figure3"):
        key = (row["way"], row["rows"], row["teachers"], row["epsilon"])
        if row["data"] == "Parkinsons" and row["epsilon"] == 1.0:
            repeats = [run[0] for run in row["repeats"]]
            yield noisy(", ".join(map(str, key)), repeats, found[key][0], "accuracy")


def sf_pate_table1(script: Any) -> Checks:
    """Parkinsons: the time of M beside that of SF_S, both on this machine."""
    data = script.LOADERS["Parkinsons"]().split(public=0.0, test=0.25, random_state=0).private
    script.METHODS["SF_S"](data)  # the first fit of a process loads libraries
    seconds = {}
    for method in ("SF_S", "M"):
        start = time.process_time()
        script.METHODS[method](data)
        seconds[method] = time.process_time() - start
    ratio = seconds["M"] / seconds["SF_S"]
    for row in rows("sf_pate_table1", data="Parkinsons", method="M"):
        yield Check(
            row="Parkinsons: time of M, of SF_S",
            saved=row["ratio"],
            fresh=ratio,
            within=max(row["ratio"], ratio) / 2,
            near="within a factor of 2",
        )


def sf_pate_teachers(script: Any) -> Checks:
    """ACS-Income, 4,400 rows: every step up to the votes without noise."""
    name = "ACS-Income, 4,400 rows"
    data = script.load_acs_income()
    names = script.encode_groups(data.groups).names
    found = script.steps(*script.parts(data, 4400, 0), names, 0)
    for row in rows("sf_pate_teachers"):
        if row["data"] == name and not row["step"].startswith("SF_T"):
            fresh = found[row["step"]]
            yield from exact(row["step"], row["repeats"][0], fresh, "accuracy", "violation")


def sf_pate_utkface(script: Any) -> Checks:
    """Take the model of features and labels without a constraint, which no noise enters."""
    at = ("features", "plain")
    (row,) = (r for r in rows("sf_pate_utkface") if (r["data"], r["method"]) == at)
    data = script.faces("features")
    train, test = (data.rows(some) for some in script.parts(len(data.y), 0))
    judged = script.judged(script.plain(train), test)
    yield from exact("features, plain", row["repeats"][0][:2], judged, "accuracy", "violation")


def small_groups(script: Any) -> Checks:
    """Connecticut, every way."""
    found = script.measure("CT", 0)
    for row in rows("small_groups", state="CT"):
        yield noisy(f"CT, {row['way']}", row["errors"], found[row["way"]]["error"], "error")


def table_budgets(script: Any) -> Checks:
    """Adult, one split, all its fits."""
    found = {(r["epsilon"], r["rows"]): r["auroc"] for r in script.measure("Adult", 0)}
    for row in rows("table_budgets"):
        if row["data"] == "Adult" and row["rows"] is not None:
            fresh = found[row["epsilon"], row["rows"]]
            words = f"epsilon {row['epsilon']}, {row['rows']} rows"
            yield noisy(words, row["values"], fresh, "AUROC")


def wide_table(script: Any) -> Checks:
    """Take the made table, one split: the other needs its file."""
    for found in script.measure(script.MADE, script.made_table(), script.FIRST):
        (row,) = rows("wide_table", data=script.MADE, epsilon=found["epsilon"])
        for model in script.MODELS:
            words = f"epsilon {found['epsilon']}, {model}"
            yield noisy(words, [run[model] for run in row["runs"]], found[model], "AUROC")


def table_rivals(script: Any) -> Checks:
    """Ours on Adult, one split: rivals need another interpreter."""
    kept = script.select(rows("table_rivals"), data="Adult", way=script.OURS)
    for epsilon in script.EPSILONS:
        saved = [row["auroc"] for row in kept if row["epsilon"] == epsilon]
        fresh = script.measure("Adult", 0, epsilon, script.OURS, "")["auroc"]
        yield noisy(f"ours, epsilon {epsilon:g}", saved, fresh, "AUROC")


def teacher_gan_choices(script: Any) -> Checks:
    """GS-WGAN, the default."""
    row = rows("teacher_gan_choices")[0]
    found = script.fitted(row["data"], {}, 0)
    for at, name in enumerate(("accuracy", "gap")):
        yield noisy(row["setting"], [run[at] for run in row["repeats"]], found[at], name)


def two_tables(script: Any) -> Checks:
    """Epsilon 3, one fit; what is measured of the real tables, to the digit."""
    saved = json.loads((RESULTS / "two_tables.json").read_text())
    real = script.real_row()
    yield from exact("real", [saved["real"][n] for n in real], list(real.values()), *real)
    row = next(row for row in saved["rows"] if row["epsilon"] == 3.0)
    fresh = script.measure(3.0, 0)
    for name, values in row["values"].items():
        yield noisy("epsilon 3", values, fresh[name], name)


def teachers_ahead(script: Any) -> Checks:
    """Rules of two cuts, 50,000 rows, epsilon 3: teachers and DP-SGD, with noise drawn anew."""
    data = next(iter(script.MADE))
    saved = json.loads((RESULTS / "teachers_ahead.json").read_text())["runs"]
    for way in (script.TEACHERS, script.SGD):
        own = [r for r in saved if (r["data"], r["way"], r["epsilon"]) == (data, way, 3.0)]
        fresh = script.measure(data, 1, 3.0, way)
        yield noisy(f"{data}, {way}", [r["error"] for r in own], fresh["error"], "error")


def teachers_tried(script: Any) -> Checks:
    """Parkinsons, one split, every way with logistic teachers: the noise is drawn anew."""
    fresh = script.measure("logistic", 0, "Parkinsons")
    yield from _tried("teachers_tried", "Parkinsons", fresh)


def theory(script: Any) -> Checks:
    """Every claim: all of its numbers."""
    saved = rows("theory")
    for row, claim in zip(saved, script.CLAIMS, strict=True):
        fresh = json.loads(json.dumps(claim()))
        same = fresh == {key: row[key] for key in fresh}
        yield Check(row=f"{row['source']}: all numbers", saved=1.0, fresh=float(same))


def _error_and_gap(words: str, row: dict[str, Any], error: float, gap: float) -> Checks:
    for at, (name, fresh) in enumerate((("error", error), ("gap", gap))):
        yield noisy(words, [run[at] for run in row["repeats"]], fresh, name)


def _tried(name: str, table: str, fresh: list[dict[str, Any]]) -> Checks:
    """One split of a table, beside what is saved of the same ways and epsilons."""
    for row in fresh:
        wanted = {key: row[key] for key in ("way", "epsilon")}
        kept = [own["error"] for own in rows(name, table=table, **wanted)]
        yield noisy(f"{table}, {row['way']}, {row['epsilon']:g}", kept, row["error"], "error")


def _without_margin(name: str, script: Any, way: str) -> Checks:
    """One seed of ACS-Income at epsilon 3, beside what is saved of the same way."""
    wanted = ("ACS-Income", way, 3.0, None)
    saved = [
        row["error"]
        for row in rows(name)
        if (row["data"], row["way"], row["epsilon"], row["margin"]) == wanted
    ]
    fresh = script.measure("ACS-Income", way, 3.0, 0)
    (found,) = (row["error"] for row in fresh if row["margin"] is None)
    yield noisy(f"ACS-Income, {way}", saved, found, "error")


CHECKS = {
    check.__name__: check
    for check in (
        assessments,
        beside_glued,
        blind_rules,
        choices,
        dp_fermi_adult,
        dpsgd_adult,
        drawn_small_groups,
        drift,
        dpsgd_curves,
        doubted_rows,
        dpsgd_features,
        dpsgd_steps,
        fairpate_accounting,
        fairpate_color_mnist,
        fairpate_figure2,
        fairpate_frontiers,
        fairpate_settings,
        fairpate_utkface,
        fairpate_utkface_figures,
        fidelity_beside_sdmetrics,
        generator_frontiers,
        group_thresholds,
        intervention_points,
        jagielski_adult,
        labels_or_shares,
        many_records,
        margins_on_new_rows,
        membership,
        no_privacy,
        no_public_rows,
        notions_on_adult,
        owners,
        pfguard_bias,
        pfguard_clip,
        pfguard_frontiers,
        pfguard_faces,
        pfguard_mnist,
        pfguard_normalization,
        pfguard_sampling,
        pfguard_table5,
        pfguard_table5_methods,
        pfguard_teachers,
        pfguard_unknown,
        picture_budgets,
        published_points,
        reviewers,
        rivals,
        rows_and_counts,
        sf_pate_choices,
        sf_pate_figure2,
        sf_pate_figure3,
        sf_pate_table1,
        sf_pate_teachers,
        sf_pate_utkface,
        silos,
        small_groups,
        stand_in,
        table_budgets,
        table_rivals,
        teacher_gan_choices,
        teachers_ahead,
        teachers_tried,
        theory,
        two_tables,
        wide_table,
    )
}


def main() -> int:
    """Compare, print a line for each number, and say whether all agree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*CHECKS, []], metavar="NAME")
    differ = 0
    print("| script | row | saved | now | agrees? | seconds |\n" + "| --- " * 6 + "|")
    for name in parser.parse_args().names or CHECKS:
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = list(CHECKS[name](import_module(name)))
            except DataNotAvailable as error:
                print(f"| {name} | - | - | - | no data: {str(error).splitlines()[0]} | - |")
                continue
        took = f"{time.perf_counter() - start:.0f}"
        for check in found:
            differ += check.verdict.startswith("**")
            print(
                f"| {name} | {check.row} | {check.saved:.6g} | {check.fresh:.6g} "
                f"| {check.verdict} | {took} |",
                flush=True,
            )
    return int(differ > 0)


if __name__ == "__main__":
    raise SystemExit(main())

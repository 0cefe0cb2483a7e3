"""Ours beside what users glue together from packages, on a table of your own.

    python reproductions/beside_glued.py TABLE.csv --label NAME --sensitive NAME [--save]
    python reproductions/beside_glued.py all --seeds 10 [--kept FILE] [--ours-alone] [--save]
    python reproductions/beside_glued.py german star parkinsons --seeds 40 [--kept FILE] [--save]

Extra ``glued``: Opacus and PyTorch. TABLE is a file, one of the built-in tables named below, or
"all" for the eight of the goals. The labels and groups of test rows are read here, so run it where
you may look at them.

Protocol: each split has 65 % private, 15 % public and 20 % test rows; ``--seeds`` splits (3), 10 of
the tables of the goals, whose splits differ by more than the goals: said, and run, after three of
each had been seen, of German, STAR and Parkinsons first, and of the other five at once. Then 40 of
these three small ones, whose own intervals were up to ten times a goal: said after ten had been
seen, with which three goals were missed; there it ends, whatever comes of it. Epsilon .5, 1 and 3
at delta 1e-5; no setting is read off the table. The public rows scale the columns by
``PublicEncoder`` for both sides, and their labels are never read. Three splits of the five are
those of commit 633badbb, handed on in ``--kept``, as are all of the first three, and ten of each
table those of 6c7c1b9b.

*Glued*: a network of one hidden layer of 64 units by Opacus (``make_private_with_epsilon``, Poisson
samples of 256 or a quarter of the rows, 15 epochs, Adam at rate .01, clipping norm 1; rate and
epochs lie between three pairs that were tried on training rows of ACS-Income), and around it
fairlearn's ``ThresholdOptimizer`` with a tolerance, on labels that are drawn from its own scores on
the public rows, for these have none; again where a group has one label only, which fairlearn
refuses. It reads the group of whom it decides about. *Glued, blind*
does not: fairlearn's ``ExponentiatedGradient`` (20 rounds, half of the margin as the bound of each
group's distance from all) around a logistic regression on the public rows, whose labels are the
network's decisions: better than drawn labels on training rows of ACS-Income CT (.733 for .725).

*Ours*: ``AutoClassifier(group_at_prediction=True)``, which reads the group too: one threshold per
group, from a mu of .25 on (epsilon 1 and 3 here) set on noisy counts of the private rows' scores
beside the public rows, and inside the margin by one standard error of the gap; and without the
group ``AutoClassifier`` without a margin, with a blind rule around it (``with_blind_rule``). The
thresholds stand beside the glued ones; the blind rule stands beside the glued blind one, and beside
the glued thresholds. Counts, the standard error, and then the rows whitened for the descent
(``dpsgd_curves.py``) came after all of these rows had been seen; they were chosen on private rows
of the tables, Adult not among them, the last not on Bank either. With the last ours was run once
more on the same splits, all of them; German has too few public rows to be whitened, so only its
noise was drawn anew.

Margins .01, .02, .05, .1 and .2 of demographic parity between every two groups, and none. Of each
side the points (error, gap) on the test rows have a hypervolume, in the unit square. What is shown
is ours minus theirs, its mean and 95 % interval over splits. Rule, written before the first run: a
row agrees if the interval lies above 0; it is "level" if it holds 0, and does not agree below.

Goals, over the eight tables of ``GOAL_TABLES``, at each epsilon (written before the first run of
all): the mean over tables of a table's mean over splits is at least +.003 for thresholds beside
glued thresholds, and at least +.005 for the blind rule beside the glued blind one, and its 95 %
interval over tables lies above 0. Else the goal is missed. Beside glued thresholds, which read the
group, the blind rule has no goal.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from _table import RESULTS, Mean, Runs, asked, commit, interval, rule, select, write
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

from evenhand import Budget, DemographicParity
from evenhand.datasets import (
    Dataset,
    PublicEncoder,
    load_acs_income,
    load_adult,
    load_bank,
    load_credit_default,
    load_german,
    load_parkinsons,
    read_table,
)
from evenhand.datasets.compas import load_compas
from evenhand.datasets.silos import load_star
from evenhand.estimators.auto import AutoClassifier
from evenhand.fairness import gap_of
from evenhand.fairness.groups import GroupCodes, encode_groups
from evenhand.fairness.tally import Tally
from evenhand.frontier import hypervolume

BUILT_IN: dict[str, Callable[[], Dataset]] = {
    "compas": load_compas,
    "german": load_german,
    "star": load_star,
    "parkinsons": lambda: load_parkinsons(keep_motor_updrs=True),
    "acs-ct": lambda: load_acs_income(("CT",)),
    "credit": load_credit_default,
    "acs-md": lambda: load_acs_income(("MD",)),
    "bank": load_bank,
    "adult": load_adult,
}
GOAL_TABLES = tuple(name for name in BUILT_IN if name != "compas")
EPSILONS = (0.5, 1.0, 3.0)
MARGINS = (0.01, 0.02, 0.05, 0.1, 0.2)
DELTA = 1e-5
WAYS = ("thresholds", "blind rule")
GLUED, GLUED_BLIND = "glued", "glued, blind"
COMPARED = (("thresholds", GLUED), ("blind rule", GLUED_BLIND), ("blind rule", GLUED))
GOALS = {COMPARED[0]: 0.003, COMPARED[1]: 0.005}
BESIDE = {GLUED: "thresholds", GLUED_BLIND: "blind"}
HIDDEN, EPOCHS, RATE, BATCH = 64, 15, 0.01, 256


class Split:
    """One split of a table, with what everybody may know of it."""

    def __init__(self, data: Dataset, seed: int) -> None:
        # 20 % test; 15 of the other 80 are public.
        split = data.split(public=0.15 / 0.8, test=0.2, random_state=seed)
        self.private, self.public, self.test = split.private, split.public, split.test
        self.seed = seed
        self.classes = np.unique(np.asarray(data.y))
        self.truth = np.asarray(self.test.y)
        self.groups: GroupCodes = encode_groups(self.test.groups)

    def point(self, decided: Any) -> tuple[float, float]:
        """Return error and gap of decisions on the test rows."""
        codes = np.searchsorted(self.classes, np.asarray(decided))
        tally = Tally.of(self.groups.codes, codes, self.groups.n_groups, len(self.classes))
        gap = gap_of(DemographicParity(margin=0.0, reference="pairwise"), tally)
        return float((np.asarray(decided) != self.truth).mean()), gap.value


def ours(split: Split, epsilon: float) -> dict[str, list[tuple[float, float]]]:
    """Return the points of our models without a rule, with thresholds, and with a blind rule."""
    parities = [DemographicParity(margin=margin, reference="pairwise") for margin in MARGINS]
    budget, rows = Budget(epsilon=epsilon, delta=DELTA), (split.public.X, split.public.groups)
    private, test = split.private, split.test
    blind = AutoClassifier(budget, random_state=split.seed)
    blind.fit(private.X, private.y, X_public=split.public.X)
    seen = AutoClassifier(budget, parities[0], group_at_prediction=True, random_state=split.seed)
    seen.fit(
        private.X,
        private.y,
        sensitive_features=private.groups,
        X_public=rows[0],
        sensitive_features_public=rows[1],
    )
    model = seen.model_.model_  # one fit has the thresholds of every margin
    found = {"thresholds": [split.point(model.predict(test.X))]}
    found["blind rule"] = [split.point(blind.predict(test.X))]
    for parity in parities:
        cut = model.with_group_thresholds(
            *rows, fairness=parity, tightening=seen.choice_.tightening
        )
        decided = cut.predict(test.X, sensitive_features=test.groups, random_state=0)
        found["thresholds"].append(split.point(decided))
        ruled = blind.with_blind_rule(*rows, fairness=parity)
        found["blind rule"].append(split.point(ruled.predict(test.X)))
    return found


def glued(split: Split, epsilon: float) -> dict[str, list[tuple[float, float]]]:
    """Return the points of Opacus and fairlearn, by thresholds and by a blind student."""
    from fairlearn.postprocessing import ThresholdOptimizer
    from fairlearn.reductions import DemographicParity as Parity
    from fairlearn.reductions import ExponentiatedGradient

    encoder = PublicEncoder().fit(split.public.X)
    X, public, test = (encoder.transform(p.X) for p in (split.private, split.public, split.test))
    scores = _opacus(X, (np.asarray(split.private.y) == split.classes[1]), epsilon, split.seed)
    free = split.point(split.classes[(scores.probabilities(test) > 0.5).astype(int)])
    found = {GLUED: [free], GLUED_BLIND: [free]}
    rng = np.random.default_rng(split.seed)
    p, groups = scores.probabilities(public), np.asarray(split.public.groups)
    drawn = (rng.random(len(p)) < p).astype(int)
    while any(len(np.unique(drawn[groups == z])) < 2 for z in np.unique(groups)):
        drawn = (rng.random(len(p)) < p).astype(int)
    for margin in MARGINS:
        cut = ThresholdOptimizer(
            estimator=scores, prefit=True, predict_method="predict_proba", tol=margin
        )
        cut.fit(public, drawn, sensitive_features=groups)
        decided = cut.predict(
            test, sensitive_features=np.asarray(split.test.groups), random_state=0
        )
        found[GLUED].append(split.point(split.classes[np.asarray(decided).astype(int)]))
        bound = Parity(difference_bound=margin / 2)
        student = ExponentiatedGradient(LogisticRegression(max_iter=1000), bound, max_iter=20)
        student.fit(public, (p > 0.5).astype(int), sensitive_features=groups)
        decided = student.predict(test, random_state=0)
        found[GLUED_BLIND].append(split.point(split.classes[np.asarray(decided).astype(int)]))
    return found


class _Scores(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # untyped bases
    """A trained network as fairlearn wants an estimator."""

    def __init__(self, network: Any) -> None:
        self.network = network
        self.classes_ = np.array([0, 1])

    def fit(self, X: Any, y: Any) -> _Scores:
        """Do nothing: it is trained."""
        return self

    def probabilities(self, X: Any) -> Any:
        """Return the chance of class 1."""
        import torch

        with torch.no_grad():
            scores = self.network(torch.as_tensor(np.asarray(X), dtype=torch.float32))
        return torch.sigmoid(scores[:, 0]).numpy().astype(float)

    def predict_proba(self, X: Any) -> Any:
        """Return the chances of both classes."""
        p = self.probabilities(X)
        return np.column_stack([1 - p, p])

    def predict(self, X: Any) -> Any:
        """Return classes."""
        return (self.probabilities(X) > 0.5).astype(int)


def _opacus(X: Any, y: Any, epsilon: float, seed: int) -> _Scores:
    """Train by Opacus as its documentation does."""
    try:
        import torch
        from opacus import PrivacyEngine
    except ImportError as error:
        raise SystemExit(f'{error}. Install it with: pip install "evenhand[glued]"') from None
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(seed)
    rows = TensorDataset(
        torch.as_tensor(X, dtype=torch.float32), torch.as_tensor(y, dtype=torch.float32)
    )
    network = torch.nn.Sequential(
        torch.nn.Linear(X.shape[1], HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, 1)
    )
    model, optimizer, loader = PrivacyEngine().make_private_with_epsilon(
        module=network,
        optimizer=torch.optim.Adam(network.parameters(), lr=RATE),
        data_loader=DataLoader(rows, batch_size=min(BATCH, len(y) // 4)),
        target_epsilon=epsilon,
        target_delta=DELTA,
        epochs=EPOCHS,
        max_grad_norm=1.0,
    )
    loss = torch.nn.BCEWithLogitsLoss()
    for _ in range(EPOCHS):
        for inputs, labels in loader:
            optimizer.zero_grad()
            if len(labels):
                loss(model(inputs)[:, 0], labels).backward()
                optimizer.step()
    return _Scores(model._module.eval())


def volume(points: list[tuple[float, float]]) -> float:
    """Return the part of the unit square that the points dominate."""
    return float(hypervolume(np.array(points), ("error", "gap")))


def measure(
    tables: dict[str, Dataset],
    saved: list[dict[str, Any]],
    data: str,
    seed: int,
    epsilon: float,
) -> dict[str, Any]:
    """Return all points of one split at one epsilon; of the glued sides the saved ones, if any."""
    split = Split(tables[data], seed)
    before = [row["points"] for row in select(saved, data=data, seed=seed, epsilon=epsilon)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        beside = before[0] if before else glued(split, epsilon)
        points: dict[str, Any] = {**beside, **ours(split, epsilon)}
    return {"data": data, "seed": seed, "epsilon": epsilon, "points": points}


def differences(rows: list[dict[str, Any]], way: str, other: str) -> list[float]:
    """Return ours minus theirs of each row that has both, in hypervolume."""
    both = [row["points"] for row in rows if other in row["points"]]
    return [volume(points[way]) - volume(points[other]) for points in both]


def verdicts(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return ours minus theirs for each epsilon and each of our ways."""
    found = []
    for epsilon, (way, other) in product(EPSILONS, COMPARED):
        own = [r for r in select(rows, epsilon=epsilon) if other in r["points"]]
        if len(own) < 2:  # no interval
            continue
        apart = interval(differences(own, way, other))
        volumes = [float(np.mean([volume(r["points"][w]) for r in own])) for w in (way, other)]
        found.append(
            {"epsilon": epsilon, "way": way, "beside": other, "ours": volumes[0]}
            | {"glued": volumes[1], "mean": apart.mean, "half": apart.half}
            | {"agrees": apart.judged("yes", "level", "no")}
        )
    return found


def goals(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return for each epsilon and way the mean over the tables of the goals, met or missed."""
    found = []
    for epsilon, (way, other) in product(EPSILONS, COMPARED):
        means = [
            float(np.mean(differences(own, way, other)))
            for table in GOAL_TABLES
            if (own := select(rows, data=table, epsilon=epsilon))
        ]
        mean, half = interval(means)
        goal = GOALS.get((way, other))
        met = goal is not None and mean >= goal and mean - half > 0
        about = {"epsilon": epsilon, "way": way, "beside": other, "tables": len(means)}
        found.append(about | {"mean": mean, "half": half, "goal": goal, "met": met})
    return found


def lines_of(name: str, rows: list[dict[str, Any]]) -> list[str]:
    """Return the table of one data set."""
    n = len({row["seed"] for row in rows})
    out = [f"\n## {name}, {n} splits\n"]
    out += ["| epsilon | ours | glued | hypervolume: ours | glued | ours minus glued | agrees? |"]
    out += [rule(7)]
    for v in verdicts(rows):
        out.append(
            f"| {v['epsilon']:g} | {v['way']} | {BESIDE[v['beside']]} | {v['ours']:.4f} "
            f"| {v['glued']:.4f} | {Mean(v['mean'], v['half']):+.4f} | {v['agrees']} |"
        )
    return out


def goal_lines(rows: list[dict[str, Any]]) -> list[str]:
    """Return the table of the goals."""
    out = ["\n## Goals, over tables\n"]
    out += ["| epsilon | ours | glued | tables | ours minus glued | goal | met? |", rule(7)]
    for g in goals(rows):
        aim = "-" if g["goal"] is None else f"{g['goal']:+.3f}"
        said = "-" if g["goal"] is None else "yes" if g["met"] else "no"
        out.append(
            f"| {g['epsilon']:g} | {g['way']} | {BESIDE[g['beside']]} | {g['tables']} "
            f"| {Mean(g['mean'], g['half']):+.4f} | {aim} | {said} |"
        )
    return out


def save(rows: list[dict[str, Any]]) -> None:
    """Write the points, the goals, and a table for each data set."""
    lines = [
        "# Beside what users glue together\n",
        "`python reproductions/beside_glued.py TABLE --label NAME --sensitive NAME --save`; the "
        "protocol and the rules stand in the script. Which algorithm ran: ours is `AutoClassifier` "
        "(DP-SGD), where the group is seen with thresholds (from epsilon 1 on also by noisy counts "
        "of scores), else with a blind rule; theirs Opacus with fairlearn's "
        "`ThresholdOptimizer`, or, blind, its `ExponentiatedGradient`. Hypervolumes of (error, "
        "gap) on test rows, larger is better.",
    ]
    order = [*BUILT_IN, *(row["data"] for row in rows)]
    rows = sorted(rows, key=lambda row: order.index(row["data"]))
    names = dict.fromkeys(row["data"] for row in rows)
    by_table = {name: select(rows, data=name) for name in names}
    if set(GOAL_TABLES) <= set(by_table):
        lines += goal_lines(rows)
    for name, own in by_table.items():
        lines += lines_of(name, own)
    found = [v | {"data": n} for n, own in by_table.items() for v in verdicts(own)]
    reached = goals(rows) if set(GOAL_TABLES) <= set(by_table) else []
    about = {"commit": commit(), "rows": rows, "differences": found, "goals": reached}
    write("beside_glued", about, *lines)


def table_of(source: str, label: str | None, sensitive: list[str]) -> tuple[str, Dataset]:
    """Return a file's table, or a built-in one, with its name."""
    if source in BUILT_IN:
        return source, BUILT_IN[source]()
    if label is None or not sensitive:
        raise SystemExit("A file needs --label NAME and --sensitive NAME.")
    name = Path(source).stem
    many = sensitive if len(sensitive) > 1 else sensitive[0]
    try:
        frame = read_table(source)
        known = [column for column in (label, *sensitive) if column in frame]
        frame = frame.dropna(subset=known).reset_index(drop=True)
        return name, Dataset.from_frame(frame, label=label, sensitive=many, name=name)
    except (OSError, ValueError, KeyError) as error:
        raise SystemExit(f"{source}: {error.args[0]}") from None


def main() -> None:
    """Measure, print, and save beside what is saved if asked."""
    parser = asked(__doc__, seeds=3)
    parser.add_argument("table", nargs="+", help=f"a file, all, or {', '.join(BUILT_IN)}")
    parser.add_argument("--label")
    parser.add_argument("--sensitive", action="append", default=[])
    parser.add_argument(
        "--ours-alone", action="store_true", help="beside the saved points of the glued sides"
    )
    given = parser.parse_args()
    sources = GOAL_TABLES if given.table == ["all"] else given.table
    tables = dict(table_of(one, given.label, given.sensitive) for one in sources)
    for name, data in tables.items():
        if len(np.unique(np.asarray(data.y))) != 2:
            raise SystemExit(f"{name}: thresholds are for two classes.")
    path = RESULTS / "beside_glued.json"
    before = json.loads(path.read_text())["rows"] if path.exists() else []
    runs, seeds = Runs(given.kept), range(given.seeds)
    saved = before if given.ours_alone else []
    runs.complete(partial(measure, tables, saved), seed=seeds, data=tables, epsilon=EPSILONS)
    rows = [row for row in runs if row["data"] in tables]
    for name in tables:
        print(*lines_of(name, select(rows, data=name)), sep="\n")
    if set(GOAL_TABLES) <= set(tables):
        print(*goal_lines(rows), sep="\n")
    if given.save:
        save([row for row in before if row["data"] not in tables] + rows)


if __name__ == "__main__":
    main()

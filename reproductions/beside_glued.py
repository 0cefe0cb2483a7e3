"""Ours beside what users glue together from packages, on a table of your own.

    python reproductions/beside_glued.py TABLE.csv --label NAME --sensitive NAME [--save]

Extra ``glued``: Opacus and PyTorch. TABLE is a file, or one of the built-in tables named below. The
labels and groups of test rows are read here, so run it where you may look at them.

Protocol: each split has 65 % private, 15 % public and 20 % test rows; ``--seeds`` splits (3);
epsilon .5, 1 and 3 at delta 1e-5; no setting is read off the table. The public rows scale the
columns by ``PublicEncoder`` for both sides, and their labels are never read.

*Glued*: a network of one hidden layer of 64 units by Opacus (``make_private_with_epsilon``, Poisson
samples of 256 or a quarter of the rows, 15 epochs, Adam at rate .01, clipping norm 1; rate and
epochs lie between three pairs that were tried on training rows of ACS-Income), and around it
fairlearn's ``ThresholdOptimizer`` with a tolerance, on labels that are drawn from its own scores on
the public rows, for these have none. It reads the group of whom it decides about.

*Ours*: ``AutoClassifier`` without a margin, and around it one threshold per group
(``with_group_thresholds``, which reads the group too) or a blind rule (``with_blind_rule``, which
does not). There is no blind rule to glue: ours stands beside the same thresholds.

Margins .01, .02, .05, .1 and .2 of demographic parity between every two groups, and none. Of each
side the points (error, gap) on the test rows have a hypervolume, in the unit square. What is shown
is ours minus theirs, its mean and 95 % interval over splits. Rule, written before the first run: a
row agrees if the interval lies above 0; it is "level" if it holds 0, and does not agree below.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _table import RESULTS, commit, interval, rule, write
from sklearn.base import BaseEstimator, ClassifierMixin

from evenhand import Budget, DemographicParity
from evenhand.datasets import Dataset, PublicEncoder, load_german, read_table
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
}
EPSILONS = (0.5, 1.0, 3.0)
MARGINS = (0.01, 0.02, 0.05, 0.1, 0.2)
DELTA = 1e-5
WAYS = ("thresholds", "blind rule")
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
    """Return the points of our model without a rule, with thresholds, and with a blind rule."""
    model = AutoClassifier(Budget(epsilon=epsilon, delta=DELTA), random_state=split.seed)
    model.fit(split.private.X, split.private.y, X_public=split.public.X)
    free = split.point(model.predict(split.test.X))
    found: dict[str, list[tuple[float, float]]] = {way: [free] for way in WAYS}
    for margin in MARGINS:
        parity = DemographicParity(margin=margin, reference="pairwise")
        rows = (split.public.X, split.public.groups)
        cut = model.with_group_thresholds(*rows, fairness=parity)
        decided = cut.predict(split.test.X, sensitive_features=split.test.groups, random_state=0)
        found["thresholds"].append(split.point(decided))
        blind = model.with_blind_rule(*rows, fairness=parity)
        found["blind rule"].append(split.point(blind.predict(split.test.X)))
    return found


def glued(split: Split, epsilon: float) -> list[tuple[float, float]]:
    """Return the points of Opacus and fairlearn."""
    from fairlearn.postprocessing import ThresholdOptimizer

    encoder = PublicEncoder().fit(split.public.X)
    X, public, test = (encoder.transform(p.X) for p in (split.private, split.public, split.test))
    scores = _opacus(X, (np.asarray(split.private.y) == split.classes[1]), epsilon, split.seed)
    found = [split.point(split.classes[(scores.probabilities(test) > 0.5).astype(int)])]
    rng = np.random.default_rng(split.seed)
    p = scores.probabilities(public)
    drawn = (rng.random(len(p)) < p).astype(int)
    for margin in MARGINS:
        cut = ThresholdOptimizer(
            estimator=scores, prefit=True, predict_method="predict_proba", tol=margin
        )
        cut.fit(public, drawn, sensitive_features=np.asarray(split.public.groups))
        decided = cut.predict(
            test, sensitive_features=np.asarray(split.test.groups), random_state=0
        )
        found.append(split.point(split.classes[np.asarray(decided).astype(int)]))
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


def measure(name: str, data: Dataset, seed: int, epsilon: float) -> dict[str, Any]:
    """Return all points of one split at one epsilon."""
    split = Split(data, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        points: dict[str, Any] = {**ours(split, epsilon), "glued": glued(split, epsilon)}
    return {"data": name, "seed": seed, "epsilon": epsilon, "points": points}


def verdicts(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return ours minus theirs for each epsilon and each of our ways."""
    found = []
    for epsilon in EPSILONS:
        own = [row["points"] for row in rows if row["epsilon"] == epsilon]
        theirs = [volume(points["glued"]) for points in own]
        for way in WAYS:
            mine = [volume(points[way]) for points in own]
            mean, half = interval([a - b for a, b in zip(mine, theirs, strict=True)])
            agrees = "yes" if mean - half > 0 else "no" if mean + half < 0 else "level"
            found.append(
                {
                    "epsilon": epsilon,
                    "way": way,
                    "ours": float(np.mean(mine)),
                    "glued": float(np.mean(theirs)),
                    "mean": mean,
                    "half": half,
                    "agrees": agrees,
                }
            )
    return found


def lines_of(name: str, rows: list[dict[str, Any]]) -> list[str]:
    """Return the table of one data set."""
    n = len({row["seed"] for row in rows})
    out = [f"\n## {name}, {n} splits\n"]
    out += ["| epsilon | ours | hypervolume: ours | glued | ours minus glued | agrees? |", rule(6)]
    for v in verdicts(rows):
        out.append(
            f"| {v['epsilon']:g} | {v['way']} | {v['ours']:.4f} | {v['glued']:.4f} "
            f"| {v['mean']:+.4f} ± {v['half']:.4f} | {v['agrees']} |"
        )
    return out


def save(rows: list[dict[str, Any]]) -> None:
    """Write the points, and a table for each data set."""
    lines = [
        "# Beside what users glue together\n",
        "`python reproductions/beside_glued.py TABLE --label NAME --sensitive NAME --save`; the "
        "protocol and the rule stand in the script. Which algorithm ran: ours is `AutoClassifier` "
        "(DP-SGD) with thresholds or a blind rule; theirs Opacus and fairlearn's "
        "`ThresholdOptimizer`. Hypervolumes of (error, gap) on test rows, larger is better; the "
        "blind rule reads no group, and stands beside thresholds that do.",
    ]
    names = dict.fromkeys(row["data"] for row in rows)
    by_table = {name: [row for row in rows if row["data"] == name] for name in names}
    for name, own in by_table.items():
        lines += lines_of(name, own)
    found = [v | {"data": n} for n, own in by_table.items() for v in verdicts(own)]
    write("beside_glued", {"commit": commit(), "rows": rows, "differences": found}, *lines)


def table_of(source: str, label: str | None, sensitive: list[str]) -> tuple[str, Dataset]:
    """Return a file's table, or a built-in one, with its name."""
    if source in BUILT_IN:
        data = BUILT_IN[source]()
        return data.name, data
    if label is None or not sensitive:
        raise SystemExit("A file needs --label NAME and --sensitive NAME.")
    frame = read_table(source).dropna(subset=[label, *sensitive]).reset_index(drop=True)
    name = Path(source).stem
    many = sensitive if len(sensitive) > 1 else sensitive[0]
    return name, Dataset.from_frame(frame, label=label, sensitive=many, name=name)


def main() -> None:
    """Measure, print, and save beside what is saved if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", help=f"a file, or {', '.join(BUILT_IN)}")
    parser.add_argument("--label")
    parser.add_argument("--sensitive", action="append", default=[])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--save", action="store_true")
    given = parser.parse_args()
    name, data = table_of(given.table, given.label, given.sensitive)
    if len(np.unique(np.asarray(data.y))) != 2:
        raise SystemExit("Thresholds are for two classes.")
    rows = []
    for seed in range(given.seeds):
        for epsilon in EPSILONS:
            rows.append(measure(name, data, seed, epsilon))
    print(*lines_of(name, rows), sep="\n")
    if given.save:
        path = RESULTS / "beside_glued.json"
        before = json.loads(path.read_text())["rows"] if path.exists() else []
        save([row for row in before if row["data"] != name] + rows)


if __name__ == "__main__":
    main()

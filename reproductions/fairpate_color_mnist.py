"""ColorMNIST: FairPATE's convolutional teachers on digits in two colours, and what they pay for.

    python reproductions/fairpate_color_mnist.py --runs FOLDER [--only METHOD ...] [--save]

FairPATE lists ColorMNIST among its data (Tables 1 and 2: ten digits, two colours, 1,000 unlabelled
pictures, 200 teachers, T = 120, sigma_1 = 110, sigma_2 = 20, a convolutional network) and shows no
result on it. So its settings are run here, and what the paper says of pictures in general is asked.

Every seed colours MNIST anew (a digit has the colour of its half with chance .85) and deals the
60,000 training pictures: 3,000 public, of which the first 1,000 are the U of the paper, 1,000 for
validation, 56,000 private, 280 for each of 200 teachers. Test: the official 10,000, coloured alike.
Teachers: ``ColorMNISTNetwork``, 10 epochs in batches of 32, Adam at .003. Votes are made once for
each seed. Which algorithm ran:

* printed: gate of Algorithm 1, Table 1's noise, 1,000 pictures in their order, the network of Table
  2 as a student that knows of no margin. Charged as is sound: 787 answers at most at epsilon 10,
  101 at 3 and 14 at 1 (delta 1e-5).
* sound: the same settings, gate and student of ``FairPATEClassifier``, both within the margin.
* labels, shares: ours, with defaults, on all 3,000 public pictures; the student is linear in public
  features: those of a network of Table 2 that learned FashionMNIST (in colours at random), their
  first principal components on the public pictures. The teachers' votes are the same.
* DP-SGD: ``DPSGDClassifier`` on all private pictures: logistic regression on 50 of these features,
  or, on the pixels, a small convolutional network (without a margin, and with that of .05).
* no privacy: one network of Table 2 on all private pictures, one pass, and with its last layer
  fitted within the margin to the true digits of the public pictures.
* truth: what nobody can be better than: the least error of any decision within the margin that
  knows digit and colour (``DerivedRule``), and the coverage of the true digits past the reject
  option.

The gap is that of demographic parity between the two colours, the largest over ten digits, which is
.14 by the true digits. "kept": seeds whose gap on test pictures is within the margin, or above it
by less than its own 95 % interval. With the reject option (``with_reject_option`` of the margin):
accuracy of what is answered, and how much that is. Epochs, batches and learning rates of teachers
were chosen on a slice of the training pictures; those of students, the number of components for
each epsilon and the settings of DP-SGD on the validation pictures of seed 0. No test picture was
read for it. After test pictures were read: a setting that was not run gets a dash, "least error"
compares rows of as many seeds, "shares, confident" and "DP-SGD, pixels" were added. Rows of the
former are by the blind rule as the optimum of a linear program, as far as they were run (earlier
ones were dropped). Within .05 the network on the pixels ends above its aim after 300 steps, and
warns that it does (``AimMissed``: .061 by its own noisy tables at epsilon 3, seed 0).

When a row agrees, by means over seeds:

* ensemble: teachers are as many "as possible while still achieving good ensemble accuracy" (F):
  the majority of their votes, without noise, errs on at most .05 more of the public pictures than
  one network of all private pictures.
* epsilon: "accuracy increases with higher privacy budget" (Figure 15): for each margin, the
  accuracy of what is answered rises from epsilon 1 to 3 to 10.
* coverage: "looser fairness constraints yield higher coverage" (Figure 15): for each epsilon, the
  coverage with the reject option rises from margin .02 to .05 to .1.
* low epsilon: "a decrease in privacy budget does not show a trade-off with accuracy until very low
  (epsilon < 2)" under the reject option (Section 5): for each margin, the accuracy of what is
  answered at epsilon 3 is at most .02 below that at 10.
* margin: the student keeps its margin on test pictures ("kept") in 9 of 10 seeds; of fewer seeds,
  in all. For every margin and epsilon.

The first four are asked of "printed" and of "sound" (ensemble: of the teachers), the last of all
methods whose student is held to a margin. A method that has no model at some epsilon, because too
few answers are paid for, does not agree where that epsilon is needed; a verdict that needs a
setting which was not run is a dash. DP-SGD has no verdict: it stands beside, and "least error"
names the best private method of every margin and epsilon, of those that kept it in all seeds.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from _table import commit, interval, keep, kept, rule, write

from evenhand import (
    Budget,
    DemographicParity,
    DPSGDClassifier,
    FairPATEClassifier,
    FairSharesClassifier,
    PATEClassifier,
)
from evenhand.baselines.published_fairpate import PublishedFairPATEClassifier
from evenhand.datasets.features import extract
from evenhand.datasets.features.networks import TorchFeatures
from evenhand.datasets.images import load_color_mnist, load_fashion_mnist
from evenhand.fairness import RejectOption, fairness_report
from evenhand.fairness.gate.table_gate import default_cold_start
from evenhand.learners.nets.architectures import ColorMNISTNetwork, Convolutional
from evenhand.learners.nets.module import ModuleLearner, probabilities_of, read_by_last_layer
from evenhand.privacy import ConfidentGNMax, FloatNoise
from evenhand.students import ModuleStudent
from evenhand.students.constrained import fit_linear
from evenhand.students.derived import DerivedRule
from evenhand.students.objective import LabelLoss
from evenhand.students.within import Within
from evenhand.teachers import OutsideVotes, by_position
from evenhand.teachers.stacked import NetworkTeachers
from evenhand.voting import Answers

NETWORK = ColorMNISTNetwork()
N_TEACHERS, N_PUBLIC, N_ALL_PUBLIC, N_VALIDATION = 200, 1000, 3000, 1000
TEACHERS = NetworkTeachers(NETWORK, epochs=10, batch_size=32, learning_rate=0.003)
PRESET = ConfidentGNMax(threshold=120.0, sigma_check=110.0, sigma=20.0)
STUDENT = ModuleStudent(NETWORK, epochs=10, batch_size=32, learning_rate=0.003)
EPSILONS, MARGINS, DELTA = (1.0, 3.0, 10.0), (0.02, 0.05, 0.1), 1e-5
N_COMPONENTS = {1.0: 20, 3.0: 50, 10.0: 50}
PRIVATE = (
    "printed",
    "sound",
    "labels",
    "shares",
    "shares, confident",
    "DP-SGD, features",
    "DP-SGD, pixels",
)
HELD = ("sound", "labels", "shares", "shares, confident")  # a student that the margin binds
METHODS = (*PRIVATE, "no privacy", "truth")
OF_MARGINS: dict[str, tuple[float | None, ...]] = {
    "printed": MARGINS,
    "shares, confident": MARGINS,
    "DP-SGD, pixels": (None, 0.05),
}
"""Of methods that are not run at every margin and without."""


class Pictures(NamedTuple):
    """Pixels (n, 3, 28, 28), or features (n, d), of some pictures; digits and colours."""

    X: Any
    y: Any
    groups: Any

    def take(self, rows: Any) -> Pictures:
        """Return some of them."""
        return Pictures(X=self.X[rows], y=self.y[rows], groups=self.groups[rows])


Parts = dict[str, Pictures]


@cache
def parts(seed: int) -> Parts:
    """Return the private, public, validation and test pictures of a seed, which colours them."""
    train, test = (
        load_color_mnist(part, random_state=2 * seed + (part == "test"))
        for part in ("train", "test")
    )
    order = np.random.default_rng(seed).permutation(len(train))
    dealt = np.split(order, (N_ALL_PUBLIC, N_ALL_PUBLIC + N_VALIDATION))
    rows = dict(zip(("public", "validation", "private"), dealt, strict=True))
    return {
        name: Pictures(
            X=np.ascontiguousarray(data.X), y=data.y, groups=np.asarray(data.sensitive_features)
        )
        for name, data in {**{k: train.take(v) for k, v in rows.items()}, "test": test}.items()
    }


def votes_of(seed: int, folder: Path) -> Any:
    """Return the teachers' votes on the public pictures (200, 3000): private, so is the folder."""
    file = folder / f"votes-{seed}.npz"
    if not file.exists():
        private, start = parts(seed)["private"], time.process_time()
        ensemble = TEACHERS.fit(
            private.X,
            private.y,
            by_position(len(private.y), N_TEACHERS, seed),
            10,
            np.random.default_rng(seed),
            progress=lambda done, n: print(f"{done} of {n} teachers", flush=True),
        )
        trained_s = time.process_time() - start
        votes = ensemble.vote(parts(seed)["public"].X).astype(np.uint8)
        np.savez_compressed(file, votes=votes, trained_s=trained_s)
    return np.load(file)["votes"].astype(np.int64)


def network_of_all(seed: int, folder: Path) -> Any:
    """Return one network of all private pictures: the reference without privacy."""
    return _trained(folder / f"one-{seed}.pt", lambda: _on(parts(seed)["private"], seed, epochs=1))


def network_of_clothes(folder: Path) -> Any:
    """Return the network whose features are public: it learned FashionMNIST, red or green."""

    def clothes() -> Any:
        grey, rng = load_fashion_mnist(), np.random.default_rng(0)
        X = np.zeros((len(grey), 3, 28, 28), dtype=np.uint8)
        X[np.arange(len(grey)), rng.integers(2, size=len(grey))] = grey.images
        y = np.unique(grey.y, return_inverse=True)[1]
        return _on(Pictures(X=X, y=y, groups=None), 0, epochs=2)

    return _trained(folder / "clothes.pt", clothes)


def _on(data: Pictures, seed: int, *, epochs: int) -> Any:
    learner = ModuleLearner(module=NETWORK, epochs=epochs, batch_size=64, learning_rate=0.001)
    return learner.fit(data.X, np.eye(10)[data.y], rng=np.random.default_rng(seed))


def _trained(file: Path, train: Callable[[], Any]) -> Any:
    if not file.exists():
        torch.save(train().state_dict(), file)
    network = NETWORK.build((3, 28, 28), 10)
    network.load_state_dict(torch.load(file, weights_only=True))
    return network.eval()


@cache
def features(seed: int, folder: Path, n_components: int) -> Parts:
    """Return the same pictures by public features: principal components on the public ones."""
    network, data = network_of_clothes(folder), parts(seed)
    read = read_by_last_layer(network, data["public"].X)
    turn = np.linalg.svd(read - read.mean(axis=0), full_matrices=False)[2][:n_components]
    project = torch.nn.Linear(*turn.T.shape)
    with torch.no_grad():
        project.weight.copy_(torch.as_tensor(turn))
        project.bias.copy_(torch.as_tensor(-turn @ read.mean(axis=0)))
    extractor = TorchFeatures.of(
        torch.nn.Sequential(*list(network)[:-1], project),
        name="clothes",
        trained_on="FashionMNIST, and the public digits for their principal components",
        licence="MIT",
        shape=(3, 28, 28),
    )
    return {
        name: Pictures(
            X=extract(own.X, extractor, cache=folder / "features"), y=own.y, groups=own.groups
        )
        for name, own in data.items()
    }


class Run(NamedTuple):
    """One seed, and where what it made is kept."""

    seed: int
    folder: Path

    def rows(self, method: str, epsilon: float, part: str) -> Pictures:
        """Return what a method reads of a part."""
        if method in ("printed", "sound", "no privacy", "DP-SGD, pixels"):
            return parts(self.seed)[part]
        n = max(N_COMPONENTS.values()) if method in SGD else N_COMPONENTS[epsilon]
        return features(self.seed, self.folder, n)[part]

    def fitted(self, method: str, epsilon: float, margin: float | None) -> Any:
        """Return the model of a private method."""
        private, public = (self.rows(method, epsilon, part) for part in ("private", "public"))
        budget = Budget(epsilon=epsilon, delta=DELTA)
        sure = 0.95 if method == "shares, confident" else None
        fairness = None if margin is None else DemographicParity(margin=margin, confidence=sure)
        how: dict[str, Any] = {"noise": FloatNoise(), "random_state": self.seed}
        if method.startswith("DP-SGD"):
            model = DPSGDClassifier(budget, fairness, **how, **SGD[method])
            return model.fit(
                private.X, private.y, sensitive_features=private.groups, X_public=public.X
            )
        n = N_PUBLIC if method in ("printed", "sound") else N_ALL_PUBLIC
        public = public.take(slice(n))
        how["teachers"] = OutsideVotes(votes_of(self.seed, self.folder)[:, :n])
        if method in ("printed", "sound"):
            how |= {"mechanism": PRESET, "student": STUDENT}
        if margin is None:
            answers = "shares" if method == "shares" else "labels"
            plain = PATEClassifier(budget, answers=answers, **how)
            return plain.fit(private.X, private.y, X_public=public.X)
        if method == "printed":
            how |= {"student_margin": False, "keep_order": True}
        model = KINDS[method](budget, fairness, **how)
        return model.fit(
            private.X, private.y, X_public=public.X, sensitive_features_public=public.groups
        )

    def measured(
        self, method: str, epsilon: float, margin: float | None, part: str = "test"
    ) -> dict[str, Any]:
        """Return error, gap and what the reject option leaves, on the test pictures."""
        about = {"seed": self.seed, "method": method, "epsilon": epsilon, "margin": margin}
        start = time.process_time()
        try:
            model = self.fitted(method, epsilon, margin)
        except ValueError as error:  # no answer was given
            if "nothing to learn from" not in str(error):
                raise
            return about | {"error": None, "answered": 0}
        seconds, rows = time.process_time() - start, self.rows(method, epsilon, part)
        answers = getattr(model, "answers_", None)
        found = about | _judged(model.predict(rows.X), rows, margin)
        labelled = isinstance(answers, Answers)
        n_labels = int(answers.answered.sum()) if labelled else None
        return found | {"answered": n_labels, "seconds": seconds}

    def not_private(self, margin: float | None) -> dict[str, Any]:
        """Return the same of one network of all private pictures."""
        network, data = network_of_all(self.seed, self.folder), parts(self.seed)
        public, test = data["public"], data["test"]
        start = time.process_time()
        decided = probabilities_of(network, test.X).argmax(axis=1)
        if margin is not None:
            read, new = (read_by_last_layer(network, rows.X) for rows in (public, test))
            mean, scale = read.mean(axis=0), np.maximum(read.std(axis=0), 1e-6)
            within = Within(
                notion=DemographicParity(margin=margin),
                groups=(public.groups == "red").astype(np.int64),
                n_groups=2,
            )
            loss = LabelLoss(labels=public.y, rows=np.arange(len(public.y)), n_classes=10, C=0.3)
            head = fit_linear((read - mean) / scale, loss, within).classifier(10)
            decided = head.predict((new - mean) / scale)
        about = {"seed": self.seed, "method": "no privacy", "epsilon": None, "margin": margin}
        took = time.process_time() - start
        return about | _judged(decided, test, margin) | {"answered": None, "seconds": took}

    def truth(self, margin: float) -> dict[str, Any]:
        """Return what no decision within the margin is better than, on the test pictures."""
        test = parts(self.seed)["test"]
        table = np.zeros((2, 10, 10))
        np.add.at(table, ((test.groups == "red").astype(int), test.y, test.y), 1)
        notion = DemographicParity(margin=margin, reference="pairwise")
        found = DerivedRule.fit(table, notion)
        about = {"seed": self.seed, "method": "truth", "epsilon": None, "margin": margin}
        said = about | _judged(test.y, test, margin)
        least = {"error": found.error(table), "gap": found.gap(table, notion)}
        return said | least | {"gap_low": least["gap"], "answered": None, "seconds": 0.0}

    def ensemble(self) -> dict[str, Any]:
        """Return errors on the public pictures: one teacher, their majority, one network of all."""
        votes, public = votes_of(self.seed, self.folder), parts(self.seed)["public"]
        winners = np.array([np.bincount(row, minlength=10).argmax() for row in votes.T])
        one = probabilities_of(network_of_all(self.seed, self.folder), public.X).argmax(axis=1)
        return {
            "seed": self.seed,
            "method": "ensemble",
            "teacher": float((votes != public.y).mean()),
            "majority": float((winners != public.y).mean()),
            "network": float((one != public.y).mean()),
        }


KINDS: dict[str, Any] = {
    "printed": PublishedFairPATEClassifier,
    "sound": FairPATEClassifier,
    "labels": FairPATEClassifier,
    "shares": FairSharesClassifier,
    "shares, confident": FairSharesClassifier,
}
SGD: dict[str, dict[str, Any]] = {
    "DP-SGD, features": {
        "n_steps": 1000,
        "batch_size": 1024,
        "learning_rate": 4.0,
        "degree": 0,
    },
    "DP-SGD, pixels": {
        "architecture": Convolutional(widths=(8, 16)),
        "n_steps": 300,
        "batch_size": 512,
        "learning_rate": 4.0,
    },
}


def _judged(decided: Any, rows: Pictures, margin: float | None) -> dict[str, Any]:
    """Return error and gap of decisions, and what of them the reject option gives."""
    report = fairness_report(rows.y, decided, rows.groups, classes=range(10))
    gap = report["demographic_parity_pairwise"]
    found = {"error": report["error_rate"].value, "gap": gap.value, "gap_low": gap.low}
    if margin is None:
        return found
    option = RejectOption(
        DemographicParity(margin=margin),
        groups=("green", "red"),
        classes=list("0123456789"),
        cold_start=default_cold_start(margin),
    )
    codes = (rows.groups == "red").astype(np.int64)
    given = option.decide(np.asarray(decided), codes).labels.copy()
    late = option.deliver()
    given[late.ids] = late.labels
    answered = given >= 0
    return found | {
        "coverage": float(answered.mean()),
        "accuracy": float((given[answered] == rows.y[answered]).mean()),
    }


def runs_of(
    seed: int, folder: Path, methods: Sequence[str]
) -> Iterator[tuple[tuple[Any, ...], Callable[[], Any]]]:
    """Yield every run of a seed, to be made."""
    run = Run(seed=seed, folder=folder)
    if "ensemble" in methods:
        yield ("ensemble", None, None), run.ensemble
    for margin in (None, *MARGINS):
        if "no privacy" in methods:
            yield ("no privacy", None, margin), lambda m=margin: run.not_private(m)
        if "truth" in methods and margin is not None:
            yield ("truth", None, margin), lambda m=margin: run.truth(m)
    for method in methods:
        for epsilon in EPSILONS if method in PRIVATE else ():
            for margin in OF_MARGINS.get(method, (None, *MARGINS)):
                how = (method, epsilon, margin)
                yield how, lambda how=how: run.measured(*how)


def mean_of(runs: Sequence[Any], name: str) -> list[float] | None:
    """Return mean and half width of what all runs have, the value of one; None if one has none."""
    values = [run.get(name) for run in runs]
    if None in values:
        return None
    return list(interval(values)) if len(values) > 1 else [float(values[0])]


def rows_of(runs: Sequence[Any]) -> list[dict[str, Any]]:
    """Return a row for each setting, with its runs."""
    rows = []
    for method in METHODS:
        for epsilon in (None, *EPSILONS):
            for margin in (None, *MARGINS):
                about = {"method": method, "epsilon": epsilon, "margin": margin}
                own = [run for run in runs if all(run.get(k, "") == v for k, v in about.items())]
                if not own:
                    continue
                row = about | {
                    name: mean_of(own, name)
                    for name in ("error", "gap", "accuracy", "coverage", "answered", "seconds")
                }
                has = margin is not None and row["error"] is not None
                row["kept"] = sum(run["gap_low"] <= margin for run in own) if has else None
                rows.append(row | {"seeds": len(own), "runs": own})
    best_of(rows)
    return rows


def best_of(rows: Sequence[dict[str, Any]]) -> None:
    """Mark the private method of least error at each margin and epsilon, of those that keep it.

    Rows of fewer seeds than others have are left out.
    """
    most = max(row["seeds"] for row in rows)
    for row in rows:
        row["least"] = False
    for epsilon in EPSILONS:
        for margin in (None, *MARGINS):
            about = (epsilon, margin, most)
            own = [r for r in rows if (r["epsilon"], r["margin"], r["seeds"]) == about]
            kept = [r for r in own if r["error"] and (margin is None or r["kept"] == r["seeds"])]
            if kept:
                min(kept, key=lambda r: r["error"][0])["least"] = True


def claims(rows: Sequence[dict[str, Any]], ensembles: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the verdicts, by the rules above."""
    at = {(row["method"], row["epsilon"], row["margin"]): row for row in rows}

    def values(name: str, *keys: tuple[Any, ...]) -> list[float | None]:
        if any(key not in at for key in keys):
            return []
        return [at[key][name][0] if at[key][name] else None for key in keys]

    def said(claim: str, where: str, numbers: Sequence[float | None], holds: bool) -> Any:
        agrees = "-" if not numbers else "yes" if holds else "no"
        return {"claim": claim, "where": where, "numbers": list(numbers), "agrees": agrees}

    def rising(numbers: Sequence[float | None]) -> bool:
        return None not in numbers and all(np.diff(np.array(numbers, dtype=float)) > 0)

    means = [float(np.mean([one[key] for one in ensembles])) for key in ("majority", "network")]
    out = [
        said(
            "ensemble", "error of the majority, of one network", means, means[0] - means[1] <= 0.05
        )
    ]
    for method in ("printed", "sound"):
        for margin in MARGINS:
            found = values("accuracy", *((method, e, margin) for e in EPSILONS))
            out.append(said("epsilon", f"{method}, margin {margin:g}", found, rising(found)))
        for epsilon in EPSILONS:
            found = values("coverage", *((method, epsilon, m) for m in MARGINS))
            out.append(said("coverage", f"{method}, epsilon {epsilon:g}", found, rising(found)))
        for margin in MARGINS:
            found = values("accuracy", (method, 3.0, margin), (method, 10.0, margin))
            near = len(found) == 2 and None not in found and found[1] - found[0] <= 0.02
            out.append(said("low epsilon", f"{method}, margin {margin:g}", found, near))
    for row in rows:
        if row["method"] in HELD and row["margin"] is not None:
            where = f"{row['method']}, epsilon {row['epsilon']:g}, margin {row['margin']:g}"
            gap = row["gap"][0] if row["gap"] else None
            enough = row["kept"] is not None and row["kept"] >= np.ceil(0.9 * row["seeds"])
            out.append(said("margin", where, [gap], bool(enough)))
    return out


def _said(value: Sequence[float] | None, digits: int = 3) -> str:
    return "-" if value is None else " ± ".join(f"{part:.{digits}f}" for part in value)


def as_line(row: dict[str, Any]) -> str:
    """One line of the table of settings."""
    epsilon = "-" if row["epsilon"] is None else f"{row['epsilon']:g}"
    margin = "none" if row["margin"] is None else f"{row['margin']:g}"
    kept = "-" if row["kept"] is None else f"{row['kept']} of {row['seeds']}"
    best = "**least error** " if row["least"] else ""
    return (
        f"| {row['method']} | {epsilon} | {margin} | {row['seeds']} | "
        f"{_said(row['answered'], 0)} | {best}{_said(row['error'])} | {_said(row['gap'])} | "
        f"{kept} | {_said(row['accuracy'])} | "
        f"{_said(row['coverage'])} | {_said(row['seconds'], 1)} |"
    )


def save(rows: list[dict[str, Any]], ensembles: list[dict[str, Any]]) -> None:
    """Write the JSON and the page."""
    told = claims(rows, ensembles)
    errors = {name: mean_of(ensembles, name) for name in ("teacher", "majority", "network")}
    write(
        "fairpate_color_mnist",
        {"commit": commit(), "rows": rows, "ensembles": ensembles, "claims": told},
        f"# ColorMNIST: convolutional teachers, {max(row['seeds'] for row in rows)} seeds\n",
        "`python reproductions/fairpate_color_mnist.py --save`; which algorithm is which, and when "
        f"a row agrees, stands in the script. Commit: {commit()}. What has no row was not run, and "
        "a verdict that needs it is a dash.\n",
        "## Every setting\n",
        "| method | epsilon | margin | seeds | labels | error | gap | kept | accuracy of what the "
        "reject option gives | its coverage | CPU seconds a fit |",
        rule(11),
        *map(as_line, rows),
        "\n## The teachers\n",
        f"Error on the public pictures: one teacher {_said(errors['teacher'])}, the majority of "
        f"200 without noise {_said(errors['majority'])}, one network of all private pictures "
        f"{_said(errors['network'])}.\n",
        "## Verdicts\n",
        "| claim | where | ours | agrees? |",
        rule(4),
        *(
            f"| {c['claim']} | {c['where']} | "
            + ", ".join("-" if x is None else f"{x:.3f}" for x in c["numbers"])
            + f" | {c['agrees']} |"
            for c in told
        ),
    )


def main() -> None:
    """Measure what is not measured yet, and save if asked."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=Path, required=True, help="what is finished; private")
    parser.add_argument("--seeds", type=int, nargs="+", default=(0, 1, 2))
    parser.add_argument("--only", nargs="+", choices=("nothing", "ensemble", *METHODS))
    parser.add_argument("--save", action="store_true")
    asked = parser.parse_args()
    asked.runs.mkdir(mode=0o700, exist_ok=True)
    file = asked.runs / "runs.jsonl"
    for seed in () if asked.only == ["nothing"] else asked.seeds:
        votes_of(seed, asked.runs)
        for how, make in runs_of(seed, asked.runs, asked.only or ("ensemble", *METHODS)):
            done = {(r["method"], r.get("epsilon"), r.get("margin"), r["seed"]) for r in kept(file)}
            if (*how, seed) not in done:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", UserWarning)
                    keep(file, make())
                print(kept(file)[-1], flush=True)
    once = {
        (run["seed"], run["method"], run.get("epsilon"), run.get("margin")): run
        for run in kept(file)
    }
    found = [run for run in once.values() if run["seed"] in asked.seeds]
    if asked.save:
        ensembles = [run for run in found if run["method"] == "ensemble"]
        save(rows_of([run for run in found if run["method"] != "ensemble"]), ensembles)


if __name__ == "__main__":
    main()

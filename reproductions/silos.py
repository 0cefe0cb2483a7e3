"""Owners as they are in nature: schools and authorities that vote, and each of them alone.

    python reproductions/silos.py [--set star] [--seeds 5] [--keep FILE] [--save]

STAR (79 schools, race), MathAchieve (160 schools, minority), Chem97 (131 authorities, gender). Of
each table a fifth of the rows, at random, is public and a quarter is for tests; what is left stays
with its owner. Every owner trains logistic regression on its own records, on features scaled by the
public rows. Votes cross its border, and nothing else. Compared, by error and pairwise gap on the
same test rows:

* *an owner alone*: the median over all owners of their own models, without privacy, and the
  owners' mean; for 6 owners a seed, ``DPSGDClassifier`` at epsilon 1 (*alone, private*);
* *votes*, unit owner: one vote for each owner; unit record: an owner of n records has n // 25
  teachers (at least one) on disjoint parts of them. Epsilon .5, 1, 3, delta 1e-5 for records and
  1e-3 for owners; margins none, .05, .02;
* *pooled*, which the owners refuse: ``DPSGDClassifier`` at the same epsilons, and logistic
  regression without privacy;
* *liars*: at epsilon 1 and margin .05, a tenth or three tenths of the owners vote together, either
  always for the other class than their own model, or for one group and against the other.

Rule, for sets of 50 owners or more: "agrees" where at epsilon 1 for each record and margin .05 the
mean over seeds of the votes' error *and* of their gap is below the mean over seeds of the median
owner's. "Surely" where the upper end of the 95 % interval of the paired difference is below 0 too.
``DPSGDClassifier`` and the votes are sound as they stand (docs/guarantees.md); nothing here was
printed elsewhere. Public rows, features and settings were chosen without test rows.

By size: the owners in thirds by their number of records, and the share of each third whose own
model errs more on the test rows than the votes at epsilon 1 for each record without a margin. It
says whom taking part helps most.

ACS-Income by PUMA is not here: the files at hand have no column of the PUMA.
"""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
from _judged import error_and_gap
from _table import Runs, asked, commit, interval, rule, select, write
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

from evenhand import (
    Budget,
    DemographicParity,
    DPSGDClassifier,
    FairSharesClassifier,
    PATEClassifier,
)
from evenhand.datasets import PublicEncoder
from evenhand.datasets.dataset import Split
from evenhand.datasets.silos import by_owner, load_chem97, load_math_achieve, load_star
from evenhand.owners.collection import OwnerVotes
from evenhand.owners.digests import PublicRows
from evenhand.owners.vote_file import VoteFile
from evenhand.privacy import FloatNoise

SETS = {"star": load_star, "math-achieve": load_math_achieve, "chem97": load_chem97}
EPSILONS = (0.5, 1.0, 3.0)
MARGINS = (None, 0.05, 0.02)
DELTA = {"owner": 1e-3, "record": 1e-5}
RECORDS = 25
ALONE = 6
LIARS = (0.1, 0.3)


def learned(X: Any, y: Any) -> Any:
    """Return what an owner, or one of its teachers, learns."""
    if len(np.unique(y)) < 2:
        return DummyClassifier(strategy="most_frequent").fit(X, y)
    return LogisticRegression(C=1.0, max_iter=1000).fit(X, y)


class Scene:
    """One split: the encoded parts, and the owners' records."""

    def __init__(self, name: str, seed: int) -> None:
        data, owner = by_owner(SETS[name]())
        split: Split = data.split(public=0.2, test=0.25, random_state=seed)
        encoder = PublicEncoder().fit(split.public.X)
        self.seed, self.split = seed, split
        self.X, self.y = encoder.transform(split.private.X), split.private.y.to_numpy(np.int64)
        self.public, self.test = encoder.transform(split.public.X), encoder.transform(split.test.X)
        holder = owner.loc[split.private.X.index].to_numpy()
        self.owners = [np.flatnonzero(holder == name) for name in np.unique(holder)]
        self.rows = PublicRows.of(split.public.X)
        self.groups = split.public.groups.to_numpy()

    def judged(self, decided: Any) -> tuple[float, float]:
        """Error and pairwise gap on the test part."""
        return error_and_gap(self.split.test, decided)

    def votes(self, unit: str) -> list[VoteFile]:
        """Return the votes of every owner."""
        rng = np.random.default_rng(self.seed)
        files = []
        for i, rows in enumerate(self.owners):
            k = max(1, len(rows) // RECORDS) if unit == "record" else 1
            parts = np.array_split(rng.permutation(rows), k)
            said = [learned(self.X[part], self.y[part]).predict(self.public) for part in parts]
            files.append(
                VoteFile.cast(f"{i}", np.array(said), self.rows, classes=[0, 1], unit=unit)
            )
        return files

    def model(self, files: list[VoteFile], epsilon: float, margin: float | None) -> Any:
        """Return the model of these votes."""
        votes = OwnerVotes.of(files, signed=False)
        settings: dict[str, Any] = {
            "budget": Budget(epsilon=epsilon, delta=DELTA[votes.unit]),
            "noise": FloatNoise(),
            "random_state": self.seed,
        }
        X = self.split.public.X
        if margin is None:
            return PATEClassifier.from_votes(votes, X, **settings)
        fairness = DemographicParity(margin=margin)
        return FairSharesClassifier.from_votes(
            votes, X, self.split.public.groups, fairness=fairness, **settings
        )

    def voted(self, files: list[VoteFile], epsilon: float, margin: float | None) -> Any:
        """Error and gap of the model of these votes."""
        return self.judged(self.model(files, epsilon, margin).predict(self.split.test.X))

    def dpsgd(self, rows: Any, epsilon: float, margin: float | None) -> tuple[float, float]:
        """Error and gap of a private model of some private rows."""
        private, public = self.split.private, self.split.public
        fairness = None if margin is None else DemographicParity(margin=margin)
        model = DPSGDClassifier(
            budget=Budget(epsilon=epsilon, delta=DELTA["record"]),
            fairness=fairness,
            n_steps=1500,
            degree=0,
            noise=FloatNoise(),
            random_state=self.seed,
        )
        more = {} if margin is None else {"sensitive_features": private.groups.iloc[rows]}
        model.fit(private.X.iloc[rows], self.y[rows], X_public=public.X, **more)
        return self.judged(model.predict(self.split.test.X))


def liars(scene: Scene, files: list[VoteFile], share: float, how: str) -> list[VoteFile]:
    """Return the votes when the first owners of a shuffled list lie together."""
    n = round(share * len(files))
    chosen = set(np.random.default_rng(scene.seed).permutation(len(files))[:n].tolist())
    first = np.unique(scene.groups)[0]
    against = (scene.groups == first).astype(np.int64)
    found = []
    for i, file in enumerate(files):
        if i not in chosen:
            found.append(file)
            continue
        own = file.parts.argmax(axis=2)
        lie = 1 - own if how == "other class" else np.broadcast_to(against, own.shape)
        found.append(VoteFile.cast(file.owner, lie, file.public, classes=[0, 1], unit=file.unit))
    return found


def measure(name: str, seed: int) -> dict[str, Any]:
    """All rows of one set for one seed: error and gap by the words of the row."""
    scene = Scene(name, seed)
    found: dict[str, tuple[float, float]] = {}
    own = np.array(
        [
            scene.judged(learned(scene.X[rows], scene.y[rows]).predict(scene.test))
            for rows in scene.owners
        ]
    )
    found["median owner alone, not private"] = tuple(np.median(own, axis=0))
    found["mean owner alone, not private"] = tuple(own.mean(axis=0))
    everybody = np.concatenate(scene.owners)
    pooled = learned(scene.X[everybody], scene.y[everybody])
    found["pooled, not private"] = scene.judged(pooled.predict(scene.test))
    some = np.random.default_rng(seed).permutation(len(scene.owners))[:ALONE]
    alone = [scene.dpsgd(scene.owners[i], 1.0, None) for i in some]
    found["median owner alone, private | none | 1.0"] = tuple(np.median(alone, axis=0))
    for epsilon in EPSILONS:
        for margin in (None, 0.05):
            row = f"pooled, private | {margin or 'none'} | {epsilon}"
            found[row] = scene.dpsgd(everybody, epsilon, margin)
    for unit in DELTA:
        files = scene.votes(unit)
        for epsilon in EPSILONS:
            for margin in MARGINS:
                row = f"votes, for each {unit} | {margin or 'none'} | {epsilon}"
                found[row] = scene.voted(files, epsilon, margin)
        for share in LIARS:
            for how in ("other class", "against a group"):
                row = f"votes, for each {unit}, {share:.0%} lie: {how} | 0.05 | 1.0"
                found[row] = scene.voted(liars(scene, files, share, how), 1.0, 0.05)
    error = found["votes, for each record | none | 1.0"][0]
    sizes = np.array([len(rows) for rows in scene.owners])
    thirds = np.array_split(np.argsort(sizes, kind="stable"), 3)
    return {
        "set": name,
        "seed": seed,
        "owners": len(scene.owners),
        "rows": {row: [float(value) for value in pair] for row, pair in found.items()},
        "thirds": [
            {
                "records": [int(sizes[third].min()), int(sizes[third].max())],
                "helped": float((own[third, 0] > error).mean()),
                "own": float(np.median(own[third, 0])),
            }
            for third in thirds
        ],
    }


def lines_of(name: str, runs: list[dict[str, Any]]) -> list[str]:
    """Return the tables of one set."""
    shown = [f"\n## {name}, {runs[0]['owners']} owners, {len(runs)} seeds\n"]
    shown += ["| way | margin | epsilon | error | gap |", rule(5)]
    for row in runs[0]["rows"]:
        error, gap = (interval([run["rows"][row][at] for run in runs]) for at in (0, 1))
        way, margin, epsilon = (*row.split(" | "), "-", "-")[:3]
        shown.append(f"| {way} | {margin} | {epsilon} | {error:.4f} | {gap:.4f} |")
    found = verdict(runs)
    shown += [f"\nAgrees: {found['agrees']}; {found['why']}.\n"]
    shown += ["| records of an owner | its own error, median | helped |", rule(3)]
    for third in range(3):
        parts = [run["thirds"][third] for run in runs]
        low, high = min(p["records"][0] for p in parts), max(p["records"][1] for p in parts)
        own, helped = (np.mean([p[key] for p in parts]) for key in ("own", "helped"))
        shown.append(f"| {low} to {high} | {own:.4f} | {helped:.0%} |")
    return shown


def verdict(runs: list[dict[str, Any]]) -> dict[str, str]:
    """Return whether the rule of this page is met."""
    said = []
    for at, what in ((0, "error"), (1, "gap")):
        apart = [
            run["rows"]["votes, for each record | 0.05 | 1.0"][at]
            - run["rows"]["median owner alone, not private"][at]
            for run in runs
        ]
        found = interval(apart)
        likely = "below" if found.mean < 0 else "not below"
        met = found.judged(likely, likely, "surely below")
        said.append((met, f"{what} {met} the median owner's ({found:+.4f})"))
    agrees = all("not" not in met for met, _ in said)
    return {
        "set": runs[0]["set"],
        "agrees": "yes" if agrees else "no",
        "why": f"{said[0][1]}, {said[1][1]}",
    }


def main() -> None:
    """Measure, print and save."""
    parser = asked(__doc__, seeds=5)
    parser.add_argument("--set", choices=SETS, action="append")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # noise that drowns a small set: it is measured
    runs = Runs(arguments.kept)
    sets = arguments.set or SETS
    runs.complete(lambda set, seed: measure(set, seed), seed=range(arguments.seeds), set=sets)
    if arguments.save:
        save(runs)
    print("\n".join(tables(runs)[1]) or json.dumps(runs[-1], indent=1))


def tables(runs: list[dict[str, Any]]) -> tuple[list[dict[str, str]], list[str]]:
    """Return the verdict of every set, and the tables of all."""
    by_set = {name: select(runs, set=name) for name in SETS}
    measured = {name: mine for name, mine in by_set.items() if len(mine) > 1}
    lines = [line for name, mine in measured.items() for line in lines_of(name, mine)]
    return [verdict(mine) for mine in measured.values()], lines


def save(runs: list[dict[str, Any]]) -> None:
    """Write the runs as JSON and as tables."""
    at = commit()
    verdicts, lines = tables(runs)
    write(
        "silos",
        {"commit": at, "verdicts": verdicts, "runs": runs},
        f"# Owners as they are in nature, commit {at}\n",
        "`python reproductions/silos.py --save`; what each way is, and the rule, stand in the "
        'script. "Helped": owners whose own model errs more on the test rows than the votes '
        "at epsilon 1 for each record without a margin.",
        *lines,
    )


if __name__ == "__main__":
    main()

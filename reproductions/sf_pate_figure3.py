"""SF-PATE's Figure 3: accuracy of private groups, noisy votes beside randomised response.

    python reproductions/sf_pate_figure3.py [--seeds 10] [--save]

Teachers learn the group from the features, each on its own part of 75 % of the rows; they vote on
some of these rows, and a row's group is the one with more votes after noise (one noised count,
sensitivity 1, exact Gaussian DP over all votes, delta 1e-5). The paper does not say on how many
rows; each costs, so few (200) and many (2000) stand here. "Smoothed", for 2000 rows and the largest
ensemble, is what a regression on the same noisy votes says of these rows, as SFPATEClassifier does
by default. Every seed is a split, a deal to teachers and a noise of its own: mean and half width of
a 95 % interval. Randomised response tells the true group with probability ``e**epsilon / (1 +
e**epsilon)``, for any number of rows; its epsilon is pure and local, which is more than the votes
promise. A record is taken for a person (Parkinsons has many of each). Sizes, epsilons and 2000 rows
were fixed before the first run; 200 and "smoothed" were added after a look at two seeds, on which
2000 votes lost nearly everywhere.

The paper's figure has no digits; it shows votes above randomised response on Income. A row agrees
if the votes' accuracy is above that of randomised response by more than the half width (2.5 % that
votes which are only as accurate pass; the accuracy of randomised response is known exactly). That a
larger ensemble is more accurate agrees if it surely is at every epsilon, paired over the seeds
(``_paired``); ``--judge`` judges the saved rows anew and measures nothing. Because
*constant* guesses of the larger group are accurate too, and say nothing, the balanced accuracy
(mean of the two groups') stands beside it: 1/2 is what a constant has.
"""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import numpy as np
from _paired import least
from _table import RESULTS, asked, commit, interval, rule, write

from evenhand import Budget
from evenhand.datasets import (
    Dataset,
    PublicEncoder,
    load_adult,
    load_bank,
    load_credit_default,
    load_parkinsons,
)
from evenhand.fairness.groups import encode_groups
from evenhand.privacy import (
    FloatNoise,
    Ledger,
    NoisyHistogram,
    RandomizedResponse,
    attribute_of,
)
from evenhand.privacy.relation import GROUP_LABEL
from evenhand.students.student import fit_student
from evenhand.teachers import LogisticTeachers, by_position
from evenhand.voting import Shares, Votes
from evenhand.voting.shares import Rounds, release_shares

LOADERS = {
    "Bank": load_bank,
    "Parkinsons": load_parkinsons,
    "Adult": load_adult,
    "Credit": load_credit_default,
}
EPSILONS = (0.5, 1.0, 2.0)
SIZES = (50, 100, 200, 400)
QUERIES, DELTA = (200, 2000), 1e-5
ALGORITHMS = (
    "Which algorithm: noisy votes are as printed, with every answer charged; 'smoothed' is ours. "
    "'agrees?' asks whether votes are surely *more* accurate than randomised response: by more "
    "than the half width, so that votes which are only as accurate pass with a chance of 2.5 %."
)


def accuracy(told: Any, groups: Any) -> tuple[float, float]:
    """Share of rows told rightly, and the mean of that share over groups."""
    right = told == groups
    return float(right.mean()), float(np.mean([right[groups == z].mean() for z in (0, 1)]))


def released(votes: Votes, epsilon: float) -> Shares:
    """Release noisy shares of the votes on every row that was asked, with all of the budget."""
    budget = Budget(epsilon=epsilon, delta=DELTA)
    sigma = math.sqrt(len(votes.counts) / (budget.mu_squared * (1.0 - 1e-6)))
    ledger = Ledger(budget, noise=FloatNoise(), unit=attribute_of("person"), neighbors=GROUP_LABEL)
    histogram = NoisyHistogram(sigma=sigma, n_classes=2)
    return release_shares(votes, Rounds.once(histogram, len(votes.counts)), ledger)


def of_seed(data: Dataset, seed: int) -> dict[tuple[str, int, int, float], tuple[float, float]]:
    """Return both accuracies for every way, number of rows, size and epsilon."""
    rows = data.split(public=0.0, test=0.25, random_state=seed).private
    groups = encode_groups(rows.groups).codes
    X = PublicEncoder().fit(rows.X).transform(rows.X)
    rng = np.random.default_rng(seed)
    asked = rng.permutation(len(X))[: max(QUERIES)]
    found = {}
    for size in SIZES:
        partition = by_position(len(X), size, rng)
        ensemble = LogisticTeachers().fit(X, groups, partition, 2, rng.spawn(1)[0])
        said = ensemble.vote(X[asked])
        for epsilon, n in itertools.product(EPSILONS, QUERIES):
            own = asked[:n]
            shares = released(Votes.of(said[:, :n], 2), epsilon)
            told = shares.shares.argmax(axis=1)
            found["noisy votes", n, size, epsilon] = accuracy(told, groups[own])
            if n == max(QUERIES) and size == max(SIZES):
                smooth = fit_student(None, X[own], shares).model.predict(X[own])
                found["smoothed", n, size, epsilon] = accuracy(smooth, groups[own])
    return found


def measure(name: str, data: Dataset, seeds: int) -> list[dict[str, Any]]:
    """One row per way, number of rows, epsilon and size of ensemble."""
    repeats = [of_seed(data, seed) for seed in range(seeds)]
    share = float(encode_groups(data.groups).sizes.max() / len(data))
    rows = []
    for way, n, size, epsilon in sorted(repeats[0], key=lambda at: (at[0], at[1], at[3], at[2])):
        runs = [found[way, n, size, epsilon] for found in repeats]
        response = RandomizedResponse(epsilon=epsilon, n_groups=2, delta=DELTA).truth
        row: dict[str, Any] = {"data": name, "way": way, "rows": n}
        row |= {"epsilon": epsilon, "teachers": size, "constant": share}
        row["accuracy"], row["accuracy_pm"] = interval([run[0] for run in runs])
        row["balanced"], row["balanced_pm"] = interval([run[1] for run in runs])
        row["response"] = float(response)
        row["repeats"] = runs
        row["agrees"] = verdict(row)
        rows.append(row)
    return rows


def verdict(row: dict[str, Any]) -> str:
    """Whether the votes are surely the more accurate, yes or no."""
    return "yes" if row["accuracy"] - row["accuracy_pm"] > row["response"] else "no"


def claims(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Judge what the figure and its text say, for each table of data and way."""
    said = []
    for data, way, n in dict.fromkeys((row["data"], row["way"], row["rows"]) for row in rows):
        own = [row for row in rows if (row["data"], row["way"], row["rows"]) == (data, way, n)]
        largest = [row for row in own if row["teachers"] == max(SIZES)]
        name = f"{way}, {n} rows"
        above = min(row["accuracy"] - row["accuracy_pm"] - row["response"] for row in largest)
        said.append(claim(data, name, "400 teachers are more accurate at every epsilon", above))
        told = min(row["balanced"] - row["balanced_pm"] - row["response"] for row in largest)
        said.append(claim(data, name, "and so in the mean of both groups", told))
        gains = [
            least([run[0] for run in row["repeats"]], [run[0] for run in first["repeats"]])
            for row in largest
            for first in own
            if first["teachers"] == min(SIZES) and first["epsilon"] == row["epsilon"]
        ]
        if gains:
            words = "a larger ensemble is surely more accurate (400 against 50)"
            said.append(claim(data, name, words, min(gains)))
    return said


def claim(data: str, way: str, words: str, least: float) -> dict[str, Any]:
    """Return a claim with the least margin by which it holds."""
    agrees = "yes" if least > 0 else "no"
    return {"data": data, "way": way, "claim": words, "least": least, "agrees": agrees}


def line(row: dict[str, Any]) -> str:
    """One row of the table."""
    return (
        f"| {row['data']} | {row['way']}, {row['rows']} rows | {row['epsilon']:g} "
        f"| {row['teachers']} | votes above answers "
        f"| {row['accuracy']:.3f} ± {row['accuracy_pm']:.3f} | {row['response']:.3f} "
        f"| {row['agrees']} | {row['balanced']:.3f} ± {row['balanced_pm']:.3f} "
        f"| {row['constant']:.3f} |"
    )


def save(rows: list[dict[str, Any]], claims: list[dict[str, Any]], seeds: int) -> None:
    """Write every repeat as JSON, and the tables."""
    page(commit(), rows, claims, seeds)


def page(at: str, rows: list[dict[str, Any]], claims: list[dict[str, Any]], seeds: int) -> None:
    """Write the rows, and the tables."""
    write(
        "sf_pate_figure3",
        {"commit": at, "seeds": seeds, "rows": rows, "claims": claims},
        f"# Accuracy of private groups, votes beside answers, {seeds} seeds, commit {at}\n",
        f"{ALGORITHMS}\n",
        "| data | groups from | epsilon | teachers | paper | ours | randomised response | agrees? "
        "| ours, balanced | always the larger group |",
        rule(10),
        *map(line, rows),
        "\n| data | groups from | claim | least margin | agrees? |",
        rule(5),
        *(
            f"| {said['data']} | {said['way']} | {said['claim']} | {said['least']:+.3f} "
            f"| {said['agrees']} |"
            for said in claims
        ),
    )


def main() -> None:
    """Run, print, and save if asked to."""
    parser = asked(__doc__, seeds=10, keeps=False)
    parser.add_argument("--judge", action="store_true")
    given = parser.parse_args()
    if given.judge:
        told = json.loads((RESULTS / "sf_pate_figure3.json").read_text())
        page(told["commit"], told["rows"], claims(told["rows"]), told["seeds"])
        return
    rows = []
    for name, load in LOADERS.items():
        for row in measure(name, load(), given.seeds):
            rows.append(row)
            print(line(row), flush=True)
    found = claims(rows)
    for said in found:
        print(said)
    if given.save:
        save(rows, found, given.seeds)


if __name__ == "__main__":
    main()

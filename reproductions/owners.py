"""A case where teachers are the better choice: a hundred owners of data that will not pool them.

    python reproductions/owners.py [--seeds 5] [--save]

The private rows of Adult are dealt to 100 owners, about 270 records each. Every owner trains what
it has at hand (a third each: gradient-boosted trees, a random forest, logistic regression) and
casts votes on the public rows; nothing else leaves an owner. From the votes
``FairSharesClassifier`` makes one model, (epsilon, 1e-5)-differentially private for each record,
within a margin of .05 on the public rows. Beside it what is possible without a vote:

* *alone, private*: the mean owner trains by ``DPSGDClassifier`` on its own records;
* *alone, not private*: the mean owner uses its own model for its own purposes;
* *pooled, private*: ``DPSGDClassifier`` on all records in one place, which the owners refuse. It
  also needs a model with gradients, and one party that sees the records.

Error / pairwise gap on the test part, mean and half width of a 95 % interval over seeds (split,
owners, models and noise anew; floating-point noise from the operating system). "Alone" rows are
means over ten owners a seed.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from _judged import error_and_gap
from _table import asked, commit, interval, rule, write
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from evenhand import Budget, DemographicParity, DPSGDClassifier, FairSharesClassifier
from evenhand.datasets import PublicEncoder, load_adult
from evenhand.datasets.dataset import Split
from evenhand.privacy import FloatNoise
from evenhand.teachers import OutsideVotes, by_position

N_OWNERS = 100
ALONE = 10
EPSILONS = (1.0, 3.0)
MARGIN = DemographicParity(margin=0.05)


def learner(owner: int, seed: int) -> Any:
    """Return what an owner has at hand."""
    kinds = (
        HistGradientBoostingClassifier(
            max_iter=30, max_depth=3, min_samples_leaf=10, random_state=seed
        ),
        RandomForestClassifier(n_estimators=50, min_samples_leaf=5, random_state=seed),
        LogisticRegression(C=1.0, max_iter=1000),
    )
    return kinds[owner % len(kinds)]


def measure(seed: int) -> dict[tuple[str, float | None], tuple[float, float]]:
    """All rows of the table for one seed."""
    split = load_adult().split(public=0.2, test=0.25, random_state=seed)
    X, y = split.private.X, split.private.y.to_numpy(np.int64)
    encoder = PublicEncoder().fit(split.public.X)
    private, public = encoder.transform(X), encoder.transform(split.public.X)
    test = encoder.transform(split.test.X)
    owners = by_position(len(X), N_OWNERS, seed)
    votes, own = [], []
    for owner in range(N_OWNERS):
        rows = owners.rows(owner)
        model = learner(owner, seed).fit(private[rows], y[rows])
        votes.append(model.predict(public))
        if owner < ALONE:
            own.append(error_and_gap(split.test, model.predict(test)))
    found: dict[tuple[str, float | None], tuple[float, float]] = {
        ("alone, not private", None): mean(own)
    }
    for epsilon in EPSILONS:
        settings = settings_of(epsilon, seed)
        voted = FairSharesClassifier(
            fairness=MARGIN, teachers=OutsideVotes(np.array(votes)), **settings
        ).fit(X, y, X_public=split.public.X, sensitive_features_public=split.public.groups)
        found["the owners' votes", epsilon] = error_and_gap(split.test, voted.predict(split.test.X))
        alone = []
        for owner in range(ALONE):
            rows = owners.rows(owner)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a batch larger than the few records
                one = DPSGDClassifier(fairness=MARGIN, n_steps=1500, degree=0, **settings).fit(
                    X.iloc[rows],
                    y[rows],
                    sensitive_features=split.private.groups.iloc[rows],
                    X_public=split.public.X,
                )
            alone.append(error_and_gap(split.test, one.predict(split.test.X)))
        found["alone, private", epsilon] = mean(alone)
        found["pooled, private", epsilon] = pooled(split, epsilon, seed)
    return found


def settings_of(epsilon: float, seed: int) -> dict[str, Any]:
    """Return what every private model is given."""
    return {
        "budget": Budget(epsilon=epsilon, delta=1e-5),
        "noise": FloatNoise(),
        "random_state": seed,
    }


def pooled(split: Split, epsilon: float, seed: int) -> tuple[float, float]:
    """Error and gap of one private model of all records."""
    model = DPSGDClassifier(
        fairness=MARGIN, n_steps=1500, degree=0, **settings_of(epsilon, seed)
    ).fit(
        split.private.X,
        split.private.y.to_numpy(np.int64),
        sensitive_features=split.private.groups,
        X_public=split.public.X,
    )
    return error_and_gap(split.test, model.predict(split.test.X))


def mean(pairs: list[tuple[float, float]]) -> tuple[float, float]:
    """Mean of errors and of gaps."""
    error, gap = np.mean(pairs, axis=0)
    return float(error), float(gap)


def main() -> None:
    """Measure and print a row for each way."""
    given = asked(__doc__, seeds=5, keeps=False).parse_args()
    runs = [measure(seed) for seed in range(given.seeds)]
    rows: list[dict[str, Any]] = []
    for way, epsilon in runs[0]:
        row: dict[str, Any] = {"way": way, "epsilon": epsilon}
        for at, name in enumerate(("error", "gap")):
            row[name], row[f"{name}_pm"] = interval([run[way, epsilon][at] for run in runs])
        rows.append(row)
    lines = [
        "| way | epsilon | error | gap |",
        rule(4),
        *(
            f"| {row['way']} | {row['epsilon'] or 'none'} | {row['error']:.4f} ± "
            f"{row['error_pm']:.4f} | {row['gap']:.4f} ± {row['gap_pm']:.4f} |"
            for row in rows
        ),
    ]
    print("\n".join(lines))
    if given.save:
        save(rows, lines, given.seeds)


def save(rows: list[dict[str, Any]], lines: list[str], seeds: int) -> None:
    """Write the rows as JSON and as a table."""
    at = commit()
    write(
        "owners",
        {"commit": at, "seeds": seeds, "rows": rows},
        f"# A hundred owners that do not pool, {seeds} seeds, commit {at}\n",
        "`python reproductions/owners.py --save`; what each way is stands in the script.\n",
        *lines,
    )


if __name__ == "__main__":
    main()

"""What the model of teachers and students has without privacy: the floor of labels_or_shares.py.

    python reproductions/no_privacy.py [--seeds 10] [--save]

``NonPrivateClassifier`` on the splits of ``labels_or_shares.py`` (25 % test; of the rest 20 %
public, which only scale the columns): logistic regression with the ridge of scikit-learn's default
(C = 1), with that of our teachers (C = 100), and with hardly any (C = 10,000). Error on the test
part, mean and half width of a 95 % interval over seeds. "asked at epsilon 3" is the goal that
``labels_or_shares.py`` compares with.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from _table import Mean, asked, commit, interval, rule, write
from labels_or_shares import LOADERS, REFERENCE
from sklearn.linear_model import LogisticRegression

from evenhand import NonPrivateClassifier
from evenhand.typing import FloatArray

RIDGES = (1.0, 100.0, 10_000.0)


def errors(name: str, C: float, seeds: int) -> FloatArray:
    """Test error for each seed."""
    data, found = LOADERS[name](), []
    for seed in range(seeds):
        split = data.split(public=0.2, test=0.25, random_state=seed)
        model = NonPrivateClassifier(LogisticRegression(C=C, max_iter=5000))
        model.fit(split.private.X, split.private.y, X_public=split.public.X)
        found.append((model.predict(split.test.X) != split.test.y.to_numpy()).mean())
    return np.array(found)


def main() -> None:
    """Measure and print a row for each table."""
    given = asked(__doc__, seeds=10, keeps=False).parse_args()
    rows: list[dict[str, Any]] = []
    for name in LOADERS:
        goal = REFERENCE.get((name, 3.0, None))
        row: dict[str, Any] = {"data": name, "asked": None if goal is None else goal[0]}
        for C in RIDGES:
            row[f"{C:g}"] = interval(errors(name, C, given.seeds))
        rows.append(row)
        print(as_line(row), flush=True)
    if given.save:
        save(rows, given.seeds)


def as_line(row: dict[str, Any]) -> str:
    """Return one line of the table."""
    cells = [f"{Mean(*row[f'{C:g}']):.4f}" for C in RIDGES]
    goal = "-" if row["asked"] is None else f"{row['asked']:.4f}"
    return f"| {row['data']} | {goal} | {' | '.join(cells)} |"


def save(rows: list[dict[str, Any]], seeds: int) -> None:
    """Write the rows as JSON and as a table."""
    at = commit()
    write(
        "no_privacy",
        {"commit": at, "seeds": seeds, "rows": rows},
        f"# Logistic regression without privacy, {seeds} seeds, commit {at}\n",
        "`python reproductions/no_privacy.py --save`; what is compared stands in the script.\n",
        "| data | asked at epsilon 3 | C = 1 | C = 100 | C = 10,000 |",
        rule(2 + len(RIDGES)),
        *map(as_line, rows),
    )


if __name__ == "__main__":
    main()

"""Ten columns of 1,000 codes that are near each other: pairs by ranges, beside all their states.

The check: drawn columns are near each other where pairs are counted by ranges, and are not where a
table of two has a million cells, for noise hides all of them. Nearness is the mean cosine of the
angle between the first column and the others, whose codes lie on a circle; 1 is the same code.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from _harness import run

from evenhand import Budget
from evenhand.datasets import Schema
from evenhand.generators import MarginalSynthesizer
from evenhand.generators.tables import marginal
from evenhand.privacy import FloatNoise

ROWS, COLUMNS, STATES, EPSILON, SEED = 50_000, 10, 1_000, 1.0, 0
NAMES = [f"c{j}" for j in range(COLUMNS)]


@cache
def table() -> pd.DataFrame:
    """Make codes that are at most 60 from a common one, which tells the label."""
    rng = np.random.default_rng(SEED)
    base = rng.integers(STATES, size=ROWS)
    codes = (base[:, None] + rng.integers(-60, 61, (ROWS, COLUMNS))) % STATES
    frame = pd.DataFrame(codes, columns=NAMES).map("v{:04}".format)
    label = np.where(base + rng.normal(0, 300, ROWS) > STATES / 2, "yes", "no")
    return frame.assign(sex=rng.choice(["F", "M"], ROWS), y=label)


def fitted() -> MarginalSynthesizer:
    """Fit the default."""
    codes = [f"v{i:04}" for i in range(STATES)]
    schema = Schema.declared({**dict.fromkeys(NAMES, codes), "sex": ["F", "M"], "y": ["no", "yes"]})
    made = MarginalSynthesizer(random_state=SEED, noise=FloatNoise())
    budget = Budget(epsilon=EPSILON, delta=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of noise
        return made.fit(table(), label="y", sensitive="sex", budget=budget, schema=schema)


def of_all_states() -> MarginalSynthesizer:
    """Fit with a table of all states of each pair."""
    with mock.patch.object(marginal, "MOST_STATES", STATES):
        return fitted()


def nearness(frame: Any) -> float:
    """Mean cosine between the first column and the others."""
    codes = frame[NAMES].apply(lambda column: column.str[1:].astype(int)).to_numpy()
    apart = codes[:, :1] - codes[:, 1:]
    return float(np.cos(2 * np.pi * apart / STATES).mean())


def found(made: MarginalSynthesizer) -> tuple[int, float]:
    """Pairs of the tree, and nearness in drawn rows."""
    drawn = made.sample(20_000, balance=(), random_state=SEED)
    return len(made.distribution_.tree.edges), nearness(drawn)


def check() -> None:
    """See the claim of this page."""
    pairs, near = found(fitted())
    assert pairs >= COLUMNS - 1
    assert near > 0.5
    assert found(of_all_states())[0] == 0


def also(_: float) -> dict[str, object]:
    """Return pairs and nearness of both, beside those of the table."""
    (pairs, near), (plain_pairs, plain) = found(fitted()), found(of_all_states())
    return {
        "pairs": pairs,
        "nearness": round(near, 3),
        "plain_pairs": plain_pairs,
        "plain_nearness": round(plain, 3),
        "real_nearness": round(nearness(table()), 3),
    }


if __name__ == "__main__":
    sizes = {"rows": ROWS, "columns": COLUMNS, "states": STATES, "epsilon": EPSILON}
    table()
    run(
        "many_states",
        ours=fitted,
        plain=of_all_states,
        check=check,
        also=also,
        sizes=sizes,
        repeats=3,
        target="a few pairs, not none",
    )

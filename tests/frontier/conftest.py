"""A small town in three files, and the grid over it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

GRID = """
title = "A small town"
[data]
name = "town"
private = "private.csv"
public = "public.csv"
test = "test.csv"
label = "loan"
sensitive = ["sex"]
positive = "granted"

[[runs]]
method = ["fairpate", "pate"]
epsilon = [4, 9]
margin = [0.05, 0.2]
sigma = [6, 9]
n_teachers = [30, 40]

[[runs]]
method = ["nonprivate", "fair-only"]
margin = 0.1
"""
N_SETTINGS = 2 * 2 * 2 * 2 + 2 * 2 * 2 + 2


@pytest.fixture(scope="session")
def town(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the grid's file; its three tables lie beside it."""
    folder = tmp_path_factory.mktemp("town")
    rng = np.random.default_rng(11)
    for part, n in (("private", 600), ("public", 250), ("test", 200)):
        sex = rng.choice(["F", "M"], n)
        age = rng.normal(40, 10, n).round(1)
        hours = rng.integers(10, 60, n)
        score = (age - 40) / 10 + (hours - 35) / 20 + 0.7 * (sex == "M")
        loan = np.where(score + rng.normal(0, 0.5, n) > 0.4, "granted", "refused")
        frame = pd.DataFrame({"age": age, "hours": hours, "sex": sex, "loan": loan})
        frame.to_csv(folder / f"{part}.csv", index=False)
    path = folder / "grid.toml"
    path.write_text(GRID)
    return path

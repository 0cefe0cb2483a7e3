"""
A frontier in two dimensions
============================

Many settings, trained once each; the steps join what nothing else beats. Teachers are shared by
all settings of one seed, so a sweep costs little more than its students.
"""

from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pandas as pd

from evenhand.displays import FrontierDisplay
from evenhand.frontier import Grid, RunStore, sweep
from evenhand.frontier.material import DataSource

folder, rng = Path(mkdtemp()), np.random.default_rng(0)
files = {}
for part, n in (("private", 6000), ("public", 1500), ("test", 3000)):
    group = rng.choice(["a", "b"], n)
    table = pd.DataFrame({"income": rng.normal(3 + 0.5 * (group == "a"), 1), "group": group})
    table["repaid"] = np.where(table["income"] + rng.normal(0, 0.7, n) > 3.5, "yes", "no")
    table.to_csv(folder / f"{part}.csv", index=False)
    files[part] = str(folder / f"{part}.csv")

grid = Grid(
    data=DataSource(name="loans", **files, label="repaid", sensitive=("group",)),
    runs=(
        {
            "method": ["fair-shares", "dpsgd"],
            "epsilon": [0.5, 2.0],
            "margin": [0.02, 0.05, 0.1, 0.2],
        },
    ),
)
with RunStore(folder / "runs.db") as store:
    sweep(grid, store)
    runs = store.runs()
FrontierDisplay.from_runs(runs, x="gap", y="error")

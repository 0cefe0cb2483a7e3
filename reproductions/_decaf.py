"""DECAF (van Breugel et al. 2021), run by an interpreter that has ``decaf``.

    python _decaf.py IN.csv OUT.csv KINDS GRAPH CUTS EPOCHS ROWS SEED

KINDS is JSON: "int", "float" or "category" of every column. GRAPH is JSON: an edge is two columns,
cause first. CUTS is JSON: what is read of which causes is broken as rows are drawn, for each way of
drawing; rows of each way follow one another in OUT.csv. Categories are numbered in the order of
their names, all columns are moved to [0, 1], and what is drawn of a category, or of a whole number,
is rounded. Networks, learning rate and batch are those of the example that the package has.
"""

from __future__ import annotations

import json
import sys

import numpy as np
import pandas as pd
import pytorch_lightning as pl
import torch
from decaf import DECAF, DataModule


def main() -> None:
    """Fit, draw."""
    source, target, kinds, graph, cuts, epochs, n_rows, seed = sys.argv[1:]
    kind_of = json.loads(kinds)
    texts = {name: str for name, kind in kind_of.items() if kind == "category"}
    frame = pd.read_csv(source, dtype=texts, keep_default_na=False)
    names = {name: np.unique(frame[name]) for name in texts}
    numbers = frame.assign(**{n: np.searchsorted(names[n], frame[n]) for n in texts}).astype(float)
    low, width = numbers.min(), (numbers.max() - numbers.min()).replace(0.0, 1.0)
    at = {name: i for i, name in enumerate(frame)}
    torch.set_num_threads(1)
    pl.seed_everything(int(seed))
    rows = DataModule(((numbers - low) / width).to_numpy())
    model = DECAF(
        len(at),
        dag_seed=[[at[cause], at[name]] for cause, name in json.loads(graph)],
        h_dim=200,
        lr=0.5e-3,
        batch_size=64,
        lambda_privacy=0,
        l1_W=1e-4,
        alpha=2,
        rho=2,
    )
    trainer = pl.Trainer(
        max_epochs=int(epochs),
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(model, rows)
    parts = []
    for cut in json.loads(cuts):
        edges = {at[name]: [at[cause] for cause in causes] for name, causes in cut.items()}
        some = torch.randperm(len(rows.dataset))[: int(n_rows)]
        with torch.no_grad():
            made = model.gen_synthetic(rows.dataset.x[some], biased_edges=edges).numpy()
        drawn = pd.DataFrame(made, columns=list(frame)).clip(0.0, 1.0) * width + low
        for name, kind in kind_of.items():
            if kind == "category":
                drawn[name] = names[name][drawn[name].round().astype(int)]
            elif kind == "int":
                drawn[name] = drawn[name].round().astype(int)
        parts.append(drawn)
    pd.concat(parts).to_csv(target, index=False)


if __name__ == "__main__":
    main()

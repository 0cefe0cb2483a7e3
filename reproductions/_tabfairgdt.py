"""TabFairGDT (Panagiotou et al. 2025), run by an interpreter that has ``tabfairgdt``.

    python _tabfairgdt.py IN.csv OUT.csv KINDS LABEL SENSITIVE LAMBDA ROWS SEED

KINDS is JSON: "int", "float" or "category" of every column. A column without a seed of its own in
the package draws from NumPy's.
"""

from __future__ import annotations

import json
import sys

import numpy as np
import pandas as pd
from tabfairgdt import TABFAIRGDT


def main() -> None:
    """Fit, draw."""
    source, target, kinds, label, sensitive, weight, n_rows, seed = sys.argv[1:]
    kind_of = json.loads(kinds)
    texts = {name: str for name, kind in kind_of.items() if kind == "category"}
    frame = pd.read_csv(source, dtype=texts, keep_default_na=False)
    frame = frame.astype(dict.fromkeys(texts, "category"))
    model = TABFAIRGDT(
        protected_attribute=sensitive,
        target=label,
        criterion="dp",
        dtype_map=kind_of,
        seed=int(seed),
        parallel=False,
    )
    np.random.seed(int(seed))  # noqa: NPY002  # the package draws from it
    model.fit(frame, lamda=float(weight))
    model.generate(k=int(n_rows)).to_csv(target, index=False)


if __name__ == "__main__":
    main()

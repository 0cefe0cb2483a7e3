"""Fidelity of one table by SDMetrics, run by an interpreter that has it.

    python _sdmetrics.py REAL.csv SYNTHETIC.csv KINDS.json OUT.json

KINDS says of every column whether it is "numeric" or "categorical". OUT holds the version and
[metric, first column, second column or null, score] of every column and every pair.
"""

from __future__ import annotations

import json
import sys
import warnings
from itertools import combinations
from pathlib import Path

warnings.simplefilter("ignore")
import pandas as pd  # noqa: E402
import sdmetrics  # noqa: E402
from sdmetrics.column_pairs import ContingencySimilarity, CorrelationSimilarity  # noqa: E402
from sdmetrics.single_column import KSComplement, TVComplement  # noqa: E402


def main() -> None:
    """Read both tables, measure, write."""
    first, second, told, target = map(Path, sys.argv[1:])
    kinds = json.loads(told.read_text())
    numbers = [name for name in kinds if kinds[name] == "numeric"]
    texts = {name: str for name in kinds if name not in numbers}
    real, made = (pd.read_csv(path, dtype=texts) for path in (first, second))
    rows = []
    for name in kinds:
        metric = KSComplement if name in numbers else TVComplement
        score = metric.compute(real[name], made[name])
        rows.append((metric.__name__, name, None, float(score)))
    for a, b in combinations(kinds, 2):
        x, y = real[[a, b]], made[[a, b]]
        if a in numbers and b in numbers:
            score = CorrelationSimilarity.compute(x, y)
            rows.append(("CorrelationSimilarity", a, b, float(score)))
        else:
            binned = [name for name in (a, b) if name in numbers]
            score = ContingencySimilarity.compute(x, y, continuous_column_names=binned)
            rows.append(("ContingencySimilarity", a, b, float(score)))
    target.write_text(json.dumps({"version": sdmetrics.__version__, "rows": rows}))


if __name__ == "__main__":
    main()

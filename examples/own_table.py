"""A table of your own, from a CSV with gaps to a saved model and its report."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import evenhand
from evenhand import Budget, DemographicParity, FairSharesClassifier
from evenhand.datasets import Dataset, read_table
from evenhand.fairness import fairness_report
from evenhand.report import write_report


def write_loans(path: Path) -> None:
    """Stand in for your file: 6,000 applications, some values missing."""
    rng = np.random.default_rng(0)
    n = 6000
    sex = rng.choice(["F", "M"], n)
    frame = pd.DataFrame(
        {
            "income": rng.normal(40 + 2 * (sex == "M"), 12, n).round(1),
            "job": rng.choice(["clerk", "nurse", "smith"], n),
            "sex": sex,
        }
    )
    frame.loc[rng.random(n) < 0.03, "income"] = np.nan
    good = frame["income"].fillna(40) + 5 * (frame["job"] == "smith") + rng.normal(0, 8, n) > 45
    frame["loan"] = np.where(good, "granted", "refused")
    frame.to_csv(path, index=False)


def main() -> None:
    """Train, measure, save, write the report."""
    folder = Path(tempfile.mkdtemp())
    write_loans(folder / "loans.csv")

    table = read_table(folder / "loans.csv")
    data = Dataset.from_frame(table, label="loan", sensitive="sex", positive="granted")
    split = data.split(public=0.3, test=0.25, random_state=0)

    model = FairSharesClassifier(
        Budget(epsilon=3.0, delta=1e-5),
        DemographicParity(margin=0.1),
        n_teachers=60,
        random_state=0,
    )
    model.fit(
        split.private.X,
        split.private.y,
        X_public=split.public.X,
        sensitive_features_public=split.public.groups,
    )

    def codes(labels: object) -> np.ndarray:
        return np.searchsorted(model.classes_, np.asarray(labels, dtype=str))

    measured = fairness_report(
        codes(split.test.y),
        codes(model.predict(split.test.X)),
        split.test.groups,
        classes=tuple(model.classes_),
        positive=int(codes(["granted"])[0]),
    )
    print(model.guarantee_)
    print(measured["error_rate"])
    print(measured["demographic_parity_rest"])

    model.save(folder / "model")
    write_report(model, folder / "report.html", dataset=data, measured=measured)
    again = evenhand.load(folder / "model")
    assert (again.predict(split.test.X) == model.predict(split.test.X)).all()
    print(f"The model and its report are in {folder}.")


if __name__ == "__main__":
    main()

"""Train on synthetic rows, test on real ones: how good and how fair models of them are."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from evenhand import _checks
from evenhand.datasets import Schema
from evenhand.datasets.columns import text_of, to_numbers
from evenhand.fairness import (
    Estimate,
    JointTally,
    demographic_parity,
    encode_groups,
    equalized_odds,
    error_parity,
)
from evenhand.typing import BoolArray, FloatArray, IntArray

MODELS: Final[Mapping[str, Callable[[int], Any]]] = {
    "logistic regression": lambda seed: LogisticRegression(max_iter=500),
    "random forest": lambda seed: RandomForestClassifier(
        n_estimators=100, min_samples_leaf=5, random_state=seed
    ),
    "gradient boosting": lambda seed: HistGradientBoostingClassifier(random_state=seed),
    "neural network": lambda seed: MLPClassifier(
        hidden_layer_sizes=(64,), max_iter=30, early_stopping=True, random_state=seed
    ),
}
"""The models, by name; all of scikit-learn, at fixed settings."""

REFERENCES: Final = ("pairwise", "overall")
_METRICS: Final[Mapping[str, Callable[..., Estimate]]] = {
    "demographic_parity": demographic_parity,
    "equalized_odds": equalized_odds,
    "error_parity": error_parity,
}
_REPEATS: Final = 200


@dataclass(frozen=True, kw_only=True, eq=False)
class ModelUtility:
    """One model, trained on one table and measured on real rows.

    Parameters
    ----------
    model : str
        A name of ``MODELS``.
    trained_on : str
        "synthetic" or "real".
    auroc, accuracy : Estimate
        With bootstrap intervals over the test rows; the AUROC is macro-averaged, each class
        against the rest, with more than two classes.
    gaps : mapping of str to Estimate
        ``demographic_parity``, ``equalized_odds`` and ``error_parity`` (accuracy disparity), each
        with ``_pairwise`` (largest difference of two groups) and ``_overall`` (from everybody).
    """

    model: str
    trained_on: str
    auroc: Estimate
    accuracy: Estimate
    gaps: Mapping[str, Estimate]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; NaN stays NaN."""
        return {
            "model": self.model,
            "trained_on": self.trained_on,
            "auroc": self.auroc.to_dict(),
            "accuracy": self.accuracy.to_dict(),
            **{name: gap.to_dict() for name, gap in self.gaps.items()},
        }


def utility(
    synthetic: pd.DataFrame,
    test: pd.DataFrame,
    *,
    label: str,
    sensitive: Sequence[str],
    train: pd.DataFrame | None = None,
    models: Sequence[str] = tuple(MODELS),
    use_sensitive: bool = True,
    schema: Schema | None = None,
    random_state: int = 0,
    progress: Callable[[str, int, int], None] | None = None,
) -> tuple[ModelUtility, ...]:
    """Train models on synthetic rows, and on real ones beside them, and test both on real rows.

    Parameters
    ----------
    synthetic : DataFrame
        Rows to train on.
    test : DataFrame
        Real rows that no generator saw.
    label, sensitive : str, sequence of str
        Columns.
    train : DataFrame, optional
        Real rows, for the same models trained without a generator.
    models : sequence of str
        Names of ``MODELS``.
    use_sensitive : bool
        Whether the sensitive columns are among the features. With them a model can treat the
        groups alike where the other features mean different things in them; without, it cannot.
    schema : Schema, optional
        Which columns are categorical; else text, booleans and categories are.
    random_state : int
        Seeds the models and the bootstrap.

    Privacy
    -------
    All of it reads real rows without noise: not covered by any guarantee of the generator.
    """
    for name in models:
        _checks.one_of("models", name, MODELS)
    sources = {"synthetic": synthetic} | ({} if train is None else {"real": train})
    away = {label} | (set() if use_sensitive else set(sensitive))
    features = [name for name in test.columns if name not in away]
    known = Schema.of_public(test, max_categories=len(test) + 1) if schema is None else schema
    kinds = {column.name: column.kind for column in known.columns}
    numeric = [n for n in features if kinds.get(n) == "numeric" and n not in sensitive]
    classes = sorted({text_of(value) for value in test[label]})
    truth = _codes(test[label], classes)
    groups = encode_groups(test[list(sensitive)] if len(sensitive) > 1 else test[sensitive[0]])
    out = []
    for at, (source, rows) in enumerate(sources.items()):
        for number, name in enumerate(models):
            if progress:
                progress("models", at * len(models) + number, len(sources) * len(models))
            probabilities = _train(
                rows, test, label, features, numeric, classes, name, random_state
            )
            out.append(
                measure(
                    name, source, truth, probabilities, groups.codes, groups.names, random_state
                )
            )
    return tuple(out)


def _train(
    rows: pd.DataFrame,
    test: pd.DataFrame,
    label: str,
    features: Sequence[str],
    numeric: Sequence[str],
    classes: Sequence[str],
    name: str,
    seed: int,
) -> FloatArray:
    """Return the probability of each class for each test row; 0 for a class that was not learnt."""
    texts = [n for n in features if n not in numeric]
    encoder = ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), list(numeric)),
            ("texts", OneHotEncoder(handle_unknown="ignore", sparse_output=False), texts),
        ]
    )
    model = make_pipeline(encoder, MODELS[name](seed))
    y = rows[label].map(text_of).to_numpy(dtype=object).astype(str)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a fixed number of steps is the point
        model.fit(_plain(rows, features, numeric), y)
    learnt = [str(value) for value in model.classes_]
    found = model.predict_proba(_plain(test, features, numeric))
    probabilities = np.zeros((len(test), len(classes)))
    for column, value in enumerate(learnt):
        if value in classes:
            probabilities[:, classes.index(value)] = found[:, column]
    return probabilities


def _plain(rows: pd.DataFrame, features: Sequence[str], numeric: Sequence[str]) -> pd.DataFrame:
    """Return numbers as floats and the rest as text, "missing" where there is none."""
    return pd.DataFrame(
        {
            name: to_numbers(rows[name])
            if name in numeric
            else rows[name].astype(object).map(text_of, na_action="ignore").fillna("missing")
            for name in features
        }
    )


def measure(
    name: str,
    source: str,
    truth: IntArray,
    probabilities: FloatArray,
    groups: IntArray,
    group_names: Sequence[str],
    seed: int,
) -> ModelUtility:
    """Compare the probabilities that a model gives to classes with the true ones, by group."""
    predicted = probabilities.argmax(axis=1).astype(np.int64)
    tally = JointTally.of(groups, truth, predicted, len(group_names), probabilities.shape[1])
    gaps = {
        f"{key}_{reference}": metric(
            tally.predicted if key == "demographic_parity" else tally, reference=reference
        )
        for key, metric in _METRICS.items()
        for reference in REFERENCES
    }
    rng = np.random.default_rng(seed)
    return ModelUtility(
        model=name,
        trained_on=source,
        auroc=bootstrap(
            _macro(truth, probabilities),
            len(truth),
            rng,
            name="auroc",
            definition="area under the ROC curve; in [0, 1], best 1, probability .5",
        ),
        accuracy=bootstrap(
            lambda weights: float(np.average(predicted == truth, weights=weights)),
            len(truth),
            rng,
            name="accuracy",
            definition="share of right predictions; in [0, 1], best 1",
        ),
        gaps=gaps,
    )


def bootstrap(
    statistic: Callable[[FloatArray], float],
    n: int,
    rng: np.random.Generator,
    *,
    name: str,
    definition: str,
    level: float = 0.95,
) -> Estimate:
    """Return a statistic of weighted rows with its percentile interval over 200 draws of them."""
    value = statistic(np.ones(n))
    even = np.full(n, 1.0 / n)
    drawn = [statistic(rng.multinomial(n, even).astype(np.float64)) for _ in range(_REPEATS)]
    if np.isnan(value):  # one class only: no number, and no bound either
        return Estimate(
            name=name, definition=definition, value=value, low=0.0, high=1.0, level=level, n=n
        )
    low, high = np.nanquantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(
        name=name,
        definition=definition,
        value=value,
        low=float(np.clip(min(low, value), 0, 1)),
        high=float(np.clip(max(high, value), 0, 1)),
        level=level,
        n=n,
    )


def auroc(truth: BoolArray, scores: FloatArray) -> Callable[[FloatArray], float]:
    """Return the area under the ROC curve as a function of the weights of the rows.

    The probability that a row of the class scores above one that is not of it, ties counting half.
    The scores are sorted once, for the many weights of a bootstrap. NaN without rows of both kinds.

    Examples
    --------
    >>> area = auroc(np.array([False, True, True]), np.array([0.2, 0.1, 0.9]))
    >>> area(np.ones(3)), area(np.array([1.0, 0.0, 1.0]))
    (0.5, 1.0)
    """
    place = np.unique(scores, return_inverse=True)[1].reshape(-1)
    n = int(place.max()) + 1

    def area(weights: FloatArray) -> float:
        positive = np.bincount(place, weights * truth, n)
        negative = np.bincount(place, weights * ~truth, n)
        pairs = float(positive.sum() * negative.sum())
        below = np.cumsum(negative) - 0.5 * negative
        return float(positive @ below) / pairs if pairs > 0 else float("nan")

    return area


def _macro(truth: IntArray, probabilities: FloatArray) -> Callable[[FloatArray], float]:
    """AUROC of the second of two classes; of more, the mean of each against the rest."""
    which = [1] if probabilities.shape[1] == 2 else list(range(probabilities.shape[1]))
    areas = [auroc(truth == k, probabilities[:, k]) for k in which]
    return lambda weights: float(np.nanmean([area(weights) for area in areas]))


def _codes(column: pd.Series[Any], classes: Sequence[str]) -> IntArray:
    place = {name: code for code, name in enumerate(classes)}
    return np.array([place[text_of(value)] for value in column], dtype=np.int64)

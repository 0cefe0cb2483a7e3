"""Models of tables: trained on synthetic rows, tested on real ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from evenhand import _checks
from evenhand._numerals import text_of
from evenhand.datasets import Schema
from evenhand.datasets.columns import Column
from evenhand.fairness.groups import encode_groups
from evenhand.fairness.report import unit_codes
from evenhand.generators.utility import ModelUtility, measure
from evenhand.typing import ArrayLike, FloatArray, IntArray

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
    units: ArrayLike | None = None,
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
    units : array-like of ids, shape (n,), optional
        Whose record a row of ``test`` is: intervals then take units as independent, not rows; see
        ``fairness_report``.

    Privacy
    -------
    All of it reads real rows without noise: not covered by any guarantee of the generator.
    """
    for name in models:
        _checks.one_of("models", name, MODELS)
    sources = {"synthetic": synthetic} | ({} if train is None else {"real": train})
    known = Schema.of_public(test, max_categories=len(test) + 1) if schema is None else schema
    classes = sorted({text_of(value) for value in test[label]})
    truth = _codes(test[label], classes)
    groups = encode_groups(test[list(sensitive)] if len(sensitive) > 1 else test[sensitive[0]])
    whose = None if units is None else unit_codes(units, test=test)
    out = []
    for at, (source, rows) in enumerate(sources.items()):
        for number, name in enumerate(models):
            if progress:
                progress("models", at * len(models) + number, len(sources) * len(models))
            judge = Judge.of(
                rows[list(test.columns)],
                label=label,
                sensitive=sensitive,
                model=name,
                use_sensitive=use_sensitive,
                schema=known,
                random_state=random_state,
            )
            probabilities = judge.probabilities(test, classes)
            out.append(
                measure(
                    *(name, source, truth, probabilities, groups.codes, groups.names),
                    seed=random_state,
                    units=whose,
                )
            )
    return tuple(out)


@dataclass(frozen=True, kw_only=True)
class Features:
    """Columns of a table as numbers: scaled, and one number for each category."""

    names: tuple[str, ...]
    numeric: tuple[str, ...]
    """``names`` and ``numeric``: columns that are read, and those of them that are numbers."""

    @classmethod
    def of(
        cls, rows: pd.DataFrame, schema: Schema, *, categorical: Sequence[str], away: Set[str]
    ) -> Features:
        """Read all columns but those ``away``; ``categorical`` are no numbers, come what may."""
        names = tuple(name for name in rows.columns if name not in away)
        kinds = {column.name: column.kind for column in schema.columns}
        numeric = (n for n in names if kinds.get(n) == "numeric" and n not in categorical)
        return cls(names=names, numeric=tuple(numeric))

    @property
    def encoder(self) -> ColumnTransformer:
        """What makes numbers of the columns, to be fitted to ``plain`` rows."""
        texts = [name for name in self.names if name not in self.numeric]
        return ColumnTransformer(
            [
                (
                    "numbers",
                    make_pipeline(SimpleImputer(), StandardScaler()),
                    list(self.numeric),
                ),
                ("texts", OneHotEncoder(handle_unknown="ignore", sparse_output=False), texts),
            ]
        )

    def plain(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return numbers as floats and the rest as text, "missing" where there is none."""
        return pd.DataFrame(
            {
                name: Column(rows[name]).numbers
                if name in self.numeric
                else rows[name].astype(object).map(text_of, na_action="ignore").fillna("missing")
                for name in self.names
            }
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Judge:
    """A model that was trained on rows of a table, to be tested on others."""

    model: Any
    """A fitted scikit-learn pipeline; its classes are texts."""
    features: Features
    """Columns that it reads."""

    @classmethod
    def of(
        cls,
        rows: pd.DataFrame,
        *,
        label: str,
        sensitive: Sequence[str],
        model: str,
        use_sensitive: bool,
        schema: Schema,
        random_state: int,
    ) -> Judge:
        """Train one of ``MODELS`` on rows; arguments as for ``utility``.

        Of rows of one class it is the model that says this class.
        """
        away = {label} | (set() if use_sensitive else set(sensitive))
        features = Features.of(rows, schema, categorical=sensitive, away=away)
        y = rows[label].map(text_of).to_numpy(dtype=object).astype(str)
        _, counts = np.unique(y, return_counts=True)
        known = MODELS[model](random_state) if len(counts) > 1 else DummyClassifier()
        if "early_stopping" in known.get_params() and not _can_be_split(counts):
            known.set_params(early_stopping=False)
        fitted = make_pipeline(features.encoder, known)
        with warnings.catch_warnings():
            # A fixed number of steps is the point.
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted.fit(features.plain(rows), y)
        return cls(model=fitted, features=features)

    def probabilities(self, rows: pd.DataFrame, classes: Sequence[str]) -> FloatArray:
        """Return the probability of each class for each row; 0 for a class that was not learnt."""
        learnt = [str(value) for value in self.model.classes_]
        found = self.model.predict_proba(self.features.plain(rows))
        probabilities = np.zeros((len(rows), len(classes)))
        for column, value in enumerate(learnt):
            if value in classes:
                probabilities[:, classes.index(value)] = found[:, column]
        return probabilities


def _can_be_split(counts: IntArray) -> bool:
    """Whether a tenth of the rows, by which a model stops early, can have each of the classes."""
    return bool(counts.min() >= 2 and np.ceil(0.1 * counts.sum()) >= len(counts))


def _codes(column: pd.Series[Any], classes: Sequence[str]) -> IntArray:
    place = {name: code for code, name in enumerate(classes)}
    return np.array([place[text_of(value)] for value in column], dtype=np.int64)

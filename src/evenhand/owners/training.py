"""A model for an owner that has none: it stays with the owner, so it needs no privacy."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from evenhand import _checks
from evenhand._numerals import natural_order, text_of
from evenhand.datasets.columns import Column, TypedTable
from evenhand.datasets.files import numbers_if_all_are
from evenhand.learners.skops_files import dump_skops
from evenhand.teachers.partition import Neighbors, Partition, by_position, by_unit
from evenhand.typing import Array, ArrayLike, IntArray

ABOUT: Final = "teachers.json"
FEWEST_RECORDS: Final = 10
"""Records that a teacher has on average, at the least."""


@dataclass(frozen=True, kw_only=True)
class Trained:
    """What a folder of teachers says of itself: what their votes may claim."""

    kind: str
    n_teachers: int
    classes: tuple[str, ...]
    unit: str
    neighbors: Neighbors
    """``unit`` and ``neighbors``: what one of the teachers alone has learned from."""
    columns: tuple[str, ...]
    numeric: tuple[tuple[str, ...], ...]
    """Columns that each teacher reads as numbers: as its own part of the records is."""

    @classmethod
    def read(cls, folder: Path) -> Trained:
        """Read what ``train_teachers`` wrote."""
        file = folder / ABOUT
        if not file.is_file():
            raise FileNotFoundError(
                f"{folder} has no {ABOUT}: it is no folder that evenhand owner train wrote. Name "
                f"one, or a file of skops."
            )
        try:
            values = json.loads(file.read_text(encoding="utf-8"))
            lists = {name: tuple(values[name]) for name in ("classes", "columns")}
            numeric = tuple(tuple(names) for names in values["numeric"])
            return cls(**(values | lists | {"numeric": numeric}))
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(f"{file} is damaged: {type(error).__name__}.") from None

    def files(self, folder: Path) -> list[Path]:
        """Return the files of the teachers."""
        return [folder / f"teacher-{i + 1:03d}.skops" for i in range(self.n_teachers)]


def _trees() -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(n_estimators=100, min_samples_leaf=3)


def _logistic() -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=1.0, max_iter=1000)


def _network() -> Any:
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier((32,), alpha=1e-2, max_iter=500, early_stopping=False)


KINDS: Final[Mapping[str, Callable[[], Any]]] = {
    "logistic": _logistic,
    "trees": _trees,
    "network": _network,
}


def train_teachers(
    X: pd.DataFrame,
    y: ArrayLike,
    *,
    kind: str = "logistic",
    n_teachers: int = 1,
    units: ArrayLike | None = None,
    unit: str = "person",
    seed: int | None = None,
) -> tuple[list[Any], Trained]:
    """Train the teachers of one owner, each on a part of its records that no other sees.

    Parameters
    ----------
    X : DataFrame, shape (n, n_columns)
        Numbers and texts; missing values are filled in. Texts that are all numbers are numbers.
    y : array-like, shape (n,)
    kind : {"logistic", "trees", "network"}
    n_teachers : int
        One is the best model that the owner can make. Several let one record move one vote of many.
    units : array-like, optional
        Whose record each is. All records of one go to the same teacher.
    unit : str
        What to call such a one in a claim.
    seed : int, optional

    Returns
    -------
    list of Pipeline, Trained

    Privacy
    -------
    Cost : none; nothing is released. Scales, fillings and categories of a teacher are learned from
        its own part, and so is whether a column holds numbers: a record reaches one teacher alone.
    """
    _checks.one_of("kind", kind, KINDS)
    most = max(1, len(X) // FEWEST_RECORDS)
    if not 1 <= n_teachers <= most:
        raise ValueError(
            f"{n_teachers} teachers cannot be trained on so few records: a teacher needs "
            f"{FEWEST_RECORDS} on average. Use fewer; one is the best model."
        )
    labels = np.array([text_of(value) for value in np.asarray(y).tolist()], dtype=object)
    classes = natural_order(labels.tolist())
    if len(classes) < 2:
        raise ValueError("the label has one value only: there is nothing to learn.")
    if len(classes) > _checks.MOST_CLASSES:
        raise ValueError(
            f"the label has more than {_checks.MOST_CLASSES} different values, and the names of "
            f"all would stand in a file of votes. Make classes of an amount first."
        )
    rng = np.random.default_rng(seed)
    deal: Partition = (
        by_position(len(X), n_teachers, rng)
        if units is None
        else by_unit(units, n_teachers, rng.bytes(32), unit=unit)
    )
    trained, numeric = [], []
    for part in deal.all_rows:
        if not len(part):
            raise ValueError(
                f"{n_teachers} teachers are too many for the units: one of them has no record. "
                f"Use fewer."
            )
        own = TypedTable.of(X.iloc[part].apply(_numbers), "private table")
        numeric.append(tuple(name for name in own if own[name].kind == "numeric"))
        rows = readable(own.frame, numeric[-1], "private table", part)
        trained.append(_fit(rows, labels[part], numeric[-1], kind, rng))
    about = Trained(
        kind=kind,
        n_teachers=n_teachers,
        classes=classes,
        unit=deal.unit,
        neighbors=deal.neighbors,
        columns=tuple(map(str, X.columns)),
        numeric=tuple(numeric),
    )
    return trained, about


def write_teachers(models: list[Any], about: Trained, folder: Path) -> None:
    """Write the teachers as files of skops, and what is known of them."""
    for model, file in zip(models, about.files(folder), strict=True):
        dump_skops(model, file)
    text = json.dumps(asdict(about), indent=2, ensure_ascii=False) + "\n"
    (folder / ABOUT).write_text(text, encoding="utf-8")


def readable(
    rows: pd.DataFrame,
    numeric: Sequence[str],
    where: str = "table",
    places: IntArray | None = None,
) -> pd.DataFrame:
    """Return the columns as numbers and as texts, as a teacher reads them.

    ``places`` are the rows' positions in the table ``where``, if they are a part of it.
    """
    numbers = TypedTable.of(rows, where)
    for name in numeric:
        if name in numbers:
            numbers[name].refuse_infinite(places)
    made = {
        str(name): numbers[str(name)].numbers
        if str(name) in numeric
        else np.array(
            ["missing" if gone else text_of(value) for value, gone in _cells(rows[name])],
            dtype=object,
        )
        for name in rows.columns
    }
    return pd.DataFrame(made, index=rows.index)


def _numbers(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return texts as numbers if all of this part are: those of other parts made them texts."""
    return numbers_if_all_are(column) if Column(column).inferred == "string" else column


def _cells(column: pd.Series[Any]) -> list[tuple[Any, bool]]:
    return list(zip(column.tolist(), column.isna().tolist(), strict=True))


def _fit(
    rows: pd.DataFrame, labels: Array, numeric: Sequence[str], kind: str, rng: np.random.Generator
) -> Any:
    """Return a pipeline that fills in, scales and learns; of its own part alone."""
    from sklearn.compose import ColumnTransformer
    from sklearn.dummy import DummyClassifier
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers = list(numeric)
    texts = [name for name in rows.columns if name not in numeric]
    parts = ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numbers),
            ("texts", OneHotEncoder(handle_unknown="ignore", sparse_output=False), texts),
        ]
    )
    if len(set(labels.tolist())) < 2:
        model: Any = DummyClassifier(strategy="most_frequent")
    else:
        model = KINDS[kind]()
    if "random_state" in model.get_params():
        model.set_params(random_state=int(rng.integers(2**31)))
    return make_pipeline(parts, model).fit(rows, labels.astype(str))

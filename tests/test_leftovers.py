"""The pickle of whatever is registered, fitted, holds nothing of the private rows."""

from __future__ import annotations

import inspect
import io
import pickle
import struct
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pandas as pd
import pytest

from evenhand import Budget, DemographicParity
from evenhand.baselines.intervention_points import POINTS
from evenhand.generators.images.public_generator import PublicPictures
from evenhand.generators.registry import generators
from evenhand.generators.synthesizer import arguments_of
from evenhand.methods import METHODS as CLASSIFIERS
from evenhand.privacy import FloatNoise, GNMax
from evenhand.teachers import by_unit
from evenhand.teachers.partition import Partition
from evenhand.testing.generators import pictures

CANARY_NUMBER: Final = 654321.0625
"""Plant it in a numeric column of private rows; exact as float32 too."""

CANARY_TEXT: Final = "canary-5f1c"
"""Plant it in a text column of private rows."""


def leftovers(made: Any, *, n_rows: int) -> tuple[str, ...]:
    """Return what a pickle of ``made`` holds of the private rows; empty is right.

    Parameters
    ----------
    made : object
        A fitted estimator or generator.
    n_rows : int
        Number of private rows; a prime that no setting shares. Whatever has that length has a
        value for every row: labels, groups, a partition, encoded rows, their order.

    Returns
    -------
    tuple of str
        Words for each kind of thing that was found, besides the canaries.
    """
    file = io.BytesIO()
    finder = _Finder(file, n_rows)
    finder.dump(made)
    found, pickled = finder.found, file.getvalue()
    forms = {
        "the canary text": CANARY_TEXT.encode(),
        "the canary number as text": str(CANARY_NUMBER).encode(),
        **{
            f"the canary number ({form})": struct.pack(form, CANARY_NUMBER)
            for form in ("<d", ">d", "<f")
        },
    }
    found += [words for words, form in forms.items() if form in pickled]
    return tuple(dict.fromkeys(found))


class _Finder(pickle.Pickler):
    """Looks at each object on its way into a pickle."""

    def __init__(self, file: io.BytesIO, n_rows: int) -> None:
        super().__init__(file)
        self.found: list[str] = []
        self._n_rows = n_rows

    def persistent_id(self, obj: Any) -> None:
        """Note what is private; nothing is left out of the pickle."""
        kind = type(obj).__name__
        if isinstance(obj, Partition):
            self.found.append("a partition and its key" if obj.key else "a partition")
        shape = getattr(obj, "shape", None)
        if isinstance(obj, np.ndarray | pd.DataFrame | pd.Series) or kind == "Tensor":
            if self._n_rows in tuple(shape or ()):
                self.found.append(f"{kind} of shape {tuple(shape or ())}")
        elif isinstance(obj, list | tuple | dict | set | bytes) and len(obj) == self._n_rows:
            self.found.append(f"{kind} of length {self._n_rows}")


N = 607  # a prime that is no setting below
BUDGET = Budget(epsilon=50.0, delta=1e-5)
pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # small fits warn of noise; this is about what stays
]


def rows(n: int, seed: int, *, planted: bool) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    sex = rng.choice(["a", "b"], n)
    income = rng.normal(size=n) + (sex == "a") * 0.5
    frame = pd.DataFrame(
        {
            "income": income,
            "job": rng.choice(["nurse", "clerk", "cook"], n),
            "sex": sex,
            "rich": np.where(income + rng.normal(size=n) / 2 > 0.3, "yes", "no"),
        }
    )
    if planted:
        frame.loc[0, "income"] = CANARY_NUMBER
        frame.loc[0, "job"] = CANARY_TEXT
    return frame


PRIVATE, PUBLIC = rows(N, 0, planted=True), rows(210, 1, planted=False)
OPEN = rows(N, 0, planted=False)  # where features and labels are public, and groups alone private
FEATURES = ["income", "job"]
SETTINGS: dict[str, Any] = {
    "budget": BUDGET,
    "fairness": None,
    "n_teachers": 20,
    "n_steps": 12,
    "batch_size": 200,
    "max_iter": 3,
    "group_shares": "released",
    "random_state": 0,
}


def classifier(word: str, **more: Any) -> Any:
    """Return the classifier that a word of ``--method`` stands for, set up small."""
    spec = CLASSIFIERS[word]
    known = set(spec.estimator().get_params())
    given = {name: value for name, value in SETTINGS.items() if name in known}
    if "fairness" in given:
        margin = 0.2 if spec.margin != "weight" else 0.0
        given["fairness"] = DemographicParity(margin=margin, reference=spec.reference or "rest")
    return spec.estimator(**{**given, **spec.fixed, **more})


def fitted(model: Any, **more: Any) -> Any:
    takes = type(model).TAKES
    given = {
        "sensitive_features": PRIVATE["sex"],
        "X_public": PUBLIC[FEATURES],
        "sensitive_features_public": PUBLIC["sex"],
        "open": False,
        **more,
    }
    X = (OPEN if given.pop("open") else PRIVATE)[FEATURES]
    return model.fit(X, PRIVATE["rich"], **{k: v for k, v in given.items() if k in takes})


@pytest.mark.parametrize("word", CLASSIFIERS)
def test_a_fitted_classifier_keeps_nothing_of_the_private_rows(word: str) -> None:
    made = fitted(classifier(word), open=CLASSIFIERS[word].protects == "attribute")
    if word.startswith("sf"):  # asks about rows whose features are public; its answers are released
        del made.answers_
        made._fitted = replace(made._fitted, answers=None)
    assert leftovers(made, n_rows=N) == ()


@pytest.mark.parametrize("at", POINTS)
def test_nor_does_one_at_any_point_of_intervention(at: str) -> None:
    labelled = {"X_calibration": PUBLIC[FEATURES], "y_calibration": PUBLIC["rich"]}
    made = fitted(classifier("intervention", at=at), **labelled)
    assert leftovers(made, n_rows=N) == ()


def test_nor_does_one_that_sets_rows_aside_or_holds_units_together() -> None:
    ids = np.array([f"{CANARY_TEXT} {i // 2}" for i in range(N)])
    made = fitted(classifier("fairpate", mechanism=GNMax(sigma=9.0)), unit_ids=ids)
    assert leftovers(made, n_rows=N) == ()
    aside = fitted(classifier("fairpate", public_fraction=0.4), X_public=None)
    assert not {words for words in leftovers(aside, n_rows=N) if "canary" not in words}


# Without the references, whose claim is that nothing is promised.
TABLES, IMAGES = (generators(payload, offered=True) for payload in ("tables", "images"))

TABLE_SETTINGS: dict[str, Any] = {
    "n_teachers": 20,
    "n_rounds": 3,
    "n_steps": 20,
    "n_batches": 3,
    "n_frequencies": 40,
    "n_parts": 10,
    "noise": FloatNoise(),
    "random_state": 0,
}


def of_settings(kind: Any, settings: dict[str, Any]) -> Any:
    known = arguments_of(kind)
    return kind(**{name: value for name, value in settings.items() if name in known})


@pytest.mark.parametrize("unit", [None, "id"])
@pytest.mark.parametrize("name", sorted(TABLES))
def test_a_fitted_generator_of_tables_keeps_nothing_of_the_private_rows(
    name: str, unit: str | None
) -> None:
    frame = rows(N, 0, planted=True)
    frame.insert(0, "id", [f"{CANARY_TEXT}-{i // 2}" for i in range(N)])
    made = of_settings(TABLES[name], TABLE_SETTINGS).fit(
        frame if unit else frame.drop(columns="id"),
        label="rich",
        sensitive="sex",
        budget=BUDGET,
        unit=unit,
        per_unit=2 if unit else 1,
    )
    assert leftovers(made, n_rows=N) == ()


PICTURE_SETTINGS: dict[str, Any] = {
    "n_teachers": 6,
    "n_steps": 2,
    "n_batches": 2,
    "n_rows": 8,
    "critic_rows": 8,
    "critic_steps": 1,
    "batch_size": 4,
    "hidden": (8,),
    "filters": (4,),
    "width": 8,
    "n_frequencies": 20,
    "n_samples": 10,
    "blocks": (0,),
    "k": 6,
    "public": PublicPictures(*pictures(40, seed=1)[:2], made_of="bars"),
    "n_candidates": 8,
    "n_kept": 4,
    "noise": FloatNoise(),
    "random_state": 0,
}


@pytest.mark.parametrize("name", sorted(IMAGES))
def test_a_fitted_generator_of_pictures_keeps_nothing_of_the_private_ones(name: str) -> None:
    images, y, side = pictures(N)
    made = of_settings(IMAGES[name], PICTURE_SETTINGS)
    ids = [f"{CANARY_TEXT}-{i // 2}" for i in range(N)]
    takes = inspect.signature(made.fit).parameters
    units = {"unit_ids": ids} if "unit_ids" in takes else {}
    made.fit(images, y, sensitive_features=side, budget=BUDGET, **units)
    assert leftovers(made, n_rows=N) == ()


def test_what_is_left_over_is_found() -> None:
    for kept in (
        by_unit(np.arange(N), 5),
        np.zeros((3, N), dtype=np.int8),
        list(range(N)),
        rows(N, 0, planted=False),
        {"a": [CANARY_NUMBER]},
        np.array([1.0, CANARY_NUMBER], dtype=np.float32),
        [f"said {CANARY_NUMBER}"],
        pd.Series([CANARY_TEXT]),
    ):
        assert leftovers({"student": kept}, n_rows=N)
    assert leftovers({"student": np.arange(N - 1.0), "groups": ["a", "b"]}, n_rows=N) == ()

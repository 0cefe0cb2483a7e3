"""A model of features says in its claim which public extractor made them, wherever it is read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evenhand import EqualizedOdds, FairSharesClassifier, PATEClassifier
from evenhand.baselines import NonPrivateClassifier
from evenhand.datasets.features.extraction import MADE_BY as ATTRIBUTE
from evenhand.datasets.features.extraction import Features
from evenhand.datasets.features.extractor import ExtractorRecord
from evenhand.fairness import DemographicParity
from evenhand.methods import METHODS, load
from evenhand.privacy import Budget, SeededNoise
from evenhand.report import write_report

EXTRACTOR = ExtractorRecord(
    name="squares", version="7", dimension=3, trained_on="dice", licence="CC0", digest="abc"
)
MADE_BY = (
    "the feature extractor squares 7 (3 numbers for each picture by itself; digest abc; trained on "
    "dice; licence: CC0)"
)
SETTINGS = {
    "epsilon": 50.0,
    "delta": 1e-4,
    "n_teachers": 8,
    "at": "T_in",
    "hidden": (),
    "fairness": "demographic-parity",
    "margin": 0.5,
    "fairness_weight": 0.5,
}


def rows(n: int, seed: int) -> tuple[Features, Any, Any]:
    """Return features, labels and groups."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, 3)).astype(np.float32)
    groups = rng.choice(["a", "b"], n)
    y = (values[:, 0] + 0.3 * rng.normal(size=n) > 0).astype(np.int64)
    return Features(values=values, extractor=EXTRACTOR), y, groups


def fitted(name: str) -> Any:
    spec = METHODS[name]
    margin = 0.0 if name == "dp-fermi" else 0.5  # it keeps none
    held = DemographicParity(margin=margin, reference=spec.reference or "rest")
    model = spec.make(SETTINGS, noise=SeededNoise(0), fairness=held, random_state=0)
    X, y, groups = rows(400, 0)
    X_public, _, groups_public = rows(120, 1)
    given = {
        "X_public": X_public,
        "sensitive_features_public": groups_public,
        "sensitive_features": groups,
    }
    return model.fit(X, y, **{key: value for key, value in given.items() if key in model.TAKES})


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.filterwarnings("ignore")
def test_every_method_names_the_extractor_in_its_claim(name: str) -> None:
    model = fitted(name)
    assert MADE_BY in model.guarantee_.public
    if model.guarantee_.bounded:
        assert MADE_BY in str(model.guarantee_)
    assert MADE_BY in model.fitted_.to_dict()["public"]
    new = rows(5, 2)[0]
    assert len(model.predict(new)) == 5 if not model.needs_group_at_prediction_ else True
    assert np.array_equal(model.encoder_.transform(np.asarray(new)), model._encode(new))


@pytest.mark.filterwarnings("ignore")
def test_the_report_and_the_folder_say_it_too(tmp_path: Path) -> None:
    model = fitted("pate")
    page = write_report(model, tmp_path / "report.html").read_text(encoding="utf-8")
    assert MADE_BY in page
    folder = model.save(tmp_path / "model")
    assert MADE_BY in json.loads((folder / "claim.json").read_text())["guarantee"]["public"]
    again, new = load(folder), rows(5, 2)[0]
    assert np.array_equal(again.predict(new), model.predict(new))
    assert again.extractor_ == again.fitted_.extractor == EXTRACTOR
    other = Features(values=new.values, extractor=replace(EXTRACTOR, name="circles"))
    for asked in (model, again):
        with pytest.raises(ValueError, match=r"made by .* circles 7 .*, and the mod"):
            asked.predict(other)
        assert len(asked.predict(np.asarray(other))) == 5


@pytest.mark.parametrize("bare", ["X", "X_public"])
def test_private_and_public_rows_come_from_one_extractor(bare: str) -> None:
    X, y, _ = rows(200, 0)
    given = {"X": X, "X_public": rows(60, 1)[0]}
    given[bare] = given[bare].values
    model = PATEClassifier(Budget(epsilon=5.0, delta=1e-4), n_teachers=5)
    with pytest.raises(ValueError, match=r"squares 7 .*no extractor|no extractor.*squares 7"):
        model.fit(given["X"], y, X_public=given["X_public"])


def test_rows_that_no_extractor_made_name_none() -> None:
    X, y, _ = rows(200, 0)
    model = NonPrivateClassifier(public_fraction=0.2, random_state=0).fit(X.values, y)
    assert model.guarantee_.public == ()
    with pytest.raises(ValueError, match="fitted on other features"):
        model.predict(X)
    table = pd.DataFrame(X.values, columns=list("abc"))
    assert not NonPrivateClassifier(public_fraction=0.2).fit(table, y).guarantee_.public


def test_a_frame_of_features_keeps_their_extractor(tmp_path: Path) -> None:
    X, y, _ = rows(300, 0)
    table = X.frame().assign(age=np.arange(300) % 7)
    assert table.iloc[:5].attrs[ATTRIBUTE] == EXTRACTOR
    model = PATEClassifier(Budget(epsilon=50.0, delta=1e-4), n_teachers=5, public_fraction=0.3)
    model.fit(table, y)
    assert MADE_BY in model.guarantee_.public
    with pytest.raises(ValueError, match=r"squares 7 .*no extractor"):
        model.fit(table, y, X_public=pd.DataFrame(table.to_numpy(), columns=table.columns))
    other = table.copy()
    other.attrs[ATTRIBUTE] = replace(EXTRACTOR, digest="abd")
    with pytest.raises(ValueError, match=r"digest abd.*those of .*digest abc"):
        model.predict(other)
    again = load(model.save(tmp_path / "model"))
    assert np.array_equal(again.predict(table), model.predict(table))


def test_calibration_rows_come_from_the_same_extractor_too() -> None:
    X, y, _ = rows(400, 0)
    X_public, y_public, groups_public = rows(120, 1)
    model = FairSharesClassifier(
        Budget(epsilon=50.0, delta=1e-4), fairness=EqualizedOdds(margin=0.5), n_teachers=8
    )
    with pytest.raises(ValueError, match=r"squares 7.*X_calibration by the feature extractor cir"):
        model.fit(
            X,
            y,
            X_public=X_public,
            sensitive_features_public=groups_public,
            X_calibration=Features(
                values=X_public.values, extractor=replace(EXTRACTOR, name="circles")
            ),
            y_calibration=y_public,
            sensitive_features_calibration=groups_public,
        )


@pytest.mark.parametrize("name", ["non-private", "pf-ld"])
def test_pictures_are_refused_where_features_are_read(name: str) -> None:
    _, y, groups = rows(40, 0)
    spec = METHODS[name]
    held = DemographicParity(margin=0.5, reference=spec.reference or "rest")
    model = spec.make(SETTINGS, noise=SeededNoise(0), fairness=held)
    pictures = np.zeros((40, 3, 6, 6), dtype=np.uint8)
    given = {"sensitive_features": groups, "X_public": pictures}
    with pytest.raises(ValueError, match=r"X holds pictures, and .*Classifier reads rows.*extract"):
        model.fit(pictures, y, **{key: value for key, value in given.items() if key in model.TAKES})

"""A method of one's own: its module, this test, a line of ``evenhand.methods``, a row of docs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import evenhand
from evenhand import methods
from evenhand.cli.app import app
from evenhand.frontier.grid import Grid
from evenhand.frontier.store import RunStore
from evenhand.frontier.sweep import sweep
from evenhand.privacy import FloatNoise
from evenhand.testing.attack import attack_noise
from evenhand.testing.audit import audit_sensitivity
from evenhand.testing.cases import cases

from .coarse_pate import CoarsePATEClassifier


@pytest.fixture(autouse=True)
def line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add its line to the registry."""
    monkeypatch.setitem(methods.HOMES, "coarse-pate", CoarsePATEClassifier.__module__)  # type: ignore[arg-type]


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    n = 1500
    income = rng.normal(size=n)
    table = pd.DataFrame(
        {
            "income": income,
            "sex": rng.choice(["f", "m"], n),
            "loan": np.where(income + rng.normal(size=n) / 2 > 0, "yes", "no"),
        }
    )
    for name, part in (
        ("private", table[:900]),
        ("public", table[900:1200]),
        ("test", table[1200:]),
    ):
        part.to_csv(f"{name}.csv", index=False)


def test_its_record_makes_it_and_says_what_fit_takes() -> None:
    model = methods.METHODS["coarse-pate"].make({"epsilon": 2.0, "delta": 1e-5})
    assert type(model) is CoarsePATEClassifier
    assert model.n_teachers == 12
    with pytest.raises(TypeError, match="CoarsePATEClassifier does not take sensitive_features="):
        model.fit(np.eye(4), [0, 1, 0, 1], sensitive_features=["a", "b", "a", "b"])


def test_the_audit_has_a_case_of_it() -> None:
    case = cases()["coarse-pate"]
    found = [one for one in audit_sensitivity(case) if not one.skipped]
    assert len(found) >= 3
    assert [(one.neighbor, one.problems) for one in found if one.refuted] == []
    assert not attack_noise(case, runs=200, noise=FloatNoise()).refuted


def test_it_is_trained_saved_and_read_by_the_commands(tables: None) -> None:
    words = "train private.csv --public public.csv --label loan --drop sex --epsilon 8 --out model"
    told = CliRunner().invoke(app, [*words.split(), "--method", "coarse-pate"])
    assert told.exit_code == 0, told.output
    assert type(evenhand.load("model")) is CoarsePATEClassifier


def test_a_frontier_is_swept(tables: None) -> None:
    Path("grid.toml").write_text(
        '[data]\nprivate = "private.csv"\npublic = "public.csv"\ntest = "test.csv"\n'
        'label = "loan"\nsensitive = "sex"\nkind = "synthetic stand-in"\n'
        '[[runs]]\nmethod = "coarse-pate"\nepsilon = [4, 8]\n'
    )
    with RunStore("runs.db") as store:
        sweep(Grid.from_toml("grid.toml"), store)
        runs = store.runs()
    assert {(run.setting.method, run.epsilon) for run in runs} == {
        ("coarse-pate", 4.0),
        ("coarse-pate", 8.0),
    }

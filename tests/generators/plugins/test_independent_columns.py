"""A generator of tables of one's own keeps the contract, and nothing else had to be touched."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evenhand.cli import app
from evenhand.estimators import TypesNotTrusted
from evenhand.generators import load
from evenhand.generators.registry import REGISTERED, generators, names_of, register
from evenhand.generators.synthesizer import arguments_of
from evenhand.generators.tables.synthesizer import TableSynthesizer
from evenhand.privacy import Budget, SeededNoise
from evenhand.testing.generators import ROLES, SynthesizerContract, table

from .independent_columns import COUNTS, IndependentColumns

KEY = (IndependentColumns.payload, IndependentColumns.method)
del REGISTERED[KEY]


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register it for these tests alone."""
    monkeypatch.setitem(REGISTERED, KEY, IndependentColumns)
    register(IndependentColumns)  # twice the same is no error


class TestIndependentColumns(SynthesizerContract):
    def new(self) -> TableSynthesizer:
        return IndependentColumns(noise=SeededNoise(0), random_state=0)

    def test_columns_follow_label_and_group(self) -> None:
        rows = self.fitted().sample(20_000, random_state=1)
        # Scores are .7 and .2; noise and bins of a fit move the difference by about .02.
        assert rows.groupby("old")["score"].mean().diff().iloc[-1] == pytest.approx(0.5, abs=0.15)

    def test_the_registry_knows_what_it_is_and_what_it_takes(self) -> None:
        assert "independent-columns" in names_of("tables", offered=True)
        assert generators("tables")["independent-columns"] is IndependentColumns
        assert set(arguments_of(IndependentColumns)) == {
            *("neighbors", "n_bins", "noise", "random_state")
        }
        assert COUNTS in {entry.purpose for entry in self.fitted().ledger_.entries}


def test_a_name_that_is_taken_is_refused() -> None:
    with pytest.raises(ValueError, match="named 'marginal' already"):
        register(type("Mine", (IndependentColumns,), {"method": "marginal"}))


def synthesize(method: str, folder: Path, exit_code: int = 0) -> str:
    private = folder / "private.csv"
    table(1500).to_csv(private, index=False)
    words = ["synthesize", str(private), "--label", "rich", "--sensitive", "sex", "--epsilon", "8"]
    more = ["--out", str(folder / "made.csv"), "--save", str(folder / "made"), "--rows", "100"]
    result = CliRunner().invoke(app, [*words, *more, "--method", method])
    assert result.exit_code == exit_code, result.output
    return result.output


def test_the_command_line_takes_it_by_its_class(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(REGISTERED, KEY)  # its module may have left that out
    synthesize(f"{IndependentColumns.__module__}:IndependentColumns", tmp_path)
    assert isinstance(load(tmp_path / "made"), IndependentColumns)
    claim = json.loads((tmp_path / "made.claim.json").read_text(encoding="utf-8"))
    assert COUNTS in json.dumps(claim)


@pytest.mark.filterwarnings("ignore:the predicted signal-to-noise")
def test_a_folder_names_its_class_and_only_the_user_has_it_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = IndependentColumns(noise=SeededNoise(0), random_state=0)
    folder = made.fit(table(1500), **ROLES, budget=Budget(epsilon=8.0, delta=1e-6)).save(
        tmp_path / "made"
    )
    monkeypatch.delitem(REGISTERED, KEY)
    home = f"{IndependentColumns.__module__}:IndependentColumns"
    with pytest.raises(TypesNotTrusted, match=f"If you trust .*trusted=.'{home}'.*--trust {home}"):
        load(folder)
    assert KEY not in REGISTERED
    command = ["card", str(folder), "--format", "json"]
    refused = CliRunner().invoke(app, command)
    assert refused.exit_code == 2
    assert f"--trust {home}" in refused.output
    assert CliRunner().invoke(app, [*command, "--trust", home]).exit_code == 0
    monkeypatch.delitem(REGISTERED, KEY)
    assert isinstance(load(folder, trusted=[home]), IndependentColumns)
    with pytest.raises(ValueError, match="trusted names 'json:dumps', which is no generator"):
        load(folder, trusted=["json:dumps"])


@pytest.mark.parametrize(
    ("home", "said"),
    [
        ("no_such_module:Mine", "cannot be imported: No module named 'no_such_module'"),
        ("json:Mine", "cannot be imported: module 'json' has no attribute 'Mine'"),
        ("json:dumps", "'json:dumps', which is no generator. Derive it from TableSynthesizer"),
        ("evenhand.generators.tables.synthesizer:TableSynthesizer", "which is no generator"),
        ("evenhand.generators.images.gaussian:GaussianImages", "--method must be one of"),
    ],
)
def test_what_is_no_generator_of_tables_is_refused_in_a_line(
    home: str, said: str, tmp_path: Path
) -> None:
    assert said in " ".join(synthesize(home, tmp_path, exit_code=2).split())
    assert not (tmp_path / "made").exists()

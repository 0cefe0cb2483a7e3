"""``evenhand card``: formats, blanks, impact ratios on labelled rows, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import evenhand

Run = Callable[..., Any]


def test_impact_ratios_are_those_of_the_predictions(model: Path, run: Run) -> None:
    words = ("card", "model", "--data", "test.csv", "--format", "json", "--positive", "granted")
    said = json.loads(run(*words, "--sensitive", "sex", "--sensitive", "race").stdout)
    test = pd.read_csv("test.csv")
    fitted = evenhand.load("model")
    granted = fitted.predict(test[list(fitted.feature_names_in_)]) == "granted"
    tables = [t for t in said["impact"] if t["selected"] == "predicted granted"]
    assert [t["by"] for t in tables] == ["sex", "race", "sex, race"]
    for table, by in zip(tables, (["sex"], ["race"], ["sex", "race"]), strict=True):
        rates = pd.Series(granted).groupby([test[c] for c in by]).mean()
        assert sorted(g["rate"] for g in table["groups"]) == pytest.approx(sorted(rates))
        ratios = sorted(rates / rates.max())
        assert sorted(g["ratio"] for g in table["groups"]) == pytest.approx(ratios)
    assert "no guarantee covers them" in said["exact_counts"]


def test_a_file_is_written_whole_and_answers_are_taken_from_card_toml(
    model: Path, run: Run
) -> None:
    Path("card.toml").write_text(
        '[registry]\nbasic.name = "Loans of a town"\nbasic.publication_date = 2026-01-02\n'
        '[colorado]\nreview = "Every refusal"\n',
        encoding="utf-8",
    )
    run("card", "model", "--card", "card.toml", "--format", "yaml", "--out", "entry.yaml")
    text = Path("entry.yaml").read_text(encoding="utf-8")
    assert 'name: "Loans of a town"' in text
    assert 'publication_date: "2026-01-02"' in text
    page = run("card", "model", "--card", "card.toml").stdout
    assert "<!DOCTYPE html>" in page
    assert "Every refusal" in page


def test_what_is_not_known_is_refused_by_name(model: Path, refuse: Callable[..., str]) -> None:
    Path("card.toml").write_text('[colorado]\nreviewed = "no"\n', encoding="utf-8")
    said = refuse("card", "model", "--card", "card.toml")
    assert "'reviewed'. Did you mean 'review'?" in said
    Path("card.toml").write_text("[colorado\n", encoding="utf-8")
    assert "is not TOML" in refuse("card", "model", "--card", "card.toml")


@pytest.mark.parametrize("manifest", ["", "[]", '{"format": 3'])
def test_a_damaged_folder_is_refused_by_name(
    manifest: str, town: Path, refuse: Callable[..., str]
) -> None:
    Path("damaged").mkdir(exist_ok=True)
    Path("damaged/manifest.json").write_text(manifest, encoding="utf-8")
    assert "damaged/manifest.json" in refuse("card", "damaged")


def test_the_folder_of_a_generator_has_a_card_too(
    town: Path, run: Run, refuse: Callable[..., str]
) -> None:
    words = ("--label", "loan", "--sensitive", "sex", "--drop", "person", "--epsilon", "9")
    run("synthesize", "private.csv", *words, "--rows", "20", "--out", "s.csv", "--save", "made")
    said = json.loads(run("card", "made", "--format", "json").stdout)
    deployment = said["registry_entry"]["deployment"]
    assert deployment["basic"]["data_product_type"] == "Synthetic data"
    assert said["guarantee"]["epsilon"] == 9.0
    assert "selects nobody" in refuse("card", "made", "--data", "test.csv")

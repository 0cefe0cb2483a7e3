"""The card of a model: every answer from its record, blanks marked, the registry's schema kept."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evenhand.fairness.impact import impact_ratios
from evenhand.fairness.tally import Tally
from evenhand.generators import MarginalSynthesizer
from evenhand.generators import load as load_generator
from evenhand.methods import METHODS
from evenhand.privacy import Budget
from evenhand.report.card import nist, registry
from evenhand.report.card.content import QUESTIONS, SECTIONS, ModelCard
from evenhand.report.card.formats import to_dict, written
from evenhand.report.card.questions import BLANK, NOT_COVERED, read_filled
from evenhand.report.card.record import ImpactTable

FILLED = {
    "registry": {
        "basic": {
            "name": "Loans",
            "data_curators": ["A bank"],
            "intended_use": "Decide whom to ask for more papers",
            "data_product_region": "Nowhere",
            "data_product_sector": "Finance",
        },
        "deployment_model": {
            "actors": "The bank alone",
            "data_source_type": "Static",
            "data_source_type_details": "One table",
        },
        "implementation": {"justification": "By the plan"},
        "administrative": {"registry_authors": ["A person"], "sources": "None"},
    },
    "eu": {"origin": "Forms of the bank"},
}


def card_of(case: Any, **more: Any) -> ModelCard:
    return ModelCard.of(case.model, measured=case.measured, **more)


def filled(written_down: Mapping[str, Any] = FILLED) -> dict[str, Any]:
    return read_filled(written_down, QUESTIONS, "card.toml")


def schema() -> dict[str, Any]:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    home = os.environ.get("EVENHAND_DATA")
    file = Path(home or ".") / "opendp" / "deployments-schema.yaml"
    if home is None or not file.is_file():
        pytest.skip(f"the registry's schema is not at EVENHAND_DATA/opendp ({registry.SCHEMA})")
    found: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return found


def leaves(
    node: Mapping[str, Any], path: str = ""
) -> Iterator[tuple[str, Mapping[str, Any], bool]]:
    for name, below in node["properties"].items():
        if "properties" in below:
            yield from leaves(below, f"{path}{name}.")
        else:
            yield f"{path}{name}", below, name in node.get("required", ())


def test_the_rows_are_the_fields_of_the_registry_s_schema() -> None:
    theirs = {
        path: (node, need) for path, node, need in leaves(schema()["properties"]["deployment"])
    }
    ours = {question.key: question for question in registry.QUESTIONS}
    # A parameter of another variant, of which no claim here is.
    assert set(theirs) - set(ours) == {"privacy_loss.privacy_parameters.rho"}
    assert set(ours) <= set(theirs)
    for key, question in ours.items():
        node, needed = theirs[key]
        assert question.needed == needed, key
        if question.among:
            assert set(question.among) == set(node["enum"]), key
        if "tier" in node:
            assert question.tier == node["tier"], key


@pytest.mark.parametrize("with_answers", [False, True])
def test_an_entry_is_valid_and_its_yaml_reads_back(with_answers: bool, protected: Any) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    card = card_of(protected, filled=filled() if with_answers else {})
    text = written(card, "yaml")
    assert registry.SCHEMA_VERSION in text
    entry = yaml.safe_load(text)
    assert entry == card.entry
    assert entry["deployment"]["privacy_loss"]["privacy_parameters"] == {
        "epsilon": 4,
        "delta": 1e-5,
    }
    assert (BLANK in text) != with_answers
    assert entry["tier"] == (3 if with_answers else 1)
    validator = jsonschema.Draft7Validator(
        schema(), format_checker=jsonschema.Draft7Validator.FORMAT_CHECKER
    )
    assert list(validator.iter_errors(entry)) == []


def test_a_model_without_a_claim_is_not_registered_and_answers_nist_by_not_covered(
    hostile: Any,
) -> None:
    card = card_of(hostile)
    assert "registry" not in card.answers
    with pytest.raises(ValueError, match="no deployment of differential privacy"):
        written(card, "yaml")
    said = {answer.question.key: answer for answer in card.answers["nist"]}
    assert said["epsilon"].text == f"{NOT_COVERED}."
    assert said["claim"].text.startswith("NOT PRIVATE")


def test_answers_follow_the_record_and_name_no_method(protected: Any, plain: Any) -> None:
    for case in (protected, plain):
        card = card_of(case)
        said = {answer.question.key: answer.text for answer in card.answers["nist"]}
        claimed = case.model.guarantee_
        assert said["claim"] == str(claimed)
        assert claimed.unit in said["unit"]
        assert claimed.neighbors in said["unit"]
        for charge in card.spending.charges:  # type: ignore[union-attr]
            assert charge.mechanism in said["mechanisms"]
        for words in claimed.not_covered:
            assert words in said["tuning"]
        assert all(choice in said["tuning"] for choice in card.choices)
        assert ".;" not in said["tuning"]
        assert ".." not in said["tuning"]
    source = Path(nist.__file__).read_text(encoding="utf-8")
    names = {spec.estimator.__name__ for spec in METHODS.values()}
    assert not [name for name in names if name in source]


def test_all_that_is_wrong_in_card_toml_is_said_at_once() -> None:
    wrong = {
        "registri": {},
        "registry": {
            "basic": {"intended_us": "x", "data_curators": "one", "publication_date": "soon"},
            "dp_variant": {"variant_name": "Pure DP"},
            "deployment_model": {"model_name": "Trusted"},
        },
        "eu": {"origin": ""},
    }
    with pytest.raises(ValueError, match=r"card\.toml") as caught:
        read_filled(wrong, QUESTIONS, "card.toml")
    said = str(caught.value)
    for words in (
        "[registri]. Did you mean 'registry'?",
        "the key 'basic.intended_us'. Did you mean 'basic.intended_use'?",
        "basic.data_curators must be a list",
        "basic.publication_date must be a date",
        "dp_variant.variant_name follows from the model's own record",
        "deployment_model.model_name must be one of Local, Central",
        "[eu] origin must be a text",
    ):
        assert words in said


def test_every_section_names_its_source_and_keys_are_its_own(protected: Any) -> None:
    for name, asked in SECTIONS.items():
        keys = [question.key for question in asked.questions]
        assert len(set(keys)) == len(keys), name
        assert asked.source
    said = json.loads(written(card_of(protected, filled=filled()), "json"))
    assert said["sections"]["eu"]["answers"]["origin"] == {
        "asks": "Origin and collection of the data, 10(2)(b)",
        "answer": "Forms of the bank",
        "from": "card.toml",
    }
    assert said["registry_entry"]["url_slug"] == "loans"


def test_names_that_are_code_are_text_in_markdown_and_html(hostile: Any) -> None:
    card = card_of(hostile)
    assert "<script>window.hit" not in written(card, "html")
    markdown = written(card, "md")
    assert "<script>" not in markdown.replace("\\<script\\>", "")
    assert "<img" not in markdown.replace("\\<img", "")
    assert to_dict(card)["registry_entry"] is None


def logged(model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **more: Any) -> Path:
    """Log a model to a store of its own; its run says the claim. Return the folder of artifacts."""
    pytest.importorskip("mlflow", reason="mlflow is not installed")
    from mlflow import MlflowClient, end_run, set_tracking_uri
    from mlflow.artifacts import download_artifacts

    from evenhand.mlflow import log_model

    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    store = (tmp_path / "runs").as_uri()
    set_tracking_uri(store)
    try:
        run = log_model(model, **more)
        end_run()
        kept = MlflowClient(store).get_run(run)
        assert float(kept.data.params["epsilon"]) == model.guarantee_.epsilon
        assert kept.data.tags["evenhand.claim"] == str(model.guarantee_)
        folder = Path(download_artifacts(run_id=run, artifact_path="evenhand"))
    finally:
        set_tracking_uri(None)  # type: ignore[arg-type]
    assert (folder / "report.html").is_file()
    return folder


def test_mlflow_keeps_model_claim_and_card(
    protected: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import evenhand

    folder = logged(protected.model, tmp_path, monkeypatch, card=FILLED)
    assert str(evenhand.load(folder / "model").guarantee_) == str(protected.model.guarantee_)
    said = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    assert said["registry_entry"]["deployment"]["basic"]["name"] == "Loans"


def test_mlflow_keeps_a_generator_with_its_card(
    generator: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = logged(generator, tmp_path, monkeypatch)
    kept = load_generator(folder / "model")
    assert str(kept.guarantee_) == str(generator.guarantee_)
    assert len(kept.sample(5, random_state=0)) == 5
    assert "A generator of" in (folder / "card.json").read_text(encoding="utf-8")


BROKEN = """() => [...document.querySelectorAll('thead th')].flatMap(th => {
    const range = document.createRange(), text = th.firstChild;
    return [...text.data.matchAll(/\\S+/g)].filter(word => {
        range.setStart(text, word.index);
        range.setEnd(text, word.index + word[0].length);
        return new Set([...range.getClientRects()].map(box => box.top)).size > 1;
    }).map(word => word[0]);
})"""


@pytest.mark.browser
def test_the_page_is_one_file_without_violations_and_fits_a_phone(
    protected: Any, tmp_path: Path, visit: Any
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    rows = impact_ratios(Tally(counts=[[60, 40], [90, 10]]), 1, ("a long name of a group", "b"))
    impact = (ImpactTable(by="sex", selected="predicted yes", rows=rows),)
    file = tmp_path / "card.html"
    file.write_text(
        written(card_of(protected, impact=impact, data="test.csv"), "html"), encoding="utf-8"
    )
    seen = visit(file)
    assert seen.complaints == []
    assert seen.requests == [file.as_uri()]
    assert axe.run(seen.page).response["violations"] == []
    cut = "[...document.querySelectorAll('.scroll')].some(it => it.scrollWidth > it.clientWidth)"
    for width in (1280, 800, 770, 768, 641, 390):
        seen.page.set_viewport_size({"width": width, "height": 844})
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
        assert not seen.page.evaluate(cut), width
        assert seen.page.evaluate(BROKEN) == [], width


@pytest.fixture(scope="module")
def generator() -> Any:
    rng = np.random.default_rng(0)
    x, who = rng.normal(size=2000).clip(-4, 4), rng.choice(["a<b>", "c"], 2000)
    frame = pd.DataFrame({"x": x, "who": who, "label": np.where(x > 0, "yes", "no")})
    made = MarginalSynthesizer(random_state=0)
    return made.fit(frame, label="label", sensitive="who", budget=Budget(epsilon=8.0, delta=1e-6))


def test_a_generator_has_a_card_of_its_own_record(generator: Any, tmp_path: Path) -> None:
    card = ModelCard.of(generator, filled=filled())
    said = {answer.question.key: answer.text for answer in card.answers["nist"]}
    claimed = generator.guarantee_
    assert said["claim"] == str(claimed)
    assert claimed.neighbors in said["unit"]
    for entry in generator.ledger_.entries:
        assert entry.mechanism in said["mechanisms"]
    shares = generator.fitted_.shares
    assert all(f"{share:.3f}" in said["bias"] for share in shares)
    assert "ll144" not in card.answers  # it selects nobody
    entry = card.entry
    assert entry["deployment"]["basic"]["data_product_type"] == "Synthetic data"
    assert entry["deployment"]["privacy_loss"]["privacy_parameters"]["epsilon"] == claimed.epsilon
    words = json.dumps(to_dict(card)).lower()
    assert "classifier" not in words
    assert "prediction" not in words
    for form in ("html", "md", "yaml", "json"):
        assert "a<b>" not in written(card, form) or form in ("yaml", "json")


def test_the_entry_of_a_generator_is_valid(generator: Any) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    entry = ModelCard.of(generator).entry
    assert list(jsonschema.Draft7Validator(schema()).iter_errors(entry)) == []

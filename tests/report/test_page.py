from __future__ import annotations

import os
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jinja2 import UndefinedError, meta, nodes

import evenhand
from evenhand.fairness.intervals import Estimate
from evenhand.report import ModelReport, page, summary_lines, write_report
from evenhand.students.small_groups import Held, HeldGroup

FORBIDDEN = ("fair model", "debias", "guarantees fairness", "guarantee fairness", "unbiased")


class Reader(HTMLParser):
    """What a browser would find: elements, attributes, scripts and the text that is shown."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.scripts: list[tuple[dict[str, str], str]] = []
        self.headings: list[str] = []
        self.shown: list[str] = []
        self._inside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.elements.append((tag, found))
        if tag == "script":
            self.scripts.append((found, ""))
        self._inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self._inside and self._inside.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        inside = self._inside[-1] if self._inside else ""
        if inside == "script":
            found, text = self.scripts[-1]
            self.scripts[-1] = (found, text + data)
        elif inside == "h2":
            self.headings.append(data)
        elif inside != "style":
            self.shown.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.shown).split())


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    return reader


@pytest.fixture(scope="module")
def hostile_page(hostile: Any) -> str:
    facts = {"Data set": "Loans <script>window.hit = 1</script>", "<b>": '" onload="x'}
    return page.render(ModelReport.of(hostile.model, dataset=facts, measured=hostile.measured))


@pytest.fixture(scope="module")
def protected_page(protected: Any) -> str:
    return page.render(ModelReport.of(protected.model, measured=protected.measured))


@pytest.fixture(scope="module")
def plain_page(plain: Any) -> str:
    return page.render(ModelReport.of(plain.model, title="Triage"))


# -- what it says


def test_the_sections_stand_in_the_order_in_which_they_are_read(protected_page: str) -> None:
    assert read(protected_page).headings == [
        "1. The claim",
        "2. What was spent on what",
        "3. Accuracy and fairness, measured",
        "4. Answers and refusals",
        "5. The margin, and who needs the group",
        "6. Settings",
        "7. Load and predict",
    ]


def test_the_claim_is_printed_whole_with_its_terms(protected_page: str, protected: Any) -> None:
    text = read(protected_page).text
    guarantee = protected.model.guarantee_
    assert str(guarantee) in text
    for words in (*guarantee.public, *guarantee.not_covered):
        assert f"{words[0].upper()}{words[1:]}" in text
    assert "Whatever somebody concludes" in text
    assert "Not private" not in text


def test_test_mode_has_a_banner_and_explains_no_claim(hostile_page: str) -> None:
    reader = read(hostile_page)
    assert ("div", {"class": "banner", "role": "alert"}) in reader.elements
    assert "Not private" in reader.text
    assert "Whatever somebody concludes" not in reader.text
    assert "Covered by the guarantee" not in reader.text
    assert reader.text.count("Not covered by anything") == 2


def test_answers_and_disparity_are_marked_as_covered(protected_page: str) -> None:
    assert read(protected_page).text.count("Covered by the guarantee: computed from") == 2


def test_measurements_are_marked_as_not_covered(protected_page: str, plain_page: str) -> None:
    assert "Not covered by the guarantee. These numbers were measured" in read(protected_page).text
    assert "No measurements were given for this report." in read(plain_page).text


def test_the_margin_is_said_to_bind_the_answered_set_only(hostile_page: str) -> None:
    text = read(hostile_page).text
    assert "The margin binds the answered set" in text
    assert "does not bind the student, and it does not bind the population" in text


def test_a_student_under_the_margin_is_said_to_be_bound_on_public_rows_only(
    protected_page: str,
) -> None:
    text = read(protected_page).text
    assert "The gate binds the answered set, that is, the labels" in text
    assert "does not bind the student" not in text
    assert "That does not bind it on new rows, nor the population" in text


def test_a_method_without_a_gate_has_no_chart_of_a_margin(plain_page: str) -> None:
    reader = read(plain_page)
    ids = {attributes.get("id") for _, attributes in reader.elements}
    assert {"spent", "outcomes"} <= ids
    assert not ids & {"disparity", "gaps", "groups"}
    assert "Where the margin sits: none. At prediction: no group needed." in reader.text


def test_methods_without_labels_say_what_was_released(shares: Any, steps: Any) -> None:
    reader = read(page.render(ModelReport.of(shares.model)))
    assert (
        "what was released of every row are noisy shares of the votes; 320 times a row was asked"
        in (reader.text)
    )
    assert "No label was given and none was refused" in reader.text
    assert "The student’s decisions on the public rows are within the margin." in reader.text
    reader = read(page.render(ModelReport.of(steps.model)))
    assert "Nothing holds the groups’ rates together" in reader.text
    # Nobody was asked: the section is left out, not printed empty.
    assert [title.partition(". ")[2] for title in reader.headings] == [
        "The claim",
        "What was spent on what",
        "Accuracy and fairness, measured",
        "The margin, and who needs the group",
        "Settings",
        "Load and predict",
    ]


def test_a_reference_without_privacy_says_so_first_and_has_no_ledger(unprotected: Any) -> None:
    html = page.render(ModelReport.of(unprotected.model, measured=unprotected.measured))
    reader = read(html)
    assert ("div", {"class": "banner", "role": "alert"}) in reader.elements
    assert "Nothing is promised about anybody’s data: the model was trained on the" in reader.text
    assert not any("spent" in title for title in reader.headings)
    assert "if that were mended" not in reader.text
    assert "cost no further privacy" not in reader.text
    assert "inf" not in reader.text.replace("inform", "").split()
    assert "Training aimed for the margin on the private rows. It is not promised" in reader.text


def test_thresholds_are_listed_and_the_group_is_said_to_be_needed(cut: Any) -> None:
    reader = read(page.render(ModelReport.of(cut.model, measured=cut.measured)))
    assert "Where the margin sits: group-aware thresholds. At prediction: group needed." in (
        reader.text
    )
    assert "treats groups differently" in reader.text
    for group, value in zip(cut.model.groups_, cut.model.thresholds_.thresholds, strict=True):
        assert f"{group}{value[0]:.4f}" in reader.text.replace(" ", "")
    assert "It is kept on the public rows." in reader.text
    assert "Demographic parity" in reader.text
    assert "model.predict(rows, sensitive_features=groups)" in reader.text
    assert "Predictions need the group of every row" in reader.text
    assert "DPSGDClassifier with group thresholds" in reader.text
    # The model's own sections are those of the method inside.
    assert "1. The claim" in reader.headings
    assert "2. What was spent on what" in reader.headings


def test_the_probabilities_of_each_group_are_listed_with_what_they_keep(derived: Any) -> None:
    model = derived.model
    report = ModelReport.of(model, measured=derived.measured)
    shown = read(page.render(report)).text
    assert "Where the margin sits: group-aware probabilities. At prediction: group needed." in shown
    bare = shown.replace(" ", "")
    for group, table in zip(model.groups_, model.rule_.probabilities, strict=True):
        for own, probabilities in zip(model.classes_, table, strict=True):
            assert f"{group}{own}{probabilities[0]:.4f}{probabilities[1]:.4f}" in bare
    assert f"Gap by the noisy table {model.table_gap_:.4f}".replace(" ", "") in bare
    assert f"by at most {model.noise_bound_:.4f}, with a probability of 95%" in shown
    assert "Covered by the guarantee" in shown
    assert "The budget has parts with a ledger each, epsilon = 3 and 1" in shown
    assert "Training aimed for the margin" not in shown
    (line,) = [line for line in summary_lines(report) if "noisy table" in line]
    at_most = model.table_gap_ + model.noise_bound_
    assert f"{model.table_gap_:.4f}, and at most {at_most:.4f} among the private records" in line
    assert line.endswith("; margin 0.05 of equalized odds.")
    assert line not in shown  # the probabilities say it


def test_small_groups_and_calibration_rows_are_listed_with_what_they_tell(
    protected: Any,
) -> None:
    report = ModelReport.of(protected.model)
    one = HeldGroup(group=0, n_rows=14, limit=0.27, gap=0.19)
    gap = Estimate(name="gap", definition="", value=0.06, low=0.01, high=0.14, level=0.95, n=80)
    student = replace(
        report.student,
        met=False,
        held=Held(groups=(one,), error_by_margin=0.31, error=0.25),
        calibration=gap,
        source="calibration rows",
    )
    text = read(page.render(replace(report, student=student))).text
    assert "decisions on the calibration rows of the small groups below are held to" in text
    assert "0.0600, 95% interval 0.0100 to 0.1400, likely too small" in text
    assert f"{report.student.groups[0]}140.27000.1900" in text.replace(" ", "")
    assert "costs 0.0600 of error by the released answers (0.3100 instead of 0.2500)" in text


def test_which_kind_of_fairness_stands_on_every_page(
    hostile: Any,
    protected: Any,
    plain: Any,
    steps: Any,
    cut: Any,
    derived: Any,
    unprotected: Any,
) -> None:
    kinds = []
    for case in (hostile, protected, plain, steps, cut, derived, unprotected):
        report = ModelReport.of(case.model)
        assert report.kind is case.model.fairness_kind_
        where, _, who = str(report.kind).partition(", ")
        text = read(page.render(report)).text
        assert f"Where the margin sits: {where}. At prediction: {who}." in text
        assert f"{who} at prediction" in text
        assert f"Where the margin sits: {report.kind}." in summary_lines(report)
        kinds.append(report.kind.name)
    assert kinds == ["ANSWERS", "WEIGHTS", "NONE", "NONE", "THRESHOLDS", "DERIVED", "WEIGHTS"]


def test_warnings_of_the_claim_stand_at_the_top(protected: Any) -> None:
    report = ModelReport.of(protected.model)
    warned = replace(report.guarantee, warnings=("delta is too large",))
    html = page.render(replace(report, guarantee=warned))
    assert html.index("Read this first") < html.index("Delta is too large.") < html.index("<main>")


def test_no_page_promises_more_than_is_true(
    hostile_page: str, protected_page: str, plain_page: str
) -> None:
    for html in (hostile_page, protected_page, plain_page):
        text = read(html).text.lower()
        assert not [words for words in FORBIDDEN if words in text]


def test_the_code_on_the_page_runs(protected_page: str, protected: Any, tmp_path: Path) -> None:
    from html import unescape

    (code,) = re.findall(r"<pre[^>]*><code>(.*?)</code></pre>", protected_page, re.DOTALL)
    protected.model.save(tmp_path / "model")
    rows = "a,b,<i>c</i>\n0.5,1.0,-0.3\n"
    (tmp_path / "new_rows.csv").write_text(rows)
    here = Path.cwd()
    os.chdir(tmp_path)
    try:
        names: dict[str, Any] = {"print": lambda *_: None}
        exec(unescape(code), names)
    finally:
        os.chdir(here)
    assert names["labels"].shape == (1,)
    assert names["evenhand"] is evenhand


# -- what it may not do


def test_no_name_becomes_an_element(hostile_page: str) -> None:
    reader = read(hostile_page)
    kinds = {tag for tag, _ in reader.elements}
    assert not kinds & {"img", "i", "b", "iframe", "object", "form"}
    assert reader.scripts == []
    assert not any(name.startswith("on") for _, a in reader.elements for name in a)
    for name in ("<script>window.hit = 1</script>", '<img src="x" onerror="window.hit = 1">'):
        assert name in reader.text  # shown as it is


def test_the_page_names_nothing_to_load(hostile_page: str, protected_page: str) -> None:
    for html in (hostile_page, protected_page):
        for tag, attributes in read(html).elements:
            assert tag not in {"base", "iframe", "embed", "object"}
            for name in {"src", "href", "action", "data", "srcset"} & set(attributes):
                assert attributes[name].startswith("#") or attributes[name] == "data:,"


def test_no_script_may_run(protected_page: str) -> None:
    (policy,) = [
        a["content"]
        for tag, a in read(protected_page).elements
        if tag == "meta" and a.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy.startswith("default-src 'none'; script-src 'none';")


def test_every_chart_has_its_numbers_in_a_table_beside_it(protected_page: str) -> None:
    reader = read(protected_page)
    charts = [a for _, a in reader.elements if a.get("class") == "chart"]
    assert {a["id"] for a in charts} == {"spent", "gaps", "groups", "outcomes", "disparity"}
    assert all(a["role"] == "img" and a["aria-label"] for a in charts)
    captions = [tag for tag, _ in reader.elements].count("caption")
    assert captions == 2 + len(charts)  # the errors, and who was answered, have no chart


# -- the templates

PACKAGES = ("evenhand.report", "evenhand.frontier.page")
GIVEN = {
    "evenhand.report": {"report", "section", "script"},
    "evenhand.frontier.page": {
        *("front", "not_covered", "pairs", "coverage", "runs", "styles", "title", "data"),
        *("many", "notice", "of"),  # macros of the page that an included template uses
    },
}


@pytest.mark.parametrize("package", PACKAGES)
def test_templates_read_only_what_they_are_given(package: str) -> None:
    found = page.environment(package)
    given = GIVEN["evenhand.report"] | GIVEN[package] | found.globals.keys()
    names = [name for name in found.list_templates() if name.endswith(".html")]
    assert {"document.html", "claim.html"} <= set(names)
    for name in names:
        tree = found.parse(found.loader.get_source(found, name)[0])
        own = {node.name for node in tree.find_all(nodes.Name) if node.ctx == "store"}
        assert meta.find_undeclared_variables(tree) <= given | own, name
        found.get_template(name)  # its filters are known


@pytest.mark.parametrize("package", PACKAGES)
def test_only_the_script_of_a_page_is_printed_as_it_is(package: str) -> None:
    found = page.environment(package)
    assert found.autoescape is True
    doors = [
        (name, line.strip())
        for name in found.list_templates()
        for line in found.loader.get_source(found, name)[0].splitlines()
        if re.search(r"\|\s*safe\b|\bautoescape\b", line)
    ]
    assert doors == [("document.html", "<script>{{ script | safe }}</script>")]


def test_a_value_that_nobody_gave_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="has no attribute 'settings'"):
        page.fill("settings.html", report=SimpleNamespace(method="a method"))


# -- the file


def test_the_file_is_whole_small_and_the_same_each_time(protected: Any, tmp_path: Path) -> None:
    first = write_report(protected.model, tmp_path / "deep" / "report.html")
    second = write_report(protected.model, str(tmp_path / "again.html"))
    assert first.read_bytes() == second.read_bytes()
    assert first.stat().st_size < 200_000
    assert first.read_text(encoding="utf-8").endswith("</html>\n")


def test_a_failure_leaves_the_earlier_report_and_no_scrap(
    protected: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.html"
    path.write_text("earlier")

    def full(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="no space"):
        write_report(protected.model, path)
    assert path.read_text() == "earlier"
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]

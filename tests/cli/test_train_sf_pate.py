"""``--protect attribute``: one table whose groups alone are private, and no mixing with records."""

from __future__ import annotations

import pandas as pd
import pytest

import evenhand

SF: dict[str, str | None] = {
    "--method": "sf-student",
    "--protect": "attribute",
    "--public": None,
    "--teachers": "20",
    "--epsilon": "2",
    "--margin": "0.05",
}


@pytest.mark.parametrize("method", ["sf-student", "sf-teachers"])
def test_the_claim_is_about_the_attribute_in_words_json_and_report(town, train, method) -> None:
    told = train({**SF, "--method": method})
    assert told["unit"] == "sensitive attribute of one person"
    assert told["neighbors"] == "change one group label"
    assert any("features and class labels of all" in words for words in told["public"])
    assert "for the sensitive attribute of each person" in told["guarantee"]
    assert told["margin"] == 0.05
    assert told["needs_group_at_prediction"] is False
    assert {bound["says"] for bound in told["bounds"]} == {False}
    assert told["noisy_violation"] <= 0.05  # by noisy sums, where teachers tell no groups
    model = evenhand.load(town / "model")
    assert model.variant == method.removeprefix("sf-")
    page = (town / "model" / "report.html").read_text()
    assert "sensitive attribute of one person" in page
    assert "nothing else about the person is protected" in page
    assert "True and noisy groups" in page
    assert ("SF-PATE Theorem 2" in page) is (method == "sf-teachers")
    assert ("SF-PATE Corollary 1, as printed" in page) is (method == "sf-student")


def test_without_labels_outside_the_teachers_the_claim_covers_them(town, train) -> None:
    told = train({**SF, "--method": "sf-teachers", "--pull": "0"})
    assert told["unit"] == "sensitive attribute and class label of one person"


def test_a_run_tells_people_the_violation_that_the_noisy_groups_show(town, run, asked) -> None:
    said = run(*asked({**SF, "--method": "sf-student"}), "--test", "test.csv").output
    assert "violation by the noisy groups" in said
    assert "margin 0.05 of demographic parity" in said


def test_what_is_protected_must_be_said(town, refuse, asked) -> None:
    refused = refuse(*asked({**SF, "--protect": None}))
    assert "features and labels are taken as public" in refused
    assert "--protect attribute" in refused
    assert "sf-student, sf-teachers" in refuse(*asked({"--protect": "attribute"}))
    refused = refuse(*asked({**SF, "--reference": "pairwise"}))
    assert "compares groups in one way of its own" in refused


@pytest.mark.parametrize(
    ("option", "value"), [("--public", "public.csv"), ("--public-fraction", "0.2")]
)
def test_there_are_no_public_rows_beside_the_table(town, refuse, asked, option, value) -> None:
    refused = refuse(*asked({**SF, option: value}))
    assert "takes all features as public" in refused


def test_the_law_of_the_score_is_measured_where_it_is_what_shall_be_alike(town, train, run) -> None:
    whole = {"--fairness": "generalized-demographic-parity", "--margin": "0.1"}
    told = train({**SF, **whole}, "--test", "test.csv")
    gap = told["measured"]["metrics"]["generalized_demographic_parity_rest"]
    assert gap["low"] <= gap["value"] <= gap["high"]
    assert "Generalized demographic parity" in (town / "model" / "report.html").read_text()
    said = run("evaluate", "model", "test.csv", "--label", "loan", "--sensitive", "sex").output
    assert "generalized demographic parity gap" in " ".join(said.split())


def test_notions_and_who_knows_them(town, train, refuse, asked) -> None:
    whole = "generalized-demographic-parity"
    assert train({**SF, "--fairness": whole, "--margin": "0.1"})["fairness"] == whole
    refused = refuse(*asked({"--fairness": whole, "--method": "intervention", "--out": "other"}))
    assert "--protect attribute --method sf-student" in refused


def test_missing_groups_are_not_to_be_left_out(town, refuse, asked) -> None:
    frame = pd.read_csv("private.csv")
    frame.loc[3, "sex"] = None
    frame.to_csv("private.csv", index=False)
    assert "would tell who did not say" in refuse(*asked(SF))


def test_an_account_of_attributes_pays_for_no_record(town, train, refuse, asked) -> None:
    account = {"--ledger": "books.db", "--account-epsilon": "5"}
    spent = train({**SF, **account})["account"]["epsilon_spent"]
    assert spent == pytest.approx(2.0, rel=1e-3)
    assert "unit" in refuse(*asked({**account, "--out": "other"}))

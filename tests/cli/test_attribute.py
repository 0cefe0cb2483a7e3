"""``--protect attribute``: it must be said, it is what is claimed, and no public row is needed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import evenhand
from evenhand.fairness import FairnessKind
from evenhand.methods import METHODS

Run = Callable[..., Any]

RESPONSE = "randomized-response"
ALONE: dict[str, str | None] = {"--teachers": None, "--public": None, "--protect": "attribute"}


@pytest.mark.parametrize(("method", "delta"), [(RESPONSE, 0.0), ("pf-ld", 1e-5)])
def test_a_model_protects_the_attribute_alone_and_says_so_everywhere(
    town: Path, train: Run, run: Run, method: str, delta: float
) -> None:
    said = train(
        {**ALONE, "--method": method, "--test": "test.csv", "--fairness": "demographic-parity"}
    )
    assert said["method"] == METHODS[method].estimator.__name__
    assert (said["epsilon"], said["delta"]) == (4.0, delta)
    assert said["neighbors"] == "change one group label"
    assert "for the sensitive attribute of each person" in said["guarantee"]
    assert said["fairness_kind"] == FairnessKind.WEIGHTS
    assert said["measured"]["error"] < 0.4
    claim = json.loads(Path("model/claim.json").read_text())
    assert claim["guarantee"]["unit"] == "sensitive attribute of one person"
    page = Path("model/report.html").read_text()
    assert "nothing else about the person is protected" in page
    again = evenhand.load("model")
    assert again.groups_ == ("F", "M")
    run("predict", "model", "test.csv", "--out", "said.csv")
    assert Path("said.csv").exists()


@pytest.mark.parametrize("notion", ["equalized-odds", "true-positive-rate-parity"])
@pytest.mark.parametrize("method", ["pf-ld", "fair-only"])
def test_notions_about_true_classes_can_be_named(
    town: Path, train: Run, method: str, notion: str
) -> None:
    reference = {"--teachers": None, "--epsilon": None}
    how = ALONE if method == "pf-ld" else reference
    said = train({**how, "--method": method, "--fairness": notion})
    assert said["fairness"] == notion
    assert evenhand.load("model").fairness.name == notion


@pytest.mark.parametrize(
    ("changes", "more", "words"),
    [
        (
            {"--protect": None, "--method": RESPONSE},
            [],
            "features and labels are taken as public. If",
        ),
        (
            {"--method": "sf-student", "--fairness": "generalized-demographic-parity"}
            | {"--confidence": "0.9", "--calibration": "test.csv"},
            [],
            "--confidence 0.9 is about rates of decisions, and --fairness generalized-demographic",
        ),
        ({"--protect": "record", "--method": "pf-ld"}, [], "say so: --protect attribute. To prot"),
        ({"--method": "dpsgd"}, [], "--method dpsgd protects the whole record. Leave it out, or"),
        ({"--method": "non-private"}, [], "promises no privacy. Leave it out, or choose a method"),
        (
            {"--protect": "atribute", "--method": RESPONSE},
            [],
            "Did you mean 'attribute'?",
        ),
        (
            {"--method": RESPONSE, "--public": "public.csv"},
            [],
            "takes all features as public, and sca",
        ),
        (
            {"--method": RESPONSE},
            ["--public-fraction", "0.2"],
            "got --public-fraction. Leave one of",
        ),
        ({"--method": RESPONSE, "--sensitive": None}, [], "--sensitive is missing"),
        ({"--method": "pf-ld", "--margin": None}, [], "--margin is missing"),
        (
            {"--method": RESPONSE},
            ["--hidden", "5"],
            "-response does not read it, got --hidden",
        ),
        (
            {"--method": RESPONSE},
            ["--group-thresholds"],
            "has a place of its own for fairness",
        ),
        (
            {"--method": RESPONSE},
            ["--ledger", "l.db"],
            "keeps no account, got --ledger",
        ),
        (
            {"--method": RESPONSE},
            ["--fairness", "generalized-demographic-parity"],
            "Choose another notion",
        ),
        (
            {"--method": RESPONSE, "--epsilon": "0.01"},
            [],
            "is too small for the correction",
        ),
        ({"--method": "pf-ld"}, ["--noise", "exact"], "Use FloatNoise"),
    ],
)
def test_what_does_not_go_together_is_refused(
    town: Path, refuse: Run, asked: Run, changes: dict[str, Any], more: list[str], words: str
) -> None:
    assert words in refuse(*asked({**ALONE, **changes}), *more)
    assert not Path("model").exists()

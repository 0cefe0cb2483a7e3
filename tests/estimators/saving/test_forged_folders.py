"""A folder is exactly its manifest, and its claim what its ledger bears; whatever is forged."""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenhand
from evenhand import (
    Budget,
    DPPostProcessingClassifier,
    DPSGDClassifier,
    FairPATEClassifier,
    RandomizedResponseClassifier,
)
from evenhand._folder import read_folder, seal
from evenhand.estimators import ModelDamaged, TypesNotTrusted
from evenhand.privacy import DiscreteNoise
from evenhand.privacy.gaussian import epsilon_from_mu

from ..conftest import Parts, Reseal, made_parts, made_settings

Change = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = FairPATEClassifier(**made_settings() | {"noise": DiscreteNoise()})
    return made_parts().fit(model).save(tmp_path_factory.mktemp("made") / "model")


@pytest.fixture
def path(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "model"))


# A folder is exactly its manifest.


def test_a_file_that_the_manifest_does_not_name_is_refused(path: Path) -> None:
    (path / "student.skops").write_bytes(b"")
    with pytest.raises(ModelDamaged, match=r"'student\.skops', which its manifest does not name"):
        evenhand.load(path)


@pytest.mark.parametrize("name", ["../model.json", "/etc/passwd", "a/b.json", "..", "", ".hidden"])
def test_names_that_lead_elsewhere_are_refused(path: Path, name: str) -> None:
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["files"][name] = "0" * 64
    (path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ModelDamaged, match="no plain file name"):
        evenhand.load(path)


@pytest.mark.parametrize("name", ["model.json", "manifest.json", "manifest.sig"])
def test_links_and_pipes_are_refused(path: Path, name: str) -> None:
    file, elsewhere = path / name, path.parent / "elsewhere"
    if file.exists():
        file.rename(elsewhere)
    file.symlink_to(elsewhere)
    with pytest.raises(ModelDamaged):
        evenhand.load(path)
    file.unlink()
    os.mkfifo(file)  # must not hold the reader up
    with pytest.raises(ModelDamaged):
        evenhand.load(path)


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        ("{}", "names no file"),
        ('{"format": 3, "kind": "model"}', "names no file"),
        ('{"format": 3, "kind": "model", "files": {}}', "names no file"),
        ('{"format": 3, "kind": "model", "files": []}', "names no file"),
        ('{"format": 3, "kind": "generator", "files": {"a": "b"}}', "holds a 'generator'"),
        ('{"format": 3, "kind": ["model"], "files": {"a": "b"}}', "not a model.$"),
        ('{"format": 3, "kind": "model", "files": {"a": "b"}}', "no SHA-256 digest"),
        ('{"format": 3, "format": 3}', "a key stands twice"),
        ("[]", "must hold a JSON object"),
        ("[" * 100_000, "cannot be read"),
        ("\xff", "cannot be read"),
    ],
)
def test_manifests_that_are_none_are_refused(path: Path, manifest: str, words: str) -> None:
    (path / "manifest.json").write_bytes(manifest.encode("latin-1"))
    with pytest.raises(ModelDamaged, match=words):
        evenhand.load(path)


def test_what_was_checked_is_what_is_used(path: Path) -> None:
    folder = read_folder(path, ("model",), ModelDamaged)
    (path / "model.json").write_text("{}")
    assert folder.json("model.json")["method"] == "FairPATEClassifier"


def test_the_head_says_which_file_holds_the_student(path: Path, reseal: Reseal) -> None:
    (path / "mixture.safetensors").write_bytes(b"of an attacker")
    reseal(path, lambda head: None)
    evenhand.load(path)  # named and of no use: nothing looks for it
    reseal(path, lambda head: head["student"].update(file="mixture.safetensors"))
    with pytest.raises(ModelDamaged, match=r"mixture\.safetensors cannot be read"):
        evenhand.load(path)
    reseal(path, lambda head: head["student"].update(file="../student.safetensors"))
    with pytest.raises(ModelDamaged, match="has no file"):
        evenhand.load(path)


# A claim is what its ledger bears.


def guarantee(**changes: Any) -> Change:
    return lambda claim: claim["guarantee"].update(changes)


def ledger(**changes: Any) -> Change:
    return lambda claim: claim["ledger"].update(changes)


def entry(**changes: Any) -> Change:
    return lambda claim: claim["ledger"]["entries"][0].update(changes)


def consistent(epsilon: float) -> Change:
    """Return a forgery that lowers epsilon of claim and budget together, not of the entries."""

    def change(claim: dict[str, Any]) -> None:
        budget = Budget(epsilon=epsilon, delta=claim["guarantee"]["delta"])
        claim["guarantee"] |= {"epsilon": epsilon, "mu_squared": budget.mu_squared}
        claim["ledger"] |= {"epsilon": epsilon, "mu_squared_budget": budget.mu_squared}

    return change


FORGERIES: dict[str, tuple[Change, str]] = {
    "a smaller epsilon": (guarantee(epsilon=1.0, mu_squared=None), "ledger sums to 100"),
    "a smaller delta": (guarantee(delta=1e-9, mu_squared=None), "delta=1e-09"),
    "no mu": (guarantee(mu_squared=None), "mu_squared=None"),
    "a smaller mu": (guarantee(mu_squared=0.1), "mu_squared=0.1"),
    "claim and budget": (consistent(1.0), "above its budget"),
    "no entries": (ledger(entries=[]), "has no entries"),
    "no ledger": (lambda claim: claim.update(ledger=None), "has no ledger"),
    "no parts": (ledger(parts=[]), "has no parts"),
    "entries that cost nothing": (
        lambda claim: [e.update(mu_squared=0.0) for e in claim["ledger"]["entries"]],
        "cost nothing",
    ),
    "a negative cost": (entry(mu_squared=-1.0), "mu_squared of an entry must be finite"),
    "a negative number of uses": (entry(n_uses=-1), "n_uses of an entry must be at least 0"),
    "a cost that is text": (entry(mu_squared="0"), "must be a number"),
    "a cheaper entry": (entry(mu_squared=1e-9), "the ledger says mu_squared_spent"),
    "less spent": (ledger(mu_squared_spent=1e-9), "the ledger says mu_squared_spent"),
    "less epsilon spent": (ledger(epsilon_spent=1e-9), "the ledger says epsilon_spent"),
    "another budget": (ledger(mu_squared_budget=1e9), "the ledger says mu_squared_budget"),
    "an entry of another account": (entry(account="elsewhere"), "of the account 'elsewhere'"),
    "another unit": (guarantee(unit="person"), "unit is 'person'"),
    "other neighbors": (guarantee(neighbors="add or remove one"), "neighbors is 'add or remove"),
    "neighbors of another method": (
        lambda claim: [
            part.update(
                neighbors="change one group label", unit="sensitive attribute of one person"
            )
            for part in (claim["guarantee"], claim["ledger"])
        ],
        "the method is about those that replace one or add or remove one",
    ),
    "noise of a test mode": (
        ledger(noise="repeatable noise from a seed (test mode)"),
        "protects nobody",
    ),
    "noise that protects nobody": (ledger(protects=False), "protects nobody"),
    "a ledger that says neither": (ledger(protects="yes"), "protects nobody"),
    "a mechanism of one delta": (entry(mechanism="LaplaceTable(...)"), "its costs are not"),
    "a fairness that is not there": (
        lambda claim: claim["fairness"].update(kind="group-aware thresholds, group needed"),
        "not that of the model",
    ),
    "a key too many": (guarantee(forever=True), "has no key 'forever'"),
    "a key too few": (lambda claim: claim["guarantee"].pop("not_covered"), "lacks the key"),
}


def say(claim: dict[str, Any]) -> None:
    """Write the sentence of the guarantee anew, as a careful attacker does."""
    from evenhand.privacy import Guarantee

    with contextlib.suppress(ValueError):
        claim["sentence"] = str(Guarantee.from_dict(claim["guarantee"]))


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_claim_is_refused(name: str, path: Path, reseal: Reseal) -> None:
    change, words = FORGERIES[name]
    evenhand.load(path)
    reseal(path, change, "claim.json")
    reseal(path, say, "claim.json")
    with pytest.raises(ModelDamaged, match=words):
        evenhand.load(path)


def test_a_sentence_that_says_something_else_is_refused(path: Path, reseal: Reseal) -> None:
    reseal(path, lambda claim: claim.update(sentence="Perfectly private."), "claim.json")
    with pytest.raises(ModelDamaged, match="sentence does not say"):
        evenhand.load(path)


@pytest.mark.parametrize(
    ("sentence", "read"),
    [
        ("Kept: (100.0, 1e-05)-differentially private, worded by another version.", True),
        ("Kept: (1.0, 1e-05)-differentially private, worded by another version.", False),
        ("(1.0, 1e-05)-differentially private; (100.0, 1e-05)-differentially private.", False),
        ("NOT PRIVATE: (100.0, 1e-05)-differentially private.", False),
        ("Perfectly private.", False),
    ],
)
def test_another_version_words_the_same_numbers(
    path: Path, reseal: Reseal, sentence: str, read: bool
) -> None:
    reseal(path, lambda claim: claim.update(sentence=sentence), "claim.json")
    manifest = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps(manifest | {"evenhand": "0.0.9"}))
    if read:
        assert evenhand.load(path).guarantee_.epsilon == 100.0
        return
    with pytest.raises(ModelDamaged, match="sentence does not say"):
        evenhand.load(path)


def test_a_weaker_claim_is_allowed(path: Path, reseal: Reseal) -> None:
    # Promising less than the ledger bears misleads nobody.
    budget = Budget(epsilon=120.0, delta=1e-5)
    weaker = guarantee(epsilon=budget.epsilon, mu_squared=budget.mu_squared)
    reseal(path, weaker, "claim.json")
    reseal(path, say, "claim.json")
    assert evenhand.load(path).guarantee_.epsilon == 120.0


def test_noise_of_the_settings_is_that_of_the_claim(path: Path, reseal: Reseal) -> None:
    seeded = {"type": "SeededNoise", "arguments": {"seed": 1}}
    reseal(path, lambda head: head["arguments"].update(noise=seeded))
    with pytest.raises(ModelDamaged, match="noise of the model's settings protects nobody"):
        evenhand.load(path)


def test_epsilon_of_entries_is_what_they_sum_to(path: Path) -> None:
    # A second derivation: the numbers of the file by the formula alone.
    claim = json.loads((path / "claim.json").read_text())
    spent = math.fsum(e["mu_squared"] for e in claim["ledger"]["entries"])
    epsilon = epsilon_from_mu(spent**0.5, claim["guarantee"]["delta"])
    assert claim["ledger"]["epsilon_spent"] == pytest.approx(epsilon, rel=1e-9)
    assert epsilon <= claim["guarantee"]["epsilon"]


@pytest.mark.parametrize("kind", ["sampled", "parts", "response"])
def test_claims_of_other_accountings_are_computed_again(
    kind: str, parts: Parts, tmp_path: Path, reseal: Reseal
) -> None:
    budget = Budget(epsilon=8.0, delta=1e-5)
    if kind == "sampled":
        model: Any = DPSGDClassifier(budget=budget, n_steps=20, batch_size=64, n_records=600)
        model.fit(parts.X, parts.y, X_public=parts.X_public)
    elif kind == "parts":
        model = DPPostProcessingClassifier(budget=budget, n_steps=20, batch_size=64, n_records=600)
        model.fit(parts.X, parts.y, X_public=parts.X_public, sensitive_features=parts.groups)
    else:
        model = RandomizedResponseClassifier(
            budget=budget, fairness=evenhand.DemographicParity(margin=0.2)
        )
        model.fit(parts.X, parts.y, sensitive_features=parts.groups)
    path = model.save(tmp_path / "model")
    assert evenhand.load(path).guarantee_ == model.guarantee_
    reseal(path, guarantee(epsilon=model.guarantee_.epsilon / 2), "claim.json")
    reseal(path, say, "claim.json")
    with pytest.raises(ModelDamaged, match="its ledger sums to"):
        evenhand.load(path)


# Damage: one clear error, whatever is damaged.

EVEN = [[1.0, 0.0], [0.0, 1.0]]
DERIVED = {
    "notion": "equalized_odds",
    "margin": 0.1,
    "gap": 0.0,
    "beyond": 0.0,
    "rule": {"probabilities": [EVEN, EVEN]},
    "table": [EVEN, EVEN],
}


@pytest.mark.parametrize(
    "change",
    [
        lambda head: head.update(classes={"dtype": "V999999999999", "values": ["a", "b"]}),
        lambda head: head.update(classes={"dtype": "<U999999999", "values": ["a", ["b"]]}),
        lambda head: head.update(classes={"dtype": "<U3", "values": ["no", "no"]}),
        lambda head: head.update(classes=[]),
        lambda head: head.update(groups=7),
        lambda head: head.update(groups=[{}]),
        lambda head: head.update(n_columns="x"),
        lambda head: head.update(columns={"a": 1}),
        lambda head: head.update(numbers={"bound_": {"a": 1}}),
        lambda head: head.update(arguments=[]),
        lambda head: head["arguments"].update(budget={"type": "Budget", "arguments": {}}),
        lambda head: head["arguments"].update(budget={"type": "eval", "arguments": {}}),
        lambda head: head["arguments"].update(unknown=1),
        lambda head: head.update(student={"kind": "made up", "file": "student.safetensors"}),
        lambda head: head.update(student={"kind": "network", "file": "student.safetensors"}),
        lambda head: head.update(student=None),
        lambda head: head.update(encoder={"format": 1}),
        lambda head: head.update(method="exec"),
        lambda head: head.update(answers={"n_checks": -1}),
        lambda head: head.update(others=["student"]),
        lambda head: head.update(columns=["income"]),
        lambda head: head.update(derived=DERIVED | {"rule": {"probabilities": [[[1.0]]]}}),
        lambda head: head.update(derived=DERIVED | {"table": [[0.0]]}),
        lambda head: head["student_margin"].update(notion=None),
        lambda head: head["student_margin"].update(
            notion={"type": "Budget", "arguments": {"epsilon": 1.0, "delta": 1e-5}}
        ),
        lambda head: head["student_margin"].update(met=0.5),
        lambda head: head["student_margin"].update(source="nowhere"),
        lambda head: head["student_margin"].update(gap="none"),
        lambda head: head.update(true_groups={"met": True, "bounds": []}),
        lambda head: head.update(cuts={"fairness": None, "groups": [], "thresholds": {}}),
    ],
)
def test_wrong_values_in_the_head_are_one_clear_error(
    change: Change, path: Path, reseal: Reseal
) -> None:
    reseal(path, change)
    with pytest.raises(ModelDamaged) as refused:
        evenhand.load(path)
    assert len(str(refused.value)) < 700


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_are_refused(path: Path, bad: float) -> None:
    from safetensors.numpy import load_file, save_file

    arrays = load_file(path / "student.safetensors")
    arrays["coef"][0, 0] = bad
    save_file(arrays, path / "student.safetensors")
    seal(path, "model")
    with pytest.raises(ModelDamaged, match="'coef' holds numbers that are not finite"):
        evenhand.load(path)


def test_weights_of_another_shape_are_refused(path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    arrays = load_file(path / "student.safetensors")
    save_file({**arrays, "coef": arrays["coef"][:, 1:].copy()}, path / "student.safetensors")
    seal(path, "model")
    with pytest.raises(ModelDamaged):
        evenhand.load(path)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a": NaN}', '{"a": 1e999}', "9" * 5000])
def test_json_that_is_none_is_refused(path: Path, text: str) -> None:
    (path / "model.json").write_text(text)
    seal(path, "model")
    with pytest.raises(ModelDamaged, match=r"model\.json cannot be read"):
        evenhand.load(path)


N_FLIPS, N_CUTS = 300, 60


@pytest.mark.slow
def test_flips_and_cuts_under_a_new_manifest_are_read_or_refused(
    path: Path, parts: Parts, tmp_path: Path
) -> None:
    # Nobody knows which bit harms: what is loaded must predict or refuse, and raise nothing else.
    rng = random.Random(0)
    rows, seen = parts.X.head(5), {"read": 0, "refused": 0}
    for i in range(N_FLIPS + N_CUTS):
        broken = Path(shutil.copytree(path, tmp_path / str(i)))
        names = sorted(f.name for f in broken.iterdir() if f.name != "manifest.json")
        file = broken / rng.choice(names)
        content = bytearray(file.read_bytes())
        if i < N_FLIPS:
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        else:
            del content[rng.randrange(len(content)) :]
        file.write_bytes(content)
        seal(broken, "model")
        try:
            evenhand.load(broken).predict(rows)
        except (ModelDamaged, TypesNotTrusted):
            seen["refused"] += 1
        except ValueError:  # of predict: the model asks for columns that the rows lack
            seen["refused"] += 1
        else:
            seen["read"] += 1
        shutil.rmtree(broken)
    assert seen["refused"] >= N_CUTS  # a cut file is never whole

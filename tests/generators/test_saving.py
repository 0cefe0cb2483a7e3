"""A generator's folder: exactly its manifest, with the claim that its ledger bears."""

from __future__ import annotations

import json
import random
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand
from evenhand import Budget
from evenhand._folder import seal
from evenhand.estimators.saving.model_folder import ModelDamaged
from evenhand.generators import MeanEmbeddingSynthesizer, NotedWarning, load
from evenhand.generators.saving import GeneratorDamaged
from evenhand.privacy import Guarantee

Change = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "age": rng.integers(20, 60, 600),
            "sex": rng.choice(["F", "M"], 600),
            "loan": rng.choice(["no", "yes"], 600),
        }
    )
    table["loan"] = table["loan"].astype(pd.CategoricalDtype(["no", "yes"]))
    table["sex"] = table["sex"].astype(pd.CategoricalDtype(["F", "M"]))
    generator = MeanEmbeddingSynthesizer(random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotedWarning)  # noise alone warns of it, once in 100 runs
        budget = Budget(epsilon=40.0, delta=1e-6)
        generator.fit(table, label="loan", sensitive=["sex"], budget=budget)
    return generator.save(tmp_path_factory.mktemp("made") / "generator")


@pytest.fixture
def path(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "generator"))


def reseal(path: Path, file: str, change: Change) -> None:
    values = json.loads((path / file).read_text())
    change(values)
    (path / file).write_text(json.dumps(values))
    seal(path, "generator")


def say(claim: dict[str, Any]) -> None:
    claim["sentence"] = str(Guarantee.from_dict(claim["guarantee"]))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda c: c["guarantee"].update(epsilon=0.5, mu_squared=None), "its ledger sums to"),
        (lambda c: c["ledger"].update(entries=[]), "has no entries"),
        (lambda c: c.update(ledger=None), "has no ledger"),
        (lambda c: c["ledger"].update(protects=False), "protects nobody"),
        (lambda c: c["ledger"]["entries"][0].update(mu_squared=1e-12), "the ledger says"),
        (lambda c: c["guarantee"].update(delta=1e-12, mu_squared=None), "delta=1e-12"),
    ],
)
def test_a_forged_claim_is_refused(path: Path, change: Change, words: str) -> None:
    assert load(path).guarantee_.epsilon == 40.0
    reseal(path, "claim.json", change)
    reseal(path, "claim.json", say)
    with pytest.raises(GeneratorDamaged, match=words):
        load(path)


def test_a_folder_of_the_other_kind_is_refused_with_what_reads_it(path: Path) -> None:
    with pytest.raises(ModelDamaged, match=r"not a model\. evenhand\.generators\.load reads it"):
        evenhand.load(path)
    seal(path, "model")
    with pytest.raises(GeneratorDamaged, match=r"not a generator\. evenhand\.load reads it"):
        load(path)


def test_more_files_than_the_manifest_names_are_refused(path: Path) -> None:
    (path / "run.py").write_text("")
    with pytest.raises(GeneratorDamaged, match=r"'run\.py', which its manifest does not name"):
        load(path)


def test_arrays_that_are_not_finite_are_refused(path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    arrays = load_file(path / "arrays.safetensors")
    name = next(name for name, array in arrays.items() if array.dtype.kind == "f")
    arrays[name].flat[0] = np.nan
    save_file(arrays, path / "arrays.safetensors")
    seal(path, "generator")
    with pytest.raises(GeneratorDamaged, match="not finite"):
        load(path)


def test_flips_and_cuts_under_a_new_manifest_are_read_or_refused(path: Path) -> None:
    rng = random.Random(0)
    whole = {f.name: f.read_bytes() for f in path.iterdir() if f.name != "manifest.json"}
    refused = 0
    for i in range(100):
        name = rng.choice(sorted(whole))
        content = bytearray(whole[name])
        if i < 80:
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        else:
            del content[rng.randrange(len(content)) :]
        (path / name).write_bytes(content)
        seal(path, "generator")
        try:
            load(path).sample(3, balance=(), random_state=0)
        except ValueError:
            refused += 1
        (path / name).write_bytes(whole[name])
    assert refused >= 20  # a cut file is never whole

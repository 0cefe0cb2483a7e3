"""A model folder: the same predictions and claim, or a clear refusal."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import evenhand
from evenhand import FairPATEClassifier
from evenhand.estimators import ModelDamaged, TypesNotTrusted

from ..conftest import Parts, Reseal


@pytest.fixture
def saved(parts: Parts, settings: dict[str, Any], tmp_path: Path) -> tuple[Any, Path]:
    model = parts.fit(FairPATEClassifier(**settings))
    return model, model.save(tmp_path / "model")


def test_a_loaded_model_predicts_and_claims_the_same(parts: Parts, saved: tuple[Any, Path]) -> None:
    model, path = saved
    loaded = evenhand.load(path)
    assert type(loaded) is FairPATEClassifier
    assert np.array_equal(loaded.predict(parts.X), model.predict(parts.X))
    assert np.array_equal(loaded.predict_proba(parts.X), model.predict_proba(parts.X))
    assert loaded.guarantee_ == model.guarantee_
    assert loaded.ledger_.to_dict() == json.loads(json.dumps(model.ledger_.to_dict()))
    assert loaded.ledger_.entries == model.ledger_.entries
    assert loaded.answers_.table() == model.answers_.table()
    assert np.array_equal(loaded.answers_.order, model.answers_.order)
    assert loaded.groups_ == model.groups_
    assert repr(loaded.get_params()["fairness"]) == repr(model.fairness)
    again = loaded.save(path.parent / "again")
    assert np.array_equal(evenhand.load(again).predict(parts.X), model.predict(parts.X))


@pytest.mark.parametrize(
    ("student", "type_needed"),
    [
        (RandomForestClassifier(5, random_state=0), "sklearn.tree._tree.Tree"),
        (make_pipeline(StandardScaler(), SVC(random_state=0)), "sklearn.svm._classes.SVC"),
    ],
)
def test_any_scikit_learn_student_is_kept_and_read_by_those_who_trust_it(
    parts: Parts, settings: dict[str, Any], tmp_path: Path, student: Any, type_needed: str
) -> None:
    model = parts.fit(FairPATEClassifier(**(settings | {"student": student})))
    path = model.save(tmp_path / "model")
    with pytest.raises(TypesNotTrusted, match="can run code or reach memory") as refused:
        evenhand.load(path)
    assert type_needed in str(refused.value)
    loaded = evenhand.load(path, trusted=[type_needed, "sklearn.svm._classes.SVC"])
    assert np.array_equal(loaded.predict(parts.X), model.predict(parts.X))
    assert hasattr(loaded, "predict_proba") == hasattr(model, "predict_proba")


def test_a_folder_holds_no_pickle(saved: tuple[Any, Path]) -> None:
    _, path = saved
    for file in path.iterdir():
        assert file.suffix in {".json", ".safetensors", ".skops"}
        assert not file.read_bytes().startswith(b"\x80")


def test_every_file_of_a_folder_is_guarded(saved: tuple[Any, Path]) -> None:
    _, path = saved
    for file in sorted(path.iterdir()):
        original = file.read_bytes()
        if file.name != "manifest.json":
            file.write_bytes(original.replace(original[-9:-8], b"#", 1))
            with pytest.raises(ModelDamaged, match=f"edited: {file.name}"):
                evenhand.load(path)
        file.unlink()
        with pytest.raises(ModelDamaged, match=file.name):
            evenhand.load(path)
        file.write_bytes(original)
    evenhand.load(path)


def test_an_edited_claim_is_refused(saved: tuple[Any, Path]) -> None:
    _, path = saved
    claim = json.loads((path / "claim.json").read_text())
    claim["guarantee"]["epsilon"] = 0.1
    (path / "claim.json").write_text(json.dumps(claim))
    with pytest.raises(ModelDamaged, match=r"damaged or edited: claim\.json"):
        evenhand.load(path)


def test_a_folder_of_another_version_is_refused_with_its_version(
    saved: tuple[Any, Path], reseal: Reseal
) -> None:
    _, path = saved
    reseal(path, lambda head: head.pop("encoder"))
    with pytest.raises(ModelDamaged, match="lacks the entry 'encoder'"):
        evenhand.load(path)
    manifest = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps(manifest | {"format": 99, "evenhand": "9.9"}))
    with pytest.raises(ModelDamaged, match=r"format 99.*\('9\.9'\)"):
        evenhand.load(path)


@pytest.mark.parametrize("older", [1, 2])
def test_a_folder_of_an_older_format_says_how_to_convert(
    saved: tuple[Any, Path], older: int
) -> None:
    _, path = saved
    manifest = json.loads((path / "manifest.json").read_text())
    changed = manifest["files"] if older == 1 else manifest | {"format": older}
    (path / "manifest.json").write_text(json.dumps(changed))
    said = rf"has format {older}; .* Go on with the version that wrote it .* or train again"
    with pytest.raises(ModelDamaged, match=said):
        evenhand.load(path)


def test_what_is_not_a_model_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="is not a folder"):
        evenhand.load(tmp_path / "nothing")
    with pytest.raises(ModelDamaged, match=r"holds no manifest\.json"):
        evenhand.load(tmp_path)


def test_saving_never_overwrites_and_leaves_no_half_a_model(
    saved: tuple[Any, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, path = saved
    with pytest.raises(FileExistsError, match="Choose another folder"):
        model.save(path)

    def full(*args: object, **kwargs: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("evenhand.estimators.saving.model_folder.write_arrays", full)
    with pytest.raises(OSError, match="no space"):
        model.save(path.parent / "other")
    assert [p.name for p in path.parent.iterdir()] == ["model"]


def test_types_of_others_are_loaded_only_when_they_are_named(
    parts: Parts, settings: dict[str, Any], tmp_path: Path
) -> None:
    model = parts.fit(FairPATEClassifier(**settings))
    rows = np.zeros((2, model.encoder_.n_features_out_))
    model._fitted = replace(model.fitted_, student=Stranger().fit(rows, [0, 1]))
    path = model.save(tmp_path / "model")
    with pytest.raises(ValueError, match=r"Stranger.*trusted="):
        evenhand.load(path)
    names = [f"{Stranger.__module__}.{Stranger.__qualname__}", "sklearn.tree._tree.Tree"]
    assert type(evenhand.load(path, trusted=names).student_) is Stranger


class Stranger(RandomForestClassifier):
    """A student from outside scikit-learn."""

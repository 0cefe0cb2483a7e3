"""A stranger's folder: nothing in its skops file is imported, made or called."""

from __future__ import annotations

import pickle
import shutil
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

import evenhand
from evenhand import FairPATEClassifier
from evenhand._folder import Folder, seal
from evenhand.estimators import ModelDamaged, TypesNotTrusted
from evenhand.estimators.saving import student_files
from evenhand.learners.skops_files import not_trusted

from ...hostile_skops import callables, files_for
from ..conftest import Reseal, made_parts, made_settings

NAMES = list(callables("", "", ""))


class Tripped:
    """Touches a file when it is unpickled."""

    def __init__(self, trip: Path) -> None:
        self.trip = trip

    def __reduce__(self) -> Any:
        return (open, (str(self.trip), "w"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = made_parts().fit(FairPATEClassifier(**made_settings()))
    return model.save(tmp_path_factory.mktemp("made") / "model")


@pytest.fixture
def stage(made: Path, tmp_path: Path, reseal: Reseal) -> tuple[Path, Path, dict[str, list[Any]]]:
    """Return a model folder with room for a skops file, a tripwire, and what would touch it."""
    path = Path(shutil.copytree(made, tmp_path / "model"))
    trip = tmp_path / "tripwire"
    script, pickled = tmp_path / "doc.py", tmp_path / "a.pkl"
    script.write_text(f'""">>> open({str(trip)!r}, "w").close()"""')
    pickled.write_bytes(pickle.dumps(Tripped(trip)))
    reseal(path, lambda head: head.update(student={"kind": "skops", "file": "student.skops"}))
    return path, trip, callables(str(trip), str(script), str(pickled))


def test_there_are_callables_of_all_five_packages() -> None:
    assert len(NAMES) >= 30
    for package in ("builtins", "numpy", "scipy", "sklearn", "evenhand"):
        assert sum(name.startswith(f"{package}.") for name in NAMES) >= 4


@pytest.mark.parametrize("name", NAMES)
def test_no_callable_runs_through_any_node(name: str, stage: Any) -> None:
    path, trip, given = stage
    for label, content in files_for(name, given[name]):
        (path / "student.skops").write_bytes(content)
        seal(path, "model")
        with pytest.raises((ModelDamaged, TypesNotTrusted)):
            evenhand.load(path)
        assert not trip.exists(), label


def by_prefix(folder: Folder, name: str, trusted: Iterable[str]) -> Any:
    """The rule of format 1: five prefixes are trusted."""
    import skops.io

    content = folder.content(name)
    strange = skops.io.get_untrusted_types(data=content)
    own = ("evenhand.", "sklearn.", "numpy.", "scipy.", "builtins.")
    if any(not type_.startswith(own) for type_ in strange):
        raise TypesNotTrusted(name)
    return skops.io.loads(content, trusted=strange)


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("builtins.exec", "key of a dict"),
        ("builtins.exec", "reduce"),
        ("builtins.eval", "reduce in an estimator"),
        ("builtins.open", "loss"),
        ("numpy.testing.measure", "reduce"),
        ("numpy.load", "reduce"),
        ("numpy.memmap", "reduce"),
        ("scipy.io.FortranFile", "reduce"),
        ("numpy.savetxt", "reduce"),
    ],
)
def test_trust_by_prefix_is_convicted(
    name: str, label: str, stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The tripwires are live: the rule that this one replaces touches them.
    path, trip, given = stage
    monkeypatch.setattr(student_files, "load_skops", by_prefix)
    (path / "student.skops").write_bytes(dict(files_for(name, given[name]))[label])
    seal(path, "model")
    warnings.simplefilter("ignore")  # of what runs; pytest puts it back
    with pytest.raises(ModelDamaged):
        evenhand.load(path)
    assert trip.exists()


def test_an_error_names_every_type_and_the_way_out(stage: Any) -> None:
    path, _, given = stage
    content = dict(files_for("builtins.exec", given["builtins.exec"]))["partial"]
    (path / "student.skops").write_bytes(content)
    seal(path, "model")
    with pytest.raises(TypesNotTrusted, match=r"builtins\.exec, functools\.partial.*--trust TYPE"):
        evenhand.load(path)


def test_sparse_matrices_are_named_whatever_class_they_claim() -> None:
    # A sparse matrix of forged indices crashes the process; skops trusts the name of its base.
    content = dict(files_for("builtins.str", []))["sparse"]
    assert not_trusted(content) == {"scipy.sparse._matrix.spmatrix"}


def test_packed_files_are_refused(stage: Any) -> None:
    import io
    from zipfile import ZIP_DEFLATED, ZipFile

    path, _, _ = stage
    buffer = io.BytesIO()
    with ZipFile(buffer, "w", ZIP_DEFLATED) as archive:
        archive.writestr("schema.json", '"' + "0" * 1_000_000 + '"')
    (path / "student.skops").write_bytes(buffer.getvalue())
    seal(path, "model")
    with pytest.raises(ModelDamaged, match="is packed, which"):
        evenhand.load(path)


def test_numbers_of_scikit_learn_need_no_trust() -> None:
    import numpy as np
    import skops.io

    fitted = make_pipeline(Ridge()).fit(np.eye(3), [0, 1, 2])
    assert not_trusted(skops.io.dumps(fitted)) == set()

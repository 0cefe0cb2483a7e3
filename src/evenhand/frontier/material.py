"""Where the rows of a sweep are, and what their columns are for."""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from evenhand import _checks
from evenhand._words import ARRAYS, PIXEL_NETWORKS
from evenhand.datasets import Schema, read_table
from evenhand.datasets.catalogue import TABLES
from evenhand.datasets.features.reading import PictureReading, Progress
from evenhand.datasets.features.words import DEFAULT, NONE
from evenhand.datasets.images import ImageData
from evenhand.datasets.images.arrays import IMAGES
from evenhand.frontier import loaded_rows
from evenhand.frontier.run import DATA_KINDS

_PARTS: Final = ("private", "public", "test", "calibration")


@dataclass(frozen=True, kw_only=True)
class DataSource:
    """Where the rows are, and what their columns are for.

    Privacy
    -------
    ``fingerprint`` reads names and the declared schema, which are public. Rows are read where they
    are needed, by every process for itself: they do not travel through a scheduler.
    """

    name: str
    """A built-in data set, or a name for the files."""
    private: str | ImageData | None = None
    public: str | ImageData | None = None
    test: str | ImageData | None = None
    """``private``, ``public`` and ``test``: files, or pictures in memory: all three, or none, or
    the first and the last where only generators run, which read no public rows. Public labels are
    not read.
    """
    label: str = ""
    sensitive: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    """Columns to leave out."""
    positive: str | int | None = None
    unit: str | None = None
    """Column that says whose record a row is: the claim is then for each of these, with all of its
    records. Methods without teachers promise nothing about it, and are refused.
    """
    unit_name: str = "person"
    """What a unit is, in the claim."""
    schema: str | None = None
    """File with the declared columns in JSON: kinds, categories, bounds. Default: read from the
    public rows.
    """
    calibration: str | ImageData | None = None
    """Public rows with labels and groups, on which a notion about true classes is read.
    Default: it is read from the released answers.
    """
    calibration_fraction: float = 0.0
    """The same for a built-in data set: share of its public rows whose labels are public too."""
    public_fraction: float = 0.2
    test_fraction: float = 0.25
    """``public_fraction`` and ``test_fraction``: how a built-in data set is split."""
    kind: str = "private"
    """Whose rows they are: "private", "public stand-in" or "synthetic stand-in"; with a stand-in no
    release is made.
    """
    pictures: PictureReading | None = None
    """The files list pictures, or the set is one of ``PICTURE_SETS``: how they become features. Of
    pictures in memory, and in a file of arrays, the pixels are read by default.
    """
    network: str | None = None
    """Where the extractor is "none": the network that reads the pixels, as teacher, as student and
    of methods without teachers; one of ``PIXEL_NETWORKS``. Default: the first of them.
    """

    def __post_init__(self) -> None:
        self._refuse_other_types()
        if self.holds_arrays and self.pictures is None:
            object.__setattr__(self, "pictures", PictureReading(extractor=NONE))
        self._take_names()
        self._check_pictures()
        _checks.one_of("kind", self.kind, DATA_KINDS[:3])
        files = {"private": self.private, "public": self.public, "test": self.test}
        absent = [name for name, file in files.items() if file is None]
        if not self.has_files:
            _checks.one_of("set", self.name, (*TABLES, *loaded_rows.PICTURE_SETS))
            _checks.open_unit("public_fraction", self.public_fraction)
            _checks.open_unit("test_fraction", self.test_fraction)
            if self.calibration_fraction:
                _checks.open_unit("calibration_fraction", self.calibration_fraction)
            own = {"unit": self.unit, "schema": self.schema, "calibration": self.calibration}
            for name, value in own.items():
                if value is not None:
                    raise ValueError(
                        f"[data] {name} = {value!r} is about files of your own, and set = "
                        f"{self.name!r} is built in. Leave it out, or name the files private, "
                        f"public and test."
                    )
            return
        if self.calibration_fraction:
            raise ValueError(
                f"[data] calibration_fraction = {self.calibration_fraction:g} deals the rows of a "
                f"built-in set. Name a file of labelled public rows instead: calibration = "
                f'"labelled.csv".'
            )
        if absent and absent != ["public"]:
            raise ValueError(
                f"[data] names files, and {' and '.join(absent)} is missing. A frontier needs "
                f"private rows to learn from, public rows for classifiers, and test rows to "
                f"measure on; or name a built-in set = {', '.join(map(repr, TABLES))}."
            )
        if not self.label or not self.sensitive:
            raise ValueError(
                "[data] names files, and label or sensitive is missing. Name the column of the "
                'classes and those of the groups, for example label = "income", '
                'sensitive = ["sex"].'
            )

    def _take_names(self) -> None:
        """Refuse pictures in memory without labels or groups, and name these as they are."""
        for part in _PARTS:
            data = getattr(self, part)
            if not isinstance(data, ImageData):
                continue
            said = {"sensitive_features": data.sensitive_features}
            for name, values in (said if part == "public" else {"y": data.y, **said}).items():
                if values is None:
                    raise ValueError(
                        f"{part} holds pictures without {name}, and a frontier compares errors "
                        f"between groups. Give ImageData(..., {name}=...)."
                    )
            if not self.label:
                object.__setattr__(self, "label", "label")
            if not self.sensitive:
                names = getattr(data.sensitive_features, "columns", ("group",))
                object.__setattr__(self, "sensitive", tuple(map(str, names)))

    def _check_pictures(self) -> None:
        """Refuse a set of pictures that is read as a table, and a network that reads no pixels."""
        if self.network is not None:
            if not self.reads_pixels:
                raise ValueError(
                    f"[data] network = {self.network!r} reads the pixels of pictures. Add "
                    f"extractor = 'none', or leave network out."
                )
            _checks.one_of("network", self.network, PIXEL_NETWORKS)
        if self.pictures is None:
            if not self.has_files and self.name in loaded_rows.PICTURE_SETS:
                raise ValueError(
                    f"[data] set = {self.name!r} holds pictures. Say which extractor makes their "
                    f'features, for example extractor = "{DEFAULT}", or extractor = "none" for '
                    f"networks that read the pixels."
                )
            return
        for name in ("size", "mode"):
            if self.holds_arrays and getattr(self.pictures, name) != getattr(PictureReading, name):
                raise ValueError(
                    f"[data] {name} is about files of pictures that a table lists, and {ARRAYS} "
                    f"holds them as arrays, which are read as they are. Leave {name} out."
                )
        if self.schema is not None or self.drop:
            raise ValueError("[data] schema and drop are about tables, and these are pictures.")
        if not self.has_files and self.name in TABLES:
            raise ValueError(
                f"[data] set = {self.name!r} is a table, and extractor is about pictures. Leave it "
                f"out, or name a set of pictures: {', '.join(loaded_rows.PICTURE_SETS)}."
            )

    def _refuse_other_types(self) -> None:
        """Refuse what a TOML file can hold, and no column, file or set can be called."""
        for name in (part.name for part in fields(self) if part.name != "pictures"):
            value = getattr(self, name)
            if name in _PARTS and isinstance(value, ImageData):
                right = True
            elif name in ("sensitive", "drop"):
                right = all(isinstance(column, str) for column in value)
            elif name.endswith("_fraction"):
                right = isinstance(value, int | float) and not isinstance(value, bool)
            elif name == "positive":
                right = value is None or isinstance(value, str | int)
            else:
                right = value is None or isinstance(value, str)
            if not right:
                raise TypeError(f"[data] {name} must be text or a number, got {value!r}.")

    @property
    def reads_pixels(self) -> bool:
        """Whether the rows are the pictures themselves."""
        return self.pictures is not None and self.pictures.reads_pixels

    @property
    def architecture(self) -> Any:
        """The network that reads the pixels; None where rows are numbers."""
        if not self.reads_pixels:
            return None
        from evenhand.learners.nets.architectures import architecture_typed

        return architecture_typed(self.network or PIXEL_NETWORKS[0])

    @property
    def declared(self) -> Schema | None:
        """What is declared of the columns, label and groups too."""
        return None if self.schema is None else _declared(self.schema, _version(self.schema))

    @property
    def has_files(self) -> bool:
        """Whether the rows are the user's own."""
        return any(part is not None for part in (self.private, self.public, self.test))

    @property
    def holds_arrays(self) -> bool:
        """Whether the rows are arrays of pictures, in memory or in a file."""
        return any(map(is_array, (self.private, self.public, self.test)))

    @property
    def fingerprint(self) -> str:
        """Public fingerprint: names of files and columns, roles and split. No row is in it."""
        said: list[Any] = [self.name, self.label, self.sensitive, self.drop, self.positive]
        said.append(self.kind)
        if self.private is not None:
            files = (self.private, self.public, self.test)
            said += [
                [_name(file) for file in files if file is not None],
                [IMAGES, self.label, *self.sensitive]
                if is_array(self.private)
                else list(_columns(str(self.private), _version(self.private))),
            ]
        else:
            said += [self.public_fraction, self.test_fraction]
        # Only what is given, so that the keys of older runs stay what they are.
        more = {
            "unit": self.unit and [self.unit, self.unit_name],
            "schema": self.declared and self.declared.to_dict(),
            "calibration": self.calibration is not None and _name(self.calibration),
            "calibration_fraction": self.calibration_fraction,
            "pictures": self.pictures and self.pictures.fingerprint,
            "network": self.reads_pixels and repr(self.architecture),
        }
        said += [{name: value} for name, value in more.items() if value]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]

    def load(self, seed: int) -> loaded_rows.Material:
        """Read the rows; the seed decides the split of a built-in data set."""
        return loaded_rows.loaded(self, seed, self.versions)

    def prepare(self, progress: Progress | None = None) -> None:
        """Make the features of all pictures, so that no process has to; other rows need nothing."""
        if self.pictures is not None and not self.reads_pixels:
            if self.has_files:
                loaded_rows.pictures_of_files(self, progress)
            else:
                loaded_rows.pictures_of_set(self, progress)

    @property
    def versions(self) -> tuple[object, ...]:
        """What tells whether a file has changed since it was read."""
        files = (self.private, self.public, self.test, self.calibration, self.schema)
        return tuple(_version(file) for file in files if file is not None)


def is_array(part: str | ImageData | None) -> bool:
    """Return whether a part of the data is an array of pictures, in memory or in a file."""
    return isinstance(part, ImageData) or (part is not None and Path(part).suffix == ARRAYS)


def _name(part: str | ImageData) -> str:
    return part.name if isinstance(part, ImageData) else Path(part).name


def _version(file: str | ImageData) -> tuple[str, int, int] | None:
    """Tell one content of a file from a later one; None if there is no such file."""
    if isinstance(file, ImageData):
        return None
    path = Path(file).absolute()
    if not path.exists():
        return None
    known = path.stat()
    return str(path), known.st_mtime_ns, known.st_size


@functools.lru_cache(maxsize=8)
def _columns(file: str, _: object) -> tuple[str, ...]:
    return tuple(map(str, read_table(file).columns))


@functools.lru_cache(maxsize=8)
def _declared(file: str, _: object) -> Schema:
    try:
        return Schema.load(file)
    except (ValueError, TypeError, KeyError) as error:
        said = str(error)
        raise ValueError(said if file in said else f"{file}: {said}") from error

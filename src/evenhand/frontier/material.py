"""What a sweep trains and measures on: private, public and test rows of one data set and seed."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from evenhand import _checks, _values
from evenhand._words import PIXEL_NETWORKS
from evenhand.datasets import Dataset, Schema, inspect, read_table
from evenhand.datasets.catalogue import TABLES
from evenhand.datasets.features.reading import PictureReading, Progress
from evenhand.datasets.features.words import DEFAULT
from evenhand.datasets.images import ImageData, load_color_mnist, load_utkface
from evenhand.datasets.images.manifest import Manifest
from evenhand.datasets.split import rows_of_split
from evenhand.frontier.run import DATA_KINDS
from evenhand.typing import IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Material:
    """Three tables, or sets of pictures, and their roles.

    Parameters
    ----------
    X, y, groups : private rows; ``groups`` is read by the methods that need it
    X_public, groups_public : public rows; None where only generators run
    X_test, y_test, groups_test : rows to measure on
    positive : hashable or None
        The favourable class.
    units : whose record each private row is, where the claim is for these
    schema : Schema or None
        Declared columns of the features; else they are read from the public rows.
    declared : Schema or None
        All that is declared, of label and groups too.
    calibration : mapping
        Labelled public rows, as the arguments of ``fit`` that they are; empty without them.
    """

    X: Any
    y: pd.Series[Any]
    groups: Any
    X_public: Any
    groups_public: Any
    X_test: Any
    y_test: pd.Series[Any]
    groups_test: Any
    positive: Any
    units: pd.Series[Any] | None = None
    schema: Schema | None = None
    declared: Schema | None = None
    calibration: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class DataSource:
    """Where the rows are, and what their columns are for.

    Parameters
    ----------
    name : str
        A built-in data set, or a name for the files.
    private, public, test : str, optional
        Files: all three, or none, or the first and the last where only generators run, which read
        no public rows. Labels in the public file are not read.
    label : str
    sensitive : tuple of str
    drop : tuple of str
        Columns to leave out.
    positive : str or int, optional
    unit : str, optional
        Column that says whose record a row is: the claim is then for each of these, with all of its
        records. Methods without teachers promise nothing about it, and are refused.
    unit_name : str
        What a unit is, in the claim.
    schema : str, optional
        File with the declared columns in JSON: kinds, categories, bounds. Default: read from the
        public rows.
    calibration : str, optional
        File of public rows with labels and groups, on which a notion about true classes is read.
        Default: it is read from the released answers.
    calibration_fraction : float
        The same for a built-in data set: share of its public rows whose labels are public too.
    public_fraction, test_fraction : float
        How a built-in data set is split.
    kind : {"private", "public stand-in", "synthetic stand-in"}
        Whose rows they are: with a stand-in no release is made.
    pictures : PictureReading, optional
        The files list pictures, or the set is one of ``PICTURE_SETS``: how they become features.
    network : str, optional
        Where the extractor is "none": the network that reads the pixels, as teacher, as student and
        of methods without teachers; one of ``PIXEL_NETWORKS``. Default: the first of them.

    Privacy
    -------
    ``fingerprint`` reads names and the declared schema, which are public. Rows are read where they
    are needed, by every process for itself: they do not travel through a scheduler.
    """

    name: str
    private: str | None = None
    public: str | None = None
    test: str | None = None
    label: str = ""
    sensitive: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    positive: str | int | None = None
    unit: str | None = None
    unit_name: str = "person"
    schema: str | None = None
    calibration: str | None = None
    calibration_fraction: float = 0.0
    public_fraction: float = 0.2
    test_fraction: float = 0.25
    kind: str = "private"
    pictures: PictureReading | None = None
    network: str | None = None

    def __post_init__(self) -> None:
        self._refuse_other_types()
        self._check_pictures()
        _checks.one_of("kind", self.kind, DATA_KINDS[:3])
        files = {"private": self.private, "public": self.public, "test": self.test}
        absent = [name for name, file in files.items() if file is None]
        if not self.has_files:
            _checks.one_of("set", self.name, (*TABLES, *PICTURE_SETS))
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
            if not self.has_files and self.name in PICTURE_SETS:
                raise ValueError(
                    f"[data] set = {self.name!r} holds pictures. Say which extractor makes their "
                    f'features, for example extractor = "{DEFAULT}", or extractor = "none" for '
                    f"networks that read the pixels."
                )
            return
        if self.schema is not None or self.drop:
            raise ValueError("[data] schema and drop are about tables, and these are pictures.")
        if not self.has_files and self.name in TABLES:
            raise ValueError(
                f"[data] set = {self.name!r} is a table, and extractor is about pictures. Leave it "
                f"out, or name a set of pictures: {', '.join(PICTURE_SETS)}."
            )

    def _refuse_other_types(self) -> None:
        """Refuse what a TOML file can hold, and no column, file or set can be called."""
        for name in (part.name for part in fields(self) if part.name != "pictures"):
            value = getattr(self, name)
            if name in ("sensitive", "drop"):
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
    def has_files(self) -> bool:
        """Whether the rows are the user's own."""
        return any((self.private, self.public, self.test))

    @property
    def fingerprint(self) -> str:
        """Public fingerprint: names of files and columns, roles and split. No row is in it."""
        said: list[Any] = [self.name, self.label, self.sensitive, self.drop, self.positive]
        said.append(self.kind)
        if self.private is not None:
            files = (self.private, self.public, self.test)
            said += [
                [Path(file).name for file in files if file is not None],
                list(_columns(self.private, _version(self.private))),
            ]
        else:
            said += [self.public_fraction, self.test_fraction]
        # Only what is given, so that the keys of older runs stay what they are.
        more = {
            "unit": self.unit and [self.unit, self.unit_name],
            "schema": self.schema and _declared(self.schema, _version(self.schema)).to_dict(),
            "calibration": self.calibration and Path(self.calibration).name,
            "calibration_fraction": self.calibration_fraction,
            "pictures": self.pictures and self.pictures.fingerprint,
            "network": self.reads_pixels and repr(self.architecture),
        }
        said += [{name: value} for name, value in more.items() if value]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]

    def load(self, seed: int) -> Material:
        """Read the rows; the seed decides the split of a built-in data set."""
        return _loaded(self, seed, self.versions)

    def prepare(self, progress: Progress | None = None) -> None:
        """Make the features of all pictures, so that no process has to; other rows need nothing."""
        if self.pictures is not None and not self.reads_pixels:
            made = _pictures_of_set if not self.has_files else _pictures_of_files
            made(self, progress)

    @property
    def versions(self) -> tuple[object, ...]:
        """What tells whether a file has changed since it was read."""
        files = (self.private, self.public, self.test, self.calibration, self.schema)
        return tuple(_version(file) for file in files if file is not None)


def _version(file: str) -> tuple[str, int, int] | None:
    """Tell one content of a file from a later one; None if there is no such file."""
    path = Path(file).absolute()
    if not path.exists():
        return None
    known = path.stat()
    return str(path), known.st_mtime_ns, known.st_size


@functools.lru_cache(maxsize=4)
def _loaded(source: DataSource, seed: int, _: tuple[object, ...]) -> Material:
    if source.has_files:
        return _from_files(source)
    data, X, y, groups, positive = _whole(source)
    rows = rows_of_split(
        len(data),
        units=data.units,
        noun=getattr(data, "unit", "unit"),
        public=source.public_fraction,
        test=source.test_fraction,
        random_state=seed,
    )
    # The rows come in random order already, so the first are as good as any.
    n = round(source.calibration_fraction * len(rows.public))

    def taken(at: IntArray) -> tuple[Any, Any, Any]:
        return X.take(at, axis=0), y.take(at), groups.take(at, axis=0)

    (X_private, y_private, private), (X_test, y_test, test) = map(taken, (rows.private, rows.test))
    X_public, _, public = taken(rows.public[n:])
    return Material(
        X=X_private,
        y=y_private,
        groups=private,
        X_public=X_public,
        groups_public=public,
        X_test=X_test,
        y_test=y_test,
        groups_test=test,
        positive=positive,
        calibration=_calibration(*taken(rows.public[:n])) if n else {},
    )


def _whole(source: DataSource) -> tuple[Any, Any, pd.Series[Any], Any, Any]:
    """Return a built-in set, its rows, labels and groups, and the favourable class."""
    if source.pictures is None:
        table = _built_in(source.name)
        return table, table.X, table.y, table.groups, table.positive
    data, pictures = _pictures_of_set(source)  # without copies of a picture
    classes = sorted(set(data.y.tolist()))
    positive = classes[1] if source.positive is None and len(classes) == 2 else source.positive
    y, groups = pd.Series(data.y, name="label"), np.asarray(data.sensitive_features)
    return data, pictures, y, groups, positive


_MADE: dict[object, Any] = {}
"""The pictures of the last source in this process, as features or pixels: of whole files or a
whole set, by no seed."""


def _made_once(key: object, make: Callable[[], Any]) -> Any:
    if key not in _MADE:
        _MADE.clear()
        _MADE[key] = make()
    return _MADE[key]


def _pictures_of_set(source: DataSource, progress: Progress | None = None) -> tuple[ImageData, Any]:
    """Return a built-in set of pictures without them, and their features or pixels."""
    assert source.pictures is not None
    reading = source.pictures

    def make() -> tuple[ImageData, Any]:
        data = PICTURE_SETS[source.name](source)
        (rows,) = reading.rows([data.X], progress=progress)
        # The pictures themselves are not needed any more: one pixel stands for each.
        return replace(data, images=np.zeros((len(data), 1, 1), dtype=np.uint8)), rows

    found: tuple[ImageData, Any] = _made_once(source, make)
    return found


def _pictures_of_files(source: DataSource, progress: Progress | None = None) -> dict[str, Any]:
    """Return the pictures that each file lists, as features or pixels."""
    assert source.pictures is not None
    reading = source.pictures
    names = (source.private, source.public, source.test, source.calibration)
    files = [name for name in names if name is not None]

    def make() -> dict[str, Any]:
        listed = [Manifest.of(read_table(name), name) for name in files]
        extractor = None if reading.reads_pixels else reading.opened()
        looked = reading.look(listed, progress=progress)
        made = reading.rows(looked, extractor=extractor, progress=progress)
        return dict(zip(files, made, strict=True))

    found: dict[str, Any] = _made_once((source, source.versions), make)
    return found


def _utkface(source: DataSource) -> ImageData:
    sensitive = source.sensitive[0] if source.sensitive else "race"
    return load_utkface(label=source.label or "gender", sensitive=sensitive)


PICTURE_SETS: Final[Mapping[str, Callable[[DataSource], ImageData]]] = {
    "utkface": _utkface,
    "color-mnist": lambda source: load_color_mnist(),
}
"""Built-in sets of pictures that have groups. Of UTKFace label and sensitive may be chosen."""


def _calibration(X: Any, y: Any, groups: Any) -> dict[str, Any]:
    return {
        "X_calibration": X,
        "y_calibration": y,
        "sensitive_features_calibration": groups,
    }


@functools.lru_cache(maxsize=2)
def _built_in(name: str) -> Dataset:
    data: Dataset = TABLES[name].load()
    return data


@functools.lru_cache(maxsize=8)
def _columns(file: str, _: object) -> tuple[str, ...]:
    return tuple(map(str, read_table(file).columns))


def _from_files(source: DataSource) -> Material:
    private = _read(source, str(source.private), unit=source.unit)
    public = None if source.public is None else _read(source, source.public, labelled=False)
    test = _read(source, str(source.test))
    classes, columns = private.classes, list(private.X.columns)
    rows = {} if source.pictures is None else _pictures_of_files(source)
    _refuse_unknown_classes(str(source.test), test, classes)
    calibration: dict[str, Any] = {}
    if source.calibration is not None:
        labelled = _read(source, source.calibration)
        _refuse_unknown_classes(source.calibration, labelled, classes)
        X = rows.get(source.calibration)
        calibration = _calibration(
            _same_columns(labelled, private, source.calibration) if X is None else X,
            labelled.y,
            labelled.groups,
        )
    positive = source.positive
    if positive is None and len(classes) == 2:
        positive = classes[1]  # type: ignore[assignment]  # classes are hashable, and shown as text
    X_private, X_public, X_test = (
        None
        if part is None
        else rows[str(file)]
        if source.pictures is not None
        else _same_columns(part, private, str(file))
        for file, part in (
            (source.private, private),
            (source.public, public),
            (source.test, test),
        )
    )
    declared = None
    if source.schema is not None:
        declared = _declared(source.schema, _version(source.schema))
    return Material(
        X=X_private,
        y=private.y,
        groups=private.groups,
        X_public=X_public,
        groups_public=None if public is None else public.groups,
        X_test=X_test,
        y_test=test.y,
        groups_test=test.groups,
        positive=positive,
        units=private.units,
        schema=None if declared is None else _only(declared, columns),
        declared=declared,
        calibration=calibration,
    )


def _read(
    source: DataSource, file: str, *, unit: str | None = None, labelled: bool = True
) -> Dataset:
    """Read one file; only the private one need have every column that is left out."""
    table = read_table(file)
    if not labelled:
        table = _with_label(table, source)
    is_private = file == source.private
    declared = None
    if source.schema is not None:
        declared = _declared(source.schema, _version(source.schema))
        table = declared.parse(table, file)
    if is_private and source.pictures is None:
        _refuse_wrong(table, source, declared)
    return Dataset.from_frame(
        table,
        label=source.label,
        sensitive=source.sensitive,
        unit=unit,
        drop=[name for name in source.drop if is_private or name in table.columns],
        name=file,
    )


def _refuse_wrong(table: pd.DataFrame, source: DataSource, declared: Schema | None) -> None:
    """Stop at features that would silently be learnt wrong, all at once."""
    used = table.drop(columns=[name for name in source.drop if name in table.columns])
    named = {source.label, *source.sensitive, *([] if source.unit is None else [source.unit])}
    if not named <= set(used.columns):
        return  # said, with the nearest name, by whoever reads the roles
    found = inspect(
        used,
        label=source.label,
        sensitive=source.sensitive,
        unit=source.unit,
        schema=declared,
    )
    found.require(
        f"table {source.private}",
        "Leave them out with drop = {names} in the grid, correct them, or declare them in its "
        "schema file.",
    )


def _same_columns(rows: Dataset, private: Dataset, file: str) -> pd.DataFrame:
    """Return the features that the private rows have, in their order."""
    for name in private.X.columns:
        if name not in rows.X.columns:
            spare = [column for column in rows.X.columns if column not in private.X.columns]
            raise ValueError(
                f"{file} has no column {name!r}, which the private rows have."
                f"{_checks.did_you_mean(name, spare)} Rename it, leave it out with drop = "
                f"[{name!r}], or say what it is: unit = {name!r}."
            )
    return rows.X[list(private.X.columns)]


def _refuse_unknown_classes(file: str, rows: Dataset, classes: Sequence[Any]) -> None:
    for value in rows.classes:
        if value not in classes:
            raise ValueError(
                f"{file} holds the class {_values.quoted(value)}, which no private row has: "
                f"{_values.listed(classes, 20)}."
                f"{_values.if_shown(_checks.did_you_mean(value, classes))}"
            )


@functools.lru_cache(maxsize=8)
def _declared(file: str, _: object) -> Schema:
    try:
        return Schema.load(file)
    except (ValueError, TypeError, KeyError) as error:
        said = str(error)
        raise ValueError(said if file in said else f"{file}: {said}") from error


def _only(declared: Schema, columns: Sequence[str]) -> Schema:
    """Return what is declared of the features."""
    return Schema(columns=tuple(c for c in declared.columns if c.name in columns))


def _with_label(frame: pd.DataFrame, source: DataSource) -> pd.DataFrame:
    """Put two made-up classes in the place of public labels, which are not read."""
    return frame.assign(**{source.label: np.arange(len(frame)) % 2})

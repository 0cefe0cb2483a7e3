"""What a sweep trains and measures on: private, public and test rows of one data set and seed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from evenhand import _checks, _values
from evenhand._words import ARRAYS
from evenhand.datasets import Dataset, Schema, inspect, read_table
from evenhand.datasets.catalogue import TABLES
from evenhand.datasets.features.reading import Progress
from evenhand.datasets.images import ImageData, load_color_mnist, load_utkface
from evenhand.datasets.images.manifest import PATH, Manifest
from evenhand.datasets.split import rows_of_split
from evenhand.estimators.given_rows import take
from evenhand.estimators.spec import CALIBRATION
from evenhand.fairness.report import unit_codes
from evenhand.typing import IntArray

if TYPE_CHECKING:
    from evenhand.frontier.material import DataSource


@dataclass(frozen=True, kw_only=True, eq=False)
class Material:
    """Three tables, or sets of pictures, and their roles."""

    X: Any
    y: pd.Series[Any]
    groups: Any
    """``X``, ``y`` and ``groups``: Private rows; ``groups`` is read by the methods that need it."""
    X_public: Any
    groups_public: Any
    """``X_public`` and ``groups_public``: public rows; None where only generators run."""
    X_test: Any
    y_test: pd.Series[Any]
    groups_test: Any
    """``X_test``, ``y_test`` and ``groups_test``: rows to measure on."""
    positive: Any
    """The favourable class."""
    units: pd.Series[Any] | None = None
    units_test: IntArray | None = None
    """Codes of whose record each test row is; None where no unit has two."""
    schema: Schema | None = None
    """Declared columns of the features; else they are read from the public rows."""
    declared: Schema | None = None
    """All that is declared, of label and groups too."""
    calibration: Mapping[str, Any] = field(default_factory=dict)
    """Labelled public rows, as the arguments of ``fit`` that they are; empty without them."""


@functools.lru_cache(maxsize=4)
def loaded(source: DataSource, seed: int, versions: tuple[object, ...]) -> Material:
    """Read the rows of these versions of the files; the seed splits a built-in data set."""
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
        return take(X, at), take(y, at), take(groups, at)

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
        units_test=None if data.units is None else unit_codes(take(data.units, rows.test)),
        calibration=dict(zip(CALIBRATION, taken(rows.public[:n]), strict=True)) if n else {},
    )


def _whole(source: DataSource) -> tuple[Any, Any, pd.Series[Any], Any, Any]:
    """Return a built-in set, its rows, labels and groups, and the favourable class."""
    if source.pictures is None:
        table = _built_in(source.name)
        return table, table.X, table.y, table.groups, table.positive
    data, pictures = pictures_of_set(source)  # without copies of a picture
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


def pictures_of_set(source: DataSource, progress: Progress | None = None) -> tuple[ImageData, Any]:
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


def pictures_of_files(
    source: DataSource, progress: Progress | None = None
) -> dict[str | ImageData, Any]:
    """Return the pictures that each file lists or holds, as features or pixels."""
    assert source.pictures is not None
    reading = source.pictures
    names = (source.private, source.public, source.test, source.calibration)
    files = [name for name in names if name is not None]

    def make() -> dict[str | ImageData, Any]:
        whole = {name: data.X for name in files if (data := _arrays(source, name)) is not None}
        listed = [name for name in files if name not in whole]
        extractor = None if reading.reads_pixels else reading.opened()
        manifests = [Manifest.of(read_table(str(name)), str(name)) for name in listed]
        looked = reading.look(manifests, progress=progress) if listed else []
        parts = whole | dict(zip(listed, looked, strict=True))
        if whole:
            _refuse_two_sizes(parts)
        made = reading.rows(list(parts.values()), extractor=extractor, progress=progress)
        return dict(zip(parts, made, strict=True))

    found: dict[str | ImageData, Any] = _made_once((source, source.versions), make)
    return found


def _arrays(source: DataSource, part: str | ImageData, **named: str | None) -> ImageData | None:
    """Return pictures that are arrays, in memory or in a file; None where a table lists them.

    ``named`` are the arrays to read beside pictures and groups, as ``from_npz`` takes them.
    """
    if isinstance(part, ImageData):
        return part
    if Path(part).suffix != ARRAYS:
        return None
    return ImageData.from_npz(part, **{"label": None, **named}, sensitive=source.sensitive)


def _refuse_two_sizes(parts: Mapping[str | ImageData, Any]) -> None:
    """Raise ValueError where parts hold pictures of different sizes."""
    sizes = {_called(part): " x ".join(map(str, of.shape[1:])) for part, of in parts.items()}
    (first, size), *others = sizes.items()
    for name, other in others:
        if other != size:
            raise ValueError(
                f"Pictures of one size are learnt and measured, and those of {first} are {size} "
                f"(channels, height, width), those of {name} {other}. Resize one of them."
            )


def _called(part: str | ImageData) -> str:
    return part.name if isinstance(part, ImageData) else part


def _utkface(source: DataSource) -> ImageData:
    sensitive = source.sensitive[0] if source.sensitive else "race"
    return load_utkface(label=source.label or "gender", sensitive=sensitive)


PICTURE_SETS: Final[Mapping[str, Callable[[DataSource], ImageData]]] = {
    "utkface": _utkface,
    "color-mnist": lambda source: load_color_mnist(),
}
"""Built-in sets of pictures that have groups. Of UTKFace label and sensitive may be chosen."""


@functools.lru_cache(maxsize=2)
def _built_in(name: str) -> Dataset:
    data: Dataset = TABLES[name].load()
    return data


def _from_files(source: DataSource) -> Material:
    assert source.private is not None
    assert source.test is not None
    private = _read(source, source.private, unit=source.unit)
    public = None if source.public is None else _read(source, source.public, labelled=False)
    test = _read(source, source.test, unit=source.unit)
    classes = private.classes
    pictures = {} if source.pictures is None else pictures_of_files(source)
    _refuse_unknown_classes(_called(source.test), test, classes)

    def features(part: Dataset | None, file: str | ImageData | None) -> Any:
        if part is None or file is None:
            return None
        return pictures[file] if pictures else _same_columns(part, private, str(file))

    calibration: dict[str, Any] = {}
    if source.calibration is not None:
        labelled = _read(source, source.calibration)
        _refuse_unknown_classes(_called(source.calibration), labelled, classes)
        own = (features(labelled, source.calibration), labelled.y, labelled.groups)
        calibration = dict(zip(CALIBRATION, own, strict=True))
    positive = source.positive
    if positive is None and len(classes) == 2:
        positive = classes[1]  # type: ignore[assignment]  # classes are hashable, and shown as text
    declared = source.declared
    return Material(
        X=features(private, source.private),
        y=private.y,
        groups=private.groups,
        X_public=features(public, source.public),
        groups_public=None if public is None else public.groups,
        X_test=features(test, source.test),
        y_test=test.y,
        groups_test=test.groups,
        positive=positive,
        units=private.units,
        units_test=None if test.units is None else unit_codes(test.units),
        schema=None
        if declared is None
        else Schema(columns=tuple(c for c in declared.columns if c.name in private.X)),
        declared=declared,
        calibration=calibration,
    )


def _read(
    source: DataSource, file: str | ImageData, *, unit: str | None = None, labelled: bool = True
) -> Dataset:
    """Read one part; only the private one need have the unit, and every column left out."""
    is_private, declared = file == source.private, source.declared
    own = {"label": source.label if labelled else None, "unit": unit if is_private else None}
    pictures = _arrays(source, file, **own)
    table = read_table(str(file)) if pictures is None else _table_of(source, pictures)
    if not labelled:  # public labels are not read: two made-up classes stand in their place
        table = table.assign(**{source.label: np.arange(len(table)) % 2})
    if declared is not None:
        table = declared.parse(table, _called(file))
    if is_private and source.pictures is None:
        _refuse_wrong(table, source, declared)
    try:
        return Dataset.from_frame(
            table,
            label=source.label,
            sensitive=source.sensitive,
            unit=unit if is_private or unit in table.columns else None,
            drop=[name for name in source.drop if is_private or name in table.columns],
            name=_called(file),
        )
    except (TypeError, ValueError) as error:
        raise ValueError(f"{_called(file)}: {error}") from error


def _table_of(source: DataSource, pictures: ImageData) -> pd.DataFrame:
    """Return what is known of pictures beside them, under the names that the source has."""
    table = pd.DataFrame(pictures.sensitive_features)
    if not isinstance(pictures.sensitive_features, pd.DataFrame):  # an array has no name
        table.columns = pd.Index(source.sensitive[: table.shape[1]])
    beside = {PATH: range(len(pictures)), source.label: pictures.y}
    if source.unit is not None and pictures.units is not None:
        beside[source.unit] = pictures.units
    known = {name: values for name, values in beside.items() if values is not None}
    return table.reset_index(drop=True).assign(**known)


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

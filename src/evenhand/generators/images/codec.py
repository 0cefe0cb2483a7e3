"""Pictures, labels and groups as arrays that a method reads, and back as the user's own values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand import _checks, _values
from evenhand._checks import did_you_mean
from evenhand._numerals import text_of
from evenhand._units import first_records, ids_of
from evenhand.datasets.columns import Column
from evenhand.fairness.grouping import MOST_VALUES
from evenhand.generators.conditions import Conditions
from evenhand.typing import Array, ArrayLike, IntArray

FloatPixels: TypeAlias = NDArray[np.float32]

LABEL: Final = "label"
SENSITIVE: Final = "sensitive"
_SAID: Final = {LABEL: "label", SENSITIVE: "group"}
_WAYS: Final = {
    LABEL: "Leave these pictures out.",
    SENSITIVE: "Leave these pictures out, or make them a group of their own, such as 'unknown'.",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class ImageSample:
    """Pictures that were generated."""

    images: FloatPixels
    """In [0, 1]. Shape (n, h, w) or (n, h, w, 3)."""
    y: Array
    """Label of each, in the user's values. Shape (n,)."""
    sensitive_features: Array | pd.DataFrame | None
    """Group of each, in the user's values; None where the generator knows no groups."""

    def __len__(self) -> int:
        return len(self.images)

    @property
    def uint8(self) -> NDArray[np.uint8]:
        """The pictures as bytes, 0 to 255."""
        bytes_: NDArray[np.uint8] = np.rint(self.images * 255.0).astype(np.uint8)
        return bytes_


@dataclass(frozen=True, kw_only=True, eq=False)
class EncodedImages:
    """The private pictures as a method reads them."""

    pixels: FloatPixels
    """In [0, 1]. Shape (n, channels, height, width)."""
    condition: IntArray
    """What the generator is conditioned on: combination of label and group, or the label alone.
    Shape (n,).
    """
    label: IntArray
    group: IntArray
    """``label`` and ``group``: codes of each; the group is 0 throughout where no groups were given.
    Shape (n,).
    """
    n_labels: int
    n_groups: int
    units: Array | None
    """Whose picture it is."""
    per_unit: int
    """Pictures that one unit has at most; 1 without units."""

    def __len__(self) -> int:
        return len(self.pixels)

    @property
    def balanced(self) -> tuple[IntArray, int]:
        """Code that a sampler balances, and how many there are: the label with the group."""
        return self.label * self.n_groups + self.group, self.n_labels * self.n_groups


@dataclass(frozen=True, kw_only=True)
class PublicValues:
    """All values that a label or a sensitive column may have, in the user's own type."""

    name: str
    """Of the column, by which conditions are asked for."""
    values: tuple[str | int | float | bool, ...]
    """Distinct as text."""
    dtype: str
    """Of the user's column."""

    @property
    def texts(self) -> tuple[str, ...]:
        """The values as conditions are compared."""
        return tuple(map(text_of, self.values))

    @classmethod
    def of(
        cls, name: str, column: ArrayLike, declared: Sequence[Any] | None, role: str
    ) -> tuple[PublicValues, IntArray]:
        """Return the values and the code of each row.

        Raises
        ------
        ValueError
            For missing values and values that were not declared; rows are named.
        """
        if isinstance(declared, str):  # else each of its characters would be a value
            raise TypeError(
                f"The values of the {_SAID[role]} are a sequence, got the text {declared!r}. Write "
                f"all of them: [{declared!r}, ...]."
            )
        flat = np.asarray(column)
        if flat.ndim != 1 or flat.dtype.fields is not None:
            raise ValueError(
                f"The {_SAID[role]} {name!r} must be one value for each picture, got shape "
                f"{flat.shape} and dtype {flat.dtype}. Take one column of it."
            )
        given = pd.Series(flat, name=name)
        gone = np.flatnonzero(given.isna().to_numpy(dtype=bool))
        if gone.size:
            raise ValueError(
                f"The {_SAID[role]} is missing for {_values.rows(gone, 'picture')}. {_WAYS[role]}"
            )
        # Of objects by their texts: to pandas True is 1.
        codes = Column(given).codes if given.dtype == object else pd.factorize(given)[0]
        most = _checks.MOST_CLASSES if role == LABEL else MOST_VALUES
        if declared is None and codes.max(initial=0) >= most:
            raise ValueError(
                f"The {_SAID[role]} {name!r} has more than {most} different values, and all of "
                f"them would be published with the generator. Make fewer of them, or name all "
                f"there are: {'classes' if role == LABEL else 'groups'}=[...]."
            )
        plain = [_scalar(given.iloc[row]) for row in np.unique(codes, return_index=True)[1]]
        listed = plain if declared is None else [_scalar(value) for value in declared]
        place: dict[str, int] = {}
        for value in sorted(listed, key=_order) if declared is None else listed:
            place.setdefault(text_of(value), len(place))
        kept = {text_of(value): value for value in reversed(listed)}
        for at, value in enumerate(plain):
            if text_of(value) not in place:
                row = int(np.flatnonzero(codes == at)[0])
                raise ValueError(
                    f"The {_SAID[role]} {_values.quoted(value)} of "
                    f"{_values.row(row, 'picture')} is not among the declared ones: "
                    f"{', '.join(map(repr, listed[:12]))}."
                    f"{_values.if_shown(did_you_mean(value, listed))} Correct it, or declare it."
                )
        if len(place) < (2 if role == LABEL else 1):
            raise ValueError(
                f"Labels have at least two values, got {_values.listed(listed) or 'none'}. "
                f"Declare all of them as classes=."
            )
        at_place = np.array([place[text_of(value)] for value in plain], dtype=np.int64)
        found = cls(name=name, values=tuple(kept[text] for text in place), dtype=str(given.dtype))
        strange = [v for v in found.values if not replace(found, values=(v,))._comes_back]
        if strange:
            raise ValueError(
                f"The {_SAID[role]} {name!r} holds {found.dtype} and cannot hold all values that "
                f"are declared: {_values.first(map(repr, strange))}. Leave these out, or convert "
                f"the column."
            )
        return found, at_place[codes]

    @property
    def _comes_back(self) -> bool:
        """Whether the user's type holds the values as they are written."""
        try:
            drawn = self.decode(np.arange(len(self.values))).tolist()
        except (ValueError, OverflowError):
            return False
        return self.texts == tuple(map(text_of, drawn))

    def decode(self, codes: IntArray) -> Array:
        """Return values in the user's type."""
        if self.dtype == "bool":  # to NumPy the text "False" is true
            return np.array([text == "True" for text in self.texts])[codes]
        dtype = self.dtype if self.dtype.startswith(("int", "uint", "float")) else "object"
        return np.array(self.values, dtype=dtype)[codes]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"name": self.name, "values": list(self.values), "dtype": self.dtype}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PublicValues:
        """Read what ``to_dict`` wrote."""
        return cls(
            name=str(values["name"]), values=tuple(values["values"]), dtype=str(values["dtype"])
        )


@dataclass(frozen=True, kw_only=True)
class ImageCodec:
    """Size of the pictures, and the values of labels and groups."""

    height: int
    width: int
    channels: int
    """1 for grey pictures, given as (n, h, w), or 3 for colour, (n, h, w, 3)."""
    label: PublicValues
    sensitive: tuple[PublicValues, ...] = ()
    """Empty where no groups were given."""
    framed: bool = False
    """Whether groups were given as a DataFrame and are given back as one."""
    conditioned: bool = True
    """Whether the generator is conditioned on the groups."""

    @property
    def size(self) -> tuple[int, int, int]:
        """Channels, height and width."""
        return self.channels, self.height, self.width

    @property
    def conditions(self) -> Conditions:
        """The combinations that the generator is conditioned on."""
        columns = (self.label, *(self.sensitive if self.conditioned else ()))
        return Conditions(
            names=tuple(c.name for c in columns), categories=tuple(c.texts for c in columns)
        )

    @property
    def memory(self) -> tuple[str, float]:
        """Return what one record is, and the bytes that it needs: drawn, turned, as bytes."""
        words = " x ".join(map(str, self.size))
        return f"pictures of {words} pixels", 16.0 * math.prod(self.size)

    def decode(
        self, made: FloatPixels, conditions: IntArray, rng: np.random.Generator, index: Any = None
    ) -> ImageSample:
        """Return pictures (n, channels, h, w) with labels and groups as the user has them."""
        pixels = np.clip(made, 0.0, 1.0).astype(np.float32)
        label, *groups = self.conditions.parts(conditions)
        return ImageSample(
            images=self.pictures(pixels),
            y=self.label.decode(label),
            sensitive_features=self.groups(groups),
        )

    def pictures(self, pixels: FloatPixels) -> FloatPixels:
        """Turn (n, channels, h, w) into (n, h, w) or (n, h, w, 3)."""
        if self.channels == 1:
            return np.ascontiguousarray(pixels[:, 0])
        return np.ascontiguousarray(pixels.transpose(0, 2, 3, 1))

    def groups(self, parts: Sequence[IntArray]) -> Array | pd.DataFrame | None:
        """Return the user's group values from codes; None where they are not known."""
        if not parts:
            return None
        columns = {c.name: c.decode(at) for c, at in zip(self.sensitive, parts, strict=True)}
        return pd.DataFrame(columns) if self.framed else columns[self.sensitive[0].name]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "size": [self.channels, self.height, self.width],
            "label": self.label.to_dict(),
            "sensitive": [column.to_dict() for column in self.sensitive],
            "framed": self.framed,
            "conditioned": self.conditioned,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ImageCodec:
        """Read what ``to_dict`` wrote."""
        channels, height, width = map(int, values["size"])
        return cls(
            channels=channels,
            height=height,
            width=width,
            label=PublicValues.from_dict(values["label"]),
            sensitive=tuple(map(PublicValues.from_dict, values["sensitive"])),
            framed=bool(values["framed"]),
            conditioned=bool(values["conditioned"]),
        )


def read_images(
    images: ArrayLike,
    y: ArrayLike,
    sensitive_features: Any,
    *,
    classes: Sequence[Any] | None,
    groups: Sequence[Any] | Mapping[str, Sequence[Any]] | None,
    unit_ids: ArrayLike | None,
    per_unit: int,
    conditioned: bool,
) -> tuple[ImageCodec, EncodedImages]:
    """Check the private pictures and bound what one unit adds.

    Privacy
    -------
    Of the pictures of a unit the first ``per_unit`` are kept: which ones depends on the order of
    its own pictures alone. Every check stops the run; none of them changes another record.
    """
    given = checked_pictures(images)
    _checks.same_length(images=given, y=np.asarray(y))
    label, label_codes = PublicValues.of(_name(y, LABEL), y, classes, LABEL)
    columns, group_codes, framed = _sensitive(sensitive_features, groups, len(given), label.name)
    grey = given.ndim == 3
    codec = ImageCodec(
        height=given.shape[1],
        width=given.shape[2],
        channels=1 if grey else 3,
        label=label,
        sensitive=columns,
        framed=framed,
        conditioned=conditioned and bool(columns),
    )
    if codec.conditioned:
        _refuse_repeated_labels(label, label_codes, columns, group_codes)
    sizes = tuple(len(column.values) for column in columns)
    joined = (
        np.ravel_multi_index(tuple(group_codes), sizes).astype(np.int64)
        if columns
        else np.zeros(len(given), dtype=np.int64)
    )
    n_groups = int(np.prod(sizes))
    kept, units = np.arange(len(given)), None
    _checks.per_unit(per_unit, unit_ids is not None, whose="unit_ids=")
    if unit_ids is not None:
        whose = pd.Series(np.asarray(unit_ids, dtype=object))
        _checks.same_length(images=given, unit_ids=whose)
        if whose.isna().any():
            rows = np.flatnonzero(whose.isna().to_numpy(dtype=bool))
            raise ValueError(
                f"unit_ids is missing for {_values.rows(rows, 'picture')}. "
                f"Give each of these pictures an id of its own."
            )
        ids = ids_of(whose)
        kept = np.flatnonzero(first_records(ids, per_unit))
        units = ids[kept]
    label_codes, joined = label_codes[kept], joined[kept]
    return codec, EncodedImages(
        pixels=as_pixels(given[kept]),
        condition=label_codes * n_groups + joined if codec.conditioned else label_codes,
        label=label_codes,
        group=joined,
        n_labels=len(label.values),
        n_groups=n_groups,
        units=units,
        per_unit=per_unit if units is not None else 1,
    )


def as_pixels(images: Array) -> FloatPixels:
    """Turn (n, h, w) or (n, h, w, 3) into (n, channels, h, w) in [0, 1]."""
    scale = np.float32(255.0 if images.dtype == np.uint8 else 1.0)
    pixels = images.astype(np.float32) / scale
    first = pixels[:, None] if images.ndim == 3 else pixels.transpose(0, 3, 1, 2)
    return np.ascontiguousarray(first)


def checked_pictures(given: ArrayLike) -> Array:
    """Return pictures as one array; stop at what is none, and say which picture is wrong."""
    each: Any = given
    if str(getattr(given, "dtype", "object")) == "object":  # a list, or an array of arrays
        each = list(each)
        other = [i for i, picture in enumerate(each) if np.shape(picture) != np.shape(each[0])]
        if other:
            raise ValueError(
                f"Pictures must have one size, and that of "
                f"{_values.rows(np.array(other), 'picture')} is not that of the first. Resize "
                f"them, or read files with "
                f"ImageData.from_csv(..., size=64)."
            )
    images = np.asarray(each)
    colour = images.ndim == 4 and images.shape[3] == 3
    if images.ndim != 3 and not colour:
        raise ValueError(
            f"images must have shape (n, height, width) or (n, height, width, 3), got "
            f"{images.shape}. Channels come last; grey pictures have no channel axis."
        )
    if not len(images) or not images[0].size:
        raise ValueError(f"There are no pictures: images has shape {images.shape}.")
    if images.dtype == np.uint8:
        return images
    if not np.issubdtype(images.dtype, np.floating):
        to = "float64" if images.dtype == bool else "uint8"
        raise TypeError(
            f"images must hold uint8 (0 to 255) or floats in [0, 1], got dtype {images.dtype}. "
            f"Convert them: images.astype({to!r})."
        )
    flat = images.reshape(len(images), -1)
    wrong = np.flatnonzero(~((flat >= 0).all(axis=1) & (flat <= 1).all(axis=1)))
    if wrong.size:
        raise ValueError(
            f"Pixels must lie in [0, 1], and some do not in "
            f"{_values.rows(wrong, 'picture')}. Divide by the largest possible value, known "
            f"without looking at the pictures, or pass uint8."
        )
    return images


def _sensitive(
    given: Any,
    declared: Sequence[Any] | Mapping[str, Sequence[Any]] | None,
    n: int,
    label: str,
) -> tuple[tuple[PublicValues, ...], list[IntArray], bool]:
    """Return the columns of the sensitive attribute and the code of every row in each."""
    if given is None:
        if declared is not None:
            raise ValueError("groups= declares the values of sensitive_features, which is missing.")
        return (), [], False
    framed = isinstance(given, pd.DataFrame)
    frame = given if framed else pd.DataFrame({_name(given, SENSITIVE): np.asarray(given)})
    if not frame.shape[1]:
        raise ValueError("sensitive_features has no column.")
    if len(frame) != n:
        raise ValueError(f"There are {n} pictures, and sensitive_features has {len(frame)} rows.")
    named = (
        {str(k): v for k, v in declared.items()}
        if isinstance(declared, Mapping)
        else {str(name): declared for name in frame.columns}
    )
    if frame.shape[1] > 1 and declared is not None and not isinstance(declared, Mapping):
        raise ValueError(
            "With several sensitive columns groups= is a dict: one list of values per column."
        )
    columns, codes = [], []
    for name in frame.columns:
        if str(name) == label:
            raise ValueError(f"{label!r} is both the label and a sensitive column.")
        values, at = PublicValues.of(str(name), frame[name], named.get(str(name)), SENSITIVE)
        columns.append(values)
        codes.append(at)
    return tuple(columns), codes, framed


def _refuse_repeated_labels(
    label: PublicValues,
    label_codes: IntArray,
    columns: Sequence[PublicValues],
    group_codes: Sequence[IntArray],
) -> None:
    """Stop where a sensitive column is the label: all other combinations would be empty."""
    said = np.array(label.texts)[label_codes]
    for column, codes in zip(columns, group_codes, strict=True):
        if np.array_equal(np.array(column.texts)[codes], said):
            raise ValueError(
                f"The groups {column.name!r} repeat the labels, so no label has pictures of "
                f"another group. Leave them out: balance=('label',) evens the classes out. To "
                f"balance the minibatches of teachers by them, choose condition='label'."
            )


def _name(values: Any, otherwise: str) -> str:
    """Return the name of a Series, or what to call an array."""
    name = getattr(values, "name", None)
    return otherwise if name is None else str(name)


def _scalar(value: Any) -> str | int | float | bool:
    """Return a plain value that JSON knows."""
    plain = value.item() if isinstance(value, np.generic) else value
    if not isinstance(plain, str | int | float | bool):
        raise TypeError(
            f"Labels and groups are numbers, text or booleans, got {_values.quoted(value)} "
            f"({type(value).__name__})."
        )
    return plain


def _order(value: str | int | float | bool) -> tuple[bool, float, str]:
    """Numbers by size, then text."""
    if isinstance(value, str):
        return True, 0.0, value
    return False, float(value), ""

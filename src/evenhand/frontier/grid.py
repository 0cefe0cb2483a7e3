"""A grid: what a sweep varies, from a TOML file or from Python, and the settings it stands for."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from evenhand import _checks
from evenhand._notions import called_now
from evenhand._random import LARGEST_SEED
from evenhand._words import ARRAYS
from evenhand.datasets.features.reading import PictureReading
from evenhand.datasets.features.words import NONE, file_in, parts_of, with_file
from evenhand.fairness.notions import notion_named
from evenhand.frontier.arguments import (
    ARGUMENTS,
    DEFAULTS,
    HIDDEN,
    NO_LAYER,
    SETTING,
    WHOLE,
    arguments_of,
    check_value,
    chosen_methods,
    of_payload,
    refuse_mixed,
    refuse_unread,
)
from evenhand.frontier.loaded_rows import PICTURE_SETS
from evenhand.frontier.material import DataSource, is_array
from evenhand.frontier.run import Plain, Setting
from evenhand.frontier.subjects import PAYLOADS, SUBJECTS, draws_rows, generators_of

MOST_SETTINGS: Final = 1_000_000
"""A grid above it is a slip of the pen more likely than a plan."""

_TOP: Final = ("title", "seeds", "data", "runs")
_PICTURES: Final = tuple(field.name for field in fields(PictureReading))
_DATA: Final = (
    "set",
    *(field.name for field in fields(DataSource) if field.name != "pictures"),
    "images",
    *_PICTURES,
)
_RANGE: Final = ("from", "to", "n", "spacing")
_SPACINGS: Final = ("linear", "log")


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A data set, and products of arguments to train on it.

    Parameters
    ----------
    data : DataSource
    runs : tuple of mapping of str to sequence
        Each is a product: for every argument (``arguments.ARGUMENTS``) the values it takes;
        ``method`` is needed, and ``"auto"`` stands for the one that fits the case. A method leaves
        out what it does not read, so that several methods can stand in one product; a setting that
        comes up twice is one setting. Of ``hidden`` a value is a width, or a sequence of widths; of
        ``setting`` it is a mapping of settings of a generator.
    seeds : tuple of int
        Every setting is trained once for each: a seed decides split and models, not noise.
    title : str

    Examples
    --------
    >>> grid = Grid(
    ...     data=DataSource(name="adult"),
    ...     runs=({"method": ["fairpate", "non-private"], "epsilon": [1, 3], "margin": [0.05]},),
    ... )
    >>> [(s.method, dict(s.arguments)) for s in grid.settings()]
    [('fairpate', {'epsilon': 1.0, 'margin': 0.05}),
     ('fairpate', {'epsilon': 3.0, 'margin': 0.05}), ('non-private', {})]
    """

    data: DataSource
    runs: tuple[Mapping[str, Sequence[Any]], ...]
    seeds: tuple[int, ...] = (0,)
    title: str = ""
    choices: tuple[str, ...] = field(init=False, compare=False, repr=False)
    """Which methods stand in the place of ``"auto"``, each with the reason."""

    def __post_init__(self) -> None:
        if not self.runs:
            raise ValueError("The grid has nothing to run: add a table [[runs]] with a method.")
        runs: list[Mapping[str, Sequence[Plain]]] = []
        reasons: list[str] = []
        units = self.data.unit is not None

        def read(run: Mapping[str, Sequence[Plain]]) -> None:
            for product, why in chosen_methods(_values_of(run), units):
                _refuse_other_data(self.data, product["method"])
                runs.append(_read(of_payload(product, _payload(self.data))))
                reasons.append(why)

        _checks.together(partial(read, run) for run in self.runs)
        object.__setattr__(self, "runs", tuple(runs))
        object.__setattr__(self, "choices", tuple(dict.fromkeys(filter(None, reasons))))
        methods = [str(method) for run in self.runs for method in run["method"]]
        _checks.together(
            (
                partial(_refuse_no_public_rows, self.data, methods),
                partial(_refuse_records_for_units, self.data, methods),
                partial(_refuse_pixels, self.data, methods, self.runs),
                partial(refuse_mixed, methods),
            )
        )
        seeds = tuple(_checks.at_least("seeds", seed, 0) for seed in self.seeds)
        if max(seeds, default=0) > LARGEST_SEED:
            raise ValueError(f"seeds must be at most {LARGEST_SEED}, got {max(seeds)}.")
        if not seeds:
            raise ValueError("The grid has nothing to run: seeds is empty. Leave it out for one.")
        object.__setattr__(self, "seeds", tuple(dict.fromkeys(seeds)))
        size = sum(np.prod([len(v) for v in run.values()], dtype=float) for run in self.runs)
        if size * len(seeds) > MOST_SETTINGS:
            raise ValueError(
                f"The grid stands for {size * len(seeds):,.0f} settings, above {MOST_SETTINGS:,}. "
                f"Take fewer values for some of its arguments."
            )
        _refuse_gates_without_truth(self.data, self.settings())  # every one of them can be made

    @classmethod
    def from_toml(cls, path: str | Path) -> Grid:
        """Read a grid; files that it names are relative to its own folder.

        Raises
        ------
        ValueError
            For what is no TOML, an unknown key, method or word (with the nearest name), a range
            that holds nothing, and a value out of range.
        """
        path = Path(path)
        try:
            table = tomllib.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:  # tomllib's own error is a ValueError
            raise ValueError(f"{path} is not TOML: {error}") from None
        try:
            return cls.from_dict(table, folder=path.parent)
        except (ValueError, TypeError, OverflowError) as error:
            raise ValueError(f"{path}: {error}") from None

    @classmethod
    def from_dict(cls, table: Mapping[str, Any], *, folder: Path | None = None) -> Grid:
        """Make a grid of what stood in the file."""
        _refuse_unknown("grid", table, _TOP)
        data = table.get("data")
        if not isinstance(data, Mapping):
            raise ValueError('The table [data] is missing. For example: [data] set = "adult".')
        runs = table.get("runs", [])
        if not isinstance(runs, list) or not all(isinstance(run, Mapping) for run in runs):
            raise ValueError("Runs are tables of their own: head each of them with [[runs]].")
        seeds = table.get("seeds", [0])
        return cls(
            data=_source(data, folder or Path()),
            runs=tuple({name: _values(name, value) for name, value in run.items()} for run in runs),
            seeds=tuple(seeds) if isinstance(seeds, list) else (seeds,),
            title=str(table.get("title", "")),
        )

    def settings(self) -> list[Setting]:
        """Return all settings in one order: seeds last, so that a front is whole early."""
        name, fingerprint = self.data.name, self.data.fingerprint
        found: dict[str, Setting] = {}
        wrong: dict[str, None] = {}
        for seed in self.seeds:
            for run in self.runs:
                names = [name for name in ARGUMENTS if name in run]
                for values in itertools.product(*(run[name] for name in names)):
                    given = dict(zip(names, values, strict=True))
                    method = str(given.pop("method"))
                    try:
                        arguments = arguments_of(method, given)
                    except ValueError as error:
                        wrong[str(error)] = None
                        continue
                    setting = Setting(
                        data=name,
                        fingerprint=fingerprint,
                        method=method,
                        arguments=arguments,
                        seed=seed,
                    )
                    found.setdefault(setting.key, setting)
        if wrong:
            raise ValueError(" ".join(wrong))
        return list(found.values())


def _values_of(run: Mapping[str, Sequence[Plain]]) -> dict[str, tuple[Plain, ...]]:
    """Return the checked values of each argument."""
    _refuse_unknown("runs", run, ARGUMENTS)
    if "method" not in run:
        raise ValueError(
            "The grid has nothing to run: [[runs]] names no method. For example: "
            'method = "fair-shares".'
        )
    checked: dict[str, tuple[Plain, ...]] = {}

    def check(name: str, given: Sequence[Plain]) -> None:
        one = isinstance(given, str | int | float | Mapping)
        values: tuple[Any, ...] = (given,) if one else tuple(given)
        if name == HIDDEN:  # no layer is a value too
            values = values or (NO_LAYER,)
        if not values:
            raise ValueError(f"The grid has nothing to run: {name} is an empty list.")
        checked[name] = tuple(check_value(name, value) for value in values)

    _checks.together(partial(check, *item) for item in run.items())
    return checked


def _read(run: Mapping[str, Sequence[Plain]]) -> Mapping[str, Sequence[Plain]]:
    """Return a product if some method of it reads each of its arguments."""
    refuse_unread([str(method) for method in run["method"]], run)
    return run


def _refuse_records_for_units(data: DataSource, methods: Sequence[str]) -> None:
    for method in methods:
        if data.unit is not None and SUBJECTS[method].private and not _takes_units(method):
            able = ", ".join(repr(m) for m in SUBJECTS if _takes_units(m))
            raise ValueError(
                f"The method {method!r} promises something for each record, and [data] unit = "
                f"{data.unit!r} asks for a promise for each {data.unit_name}. Take {able}, or "
                f"leave out unit."
            )


def _takes_units(method: str) -> bool:
    return "unit_ids" in SUBJECTS[method].takes


def _refuse_no_public_rows(data: DataSource, methods: Sequence[str]) -> None:
    """Raise ValueError where classifiers are to run on files without public rows."""
    reading = [method for method in methods if not draws_rows(method)]
    if data.has_files and data.public is None and reading:
        raise ValueError(
            f"[data] public is missing, and method = {_listed(reading)} is a classifier. Name a "
            f'file of public rows, public = "public.csv"; generators alone need none.'
        )


def _refuse_pixels(
    data: DataSource, methods: Sequence[str], runs: Sequence[Mapping[str, Sequence[Plain]]]
) -> None:
    """Raise ValueError where rows are pictures, and a method or a rule reads rows of numbers."""
    if not data.reads_pixels:
        return
    deciding = [method for method in methods if not draws_rows(method)]
    blind = [method for method in deciding if not SUBJECTS[method].reads_pictures]
    if blind:
        able = ", ".join(repr(m) for m, known in SUBJECTS.items() if known.reads_pictures)
        raise ValueError(
            f"[data] extractor = 'none' hands out pixels, and method = {_listed(blind)} reads "
            f"features. Name an extractor, or take {able}."
        )
    for name, does in (
        (HIDDEN, "makes layers of features"),
        ("degree", "bends columns of numbers"),
    ):
        if any(name in run for run in runs):
            raise ValueError(
                f"[data] extractor = 'none' hands out pixels, and {name} {does}. Name an "
                f"extractor, or leave {name} out; the network of pixels is [data] network."
            )
    if any("blind_margin" in run for run in runs):
        raise ValueError(
            "[data] extractor = 'none' hands out pixels, and the rule of blind_margin infers "
            "groups from features. Name an extractor, or keep a margin in training."
        )


def _payload(data: DataSource) -> str:
    return "tables" if data.pictures is None else "images"


def _refuse_other_data(data: DataSource, methods: Sequence[Plain]) -> None:
    """Raise ValueError for generators of other data than there are."""
    payload = _payload(data)
    drawn = [str(method) for method in methods if draws_rows(str(method))]
    if strange := [method for method in drawn if method not in generators_of(payload)]:
        (other,) = (of for of in PAYLOADS if of != payload)
        hint = "" if payload == "images" else f" Pictures are listed by images = true, or {ARRAYS}."
        raise ValueError(
            f"method = {_listed(strange)} draws {PAYLOADS[other]}, and [data] holds "
            f"{'pictures' if payload == 'images' else 'a table'}, of which "
            f"{', '.join(generators_of(payload))} draw more.{hint}"
        )
    if drawn and data.pictures is not None and not data.reads_pixels:
        raise ValueError(
            f"method = {_listed(drawn)} learns from pixels, and [data] extractor = "
            f"{data.pictures.extractor!r} makes features of them. Take extractor = 'none'."
        )


def _listed(words: Sequence[str]) -> str:
    return ", ".join(map(repr, dict.fromkeys(words)))


def _refuse_gates_without_truth(data: DataSource, settings: Sequence[Setting]) -> None:
    """Raise ValueError where a gate is about true classes and no rows tell of them."""
    if data.calibration is not None or data.calibration_fraction:
        return
    for setting in settings:
        name = str(setting.arguments.get("fairness", DEFAULTS["fairness"]))
        if "reject_margin" in setting.arguments and notion_named(name).needs_labels:
            raise ValueError(
                f"reject_margin with fairness = {name!r} refuses by true classes, and nothing "
                f"tells it of them. Add labelled public rows to [data]: calibration = a file, or "
                f"calibration_fraction = 0.2 for a built-in set; or take 'demographic-parity'."
            )
        gated = SUBJECTS[setting.method].accepts("admit_by") and setting.arguments.get(
            "answer_margin", True
        )
        if gated and notion_named(name).needs_labels:
            raise ValueError(
                f"The method {setting.method!r} with fairness = {name!r} has a gate about true "
                f"classes, and nothing tells it of them. Add labelled public rows to [data]: "
                f"calibration = a file, or calibration_fraction = 0.2 for a built-in set; or read "
                f"the margin from the released answers, for the student alone: answer_margin = "
                f"false, or 'fair-shares'."
            )


def _values(name: str, value: Any) -> list[Any]:
    """Return the values that stand for one argument: one, a list, or a range."""
    if isinstance(value, list):
        return value
    if not isinstance(value, Mapping) or name == SETTING:
        return [value]
    _refuse_unknown(name, value, _RANGE)
    absent = [key for key in _RANGE[:3] if key not in value]
    if absent:
        raise ValueError(
            f"The range {name} misses {', '.join(absent)}: {{ from = 1, to = 8, n = 4 }}."
        )
    low, high = float(value["from"]), float(value["to"])
    n = _checks.at_least(f"n of the range {name}", value["n"], 1)
    spacing = _checks.one_of("spacing", value.get("spacing", "linear"), _SPACINGS)
    if low > high or (n == 1 and low < high):
        raise ValueError(
            f"The range {name} = {{ from = {low:g}, to = {high:g}, n = {n} }} is impossible: from "
            f"must not be above to, and n = 1 needs both to be one number."
        )
    if spacing == "log" and low <= 0:
        raise ValueError(
            f"The range {name} starts at {low:g}, and a spacing of 'log' needs from > 0. Use "
            f"spacing = 'linear', or a list."
        )
    points = np.geomspace(low, high, n) if spacing == "log" else np.linspace(low, high, n)
    if name in (*WHOLE, HIDDEN):
        return [round(point) for point in points.tolist()]
    # Six digits: a margin of 0.05 is meant, not of 0.05000000000000001.
    return [float(f"{point:.6g}") for point in points.tolist()]


def _source(table: Mapping[str, Any], folder: Path) -> DataSource:
    _refuse_unknown("data", table, _DATA)
    given = dict(table)
    if "set" in given:
        given["name"] = given.pop("set")
    for part in ("private", "public", "test", "calibration", "schema"):
        if part in given:
            given[part] = str(folder / str(given[part]))
    given["pictures"] = _reading(given, folder)
    given.setdefault("name", Path(given["private"]).name if "private" in given else "")
    for many in ("sensitive", "drop"):
        if many in given:
            value = given[many]
            given[many] = (value,) if isinstance(value, str) else tuple(value)
    return DataSource(**given)


def _reading(given: dict[str, Any], folder: Path) -> PictureReading | None:
    """Take what is said about pictures out of [data]."""
    asked = given.pop("images", None)
    if asked not in (None, True, False):
        raise TypeError(f"[data] images must be true or false, got {asked!r}.")
    said = {name: given.pop(name) for name in _PICTURES if name in given}
    if is_array(given.get("private")):
        said, asked = {"extractor": NONE} | said, True
    if not (asked or (asked is None and given.get("name") in PICTURE_SETS and said)):
        if said:
            raise ValueError(
                f"[data] {', '.join(said)} is about pictures. Add images = true if the files list "
                f"them in a column path, or leave it out."
            )
        return None
    for name in ("mean", "sd"):
        if name in said:
            values = said[name] if isinstance(said[name], list) else [said[name]]
            said[name] = tuple(float(value) for value in values)
    word, kept = said.get("extractor"), said.get("features")
    if isinstance(word, str):
        files = [file for part in parts_of(word) if (file := file_in(part)) is not None]
        said["extractor"] = with_file(word, str(folder / files[0])) if len(files) == 1 else word
    if isinstance(kept, str) and kept != NONE:
        said["features"] = str(folder / kept)
    return PictureReading(**said)


def _refuse_unknown(where: str, table: Mapping[str, Any], known: Sequence[str]) -> None:
    for key in table:
        if key not in known:
            hint = called_now(key) or _checks.did_you_mean(key, known)
            raise ValueError(
                f"[{where}] does not know the key {key!r}.{hint} It takes: {', '.join(known)}."
            )

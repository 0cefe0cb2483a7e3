"""Pictures on the command line: options about them, and tables of pictures as rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from evenhand._words import PIXEL_NETWORKS
from evenhand.cli.command import Options
from evenhand.cli.console import note
from evenhand.cli.options import choice

if TYPE_CHECKING:
    from pathlib import Path

    from evenhand.cli.console import Bars
    from evenhand.cli.results import Trial
    from evenhand.cli.tables import TrainingTables
    from evenhand.datasets.columns import TypedTable
    from evenhand.datasets.features.extractor import FeatureExtractor
    from evenhand.datasets.features.reading import PictureReading

PICTURES: Final = "Pictures"
MODES: Final = ("RGB", "L")
NETWORK_FILE: Final = "extractor"
"""What the file of a user's own network is called in the folder of a model, before its ending."""

_ABOUT: Final = ("extractor", "size", "mode", "features")
_OF_FILE: Final = ("trained_on", "licence", "mean", "sd")
_MOST_SHOWN: Final = 24


@dataclass(frozen=True, kw_only=True)
class ReadsPictures(Options):
    """Options of every command that may read tables of pictures."""

    extractor: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE.onnx|NETWORK=FILE|none",
            help="The public network that makes features of the pictures: efficientnet-lite0 (any "
            "picture), dlib-face (aligned faces), a network in a file of ONNX, resnet50=FILE or "
            "densenet121=FILE with published weights of it, or several of these joined by +; with "
            "none, teachers read the pixels. It costs no privacy, and the claim names it.",
            show_default="efficientnet-lite0; later that of the model",
            rich_help_panel=PICTURES,
        ),
    ] = None
    size: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="PIXELS",
            help="Height and width: the middle square of every picture is cut out and resized.",
            show_default="as they are, all of one size; later as in training",
            rich_help_panel=PICTURES,
        ),
    ] = None
    mode: Annotated[
        str | None,
        choice(
            MODES,
            help="Read pictures in colour or in grey.",
            show_default="RGB; later as in training",
            rich_help_panel=PICTURES,
        ),
    ] = None
    features: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER|none",
            help="Private folder in which features are kept, so that no later run computes them "
            "again. It is as private as the pictures.",
            show_default="the user's cache",
            rich_help_panel=PICTURES,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class TrainsOnPictures(ReadsPictures):
    """Options of a command that trains on pictures."""

    images: Annotated[
        bool,
        typer.Option(
            "--images",
            help="The tables list pictures: their column path names files, relative to the folder "
            "of the table. All columns but path, label, sensitive and unit are passed over.",
        ),
    ] = False
    trained_on: Annotated[
        str | None,
        typer.Option(
            metavar="WORDS",
            help="What data made the network in a file, for the claim.",
            show_default=False,
            rich_help_panel=PICTURES,
        ),
    ] = None
    licence: Annotated[
        str | None,
        typer.Option(
            metavar="WORDS",
            help="On what terms the network in a file may be used, for the claim.",
            show_default=False,
            rich_help_panel=PICTURES,
        ),
    ] = None
    mean: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER,...",
            help="Of each channel, or of all: the network in FILE.onnx takes (pixel - mean) / sd "
            "of pixels in [0, 1].",
            show_default="0",
            rich_help_panel=PICTURES,
        ),
    ] = None
    sd: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER,...", help="See --mean.", show_default="1", rich_help_panel=PICTURES
        ),
    ] = None
    show_pictures: Annotated[
        int,
        typer.Option(
            min=0,
            max=_MOST_SHOWN,
            metavar="N",
            help="Show the first N public pictures, groups in turn, in the report, small and with "
            "what is predicted. It then publishes them: public pictures show people too. Private "
            "ones are never shown.",
            rich_help_panel=PICTURES,
        ),
    ] = 0


def check(given: Any, *, teacher: str, reads_pixels: bool) -> None:
    """Refuse options about pictures where there are none, and of tables where there are.

    Parameters
    ----------
    given : TrainOptions
    teacher : str
        The kind of teachers that was asked for.
    reads_pixels : bool
        Whether the method can learn from pixels.
    """
    if not given.images:
        named = (*_ABOUT, *_OF_FILE, "show_pictures")
        for name in named:
            if name in given.given:
                raise ValueError(
                    f"{_flag(name)} is about pictures. Add --images if {given.private} lists them "
                    f"in a column path, or leave {_flag(name)} out."
                )
        if teacher in PIXEL_NETWORKS:
            raise ValueError(
                f"--teacher {teacher} reads the pixels of pictures. Add --images --extractor none, "
                f"or take --teacher mlp."
            )
        if given.architecture:
            raise ValueError(
                f"--architecture {given.architecture} reads the pixels of pictures. Add --images "
                f"--extractor none, or take --hidden for a network on rows."
            )
        return
    for name in ("schema", "drop", "keep"):
        if getattr(given, name):
            raise ValueError(
                f"--{name} is about the columns of a table, and with --images pictures alone are "
                f"learnt. Leave one of them out."
            )
    if given.show_pictures and given.public is None:
        raise ValueError(
            "--show-pictures shows public pictures, and --public is missing: rows of the private "
            "table are never shown. Give --public FILE, or leave --show-pictures out."
        )
    pixels = given.extractor == "none"
    if pixels and not reads_pixels:
        raise ValueError(
            f"--method {given.method} reads features of pictures, got --extractor none. Name an "
            f"extractor, or take a method that reads pixels: fair-shares, fairpate, pate, dpsgd."
        )
    if pixels and teacher not in PIXEL_NETWORKS:
        raise ValueError(
            f"--extractor none hands pixels to the teachers, and --teacher {teacher} reads "
            f"features. Take --teacher {', '.join(PIXEL_NETWORKS)}, or name an extractor."
        )
    if not pixels and teacher in PIXEL_NETWORKS:
        raise ValueError(
            f"--teacher {teacher} reads pixels. Add --extractor none, or take another --teacher."
        )
    if not pixels and given.architecture:
        raise ValueError(
            f"--architecture {given.architecture} reads pixels. Add --extractor none, or take "
            f"--hidden for a network on features."
        )
    if pixels and given.hidden:
        raise ValueError(
            f"--hidden is about networks on features, and --extractor none hands out pixels. Take "
            f"--architecture {', '.join(PIXEL_NETWORKS)}, or name an extractor."
        )


def asked_for(given: Any) -> PictureReading | None:
    """Return how pictures are to be read, by the options of a training; None for tables."""
    if not given.images:
        return None
    from evenhand.datasets.features.reading import PictureReading

    named = {name: getattr(given, name) for name in (*_ABOUT, *_OF_FILE)}
    numbers = {name: _numbers(name, named.pop(name)) for name in ("mean", "sd")}
    return PictureReading(
        **{name: value for name, value in (named | numbers).items() if value is not None}
    )


def with_rows(
    reading: PictureReading,
    tables: TrainingTables,
    labelled: dict[str, Any],
    trial: Trial | None,
    bars: Bars,
) -> tuple[TrainingTables, dict[str, Any], Trial | None]:
    """Look at all pictures that tables list, and put their features in the place of their names."""
    extractor = None if reading.reads_pixels else reading.opened()
    parts = {
        "X": tables.X,
        "X_public": tables.X_public,
        "X_calibration": labelled.get("X_calibration"),
        "test": None if trial is None else trial.X,
    }
    listed = {name: manifest for name, manifest in parts.items() if manifest is not None}
    files = dict(zip(listed, reading.look([*listed.values()], progress=bars), strict=True))
    _say_where(reading)
    made = reading.rows([*files.values()], extractor=extractor, progress=bars)
    rows = dict(zip(listed, made, strict=True))
    if trial is not None:
        trial = replace(trial, X=rows["test"])
    if labelled:
        labelled = labelled | {"X_calibration": rows["X_calibration"]}
    tables = replace(
        tables,
        X=rows["X"],
        X_public=rows.get("X_public"),
        side=files["X"].side,
        public_pictures=files.get("X_public"),
    )
    return tables, labelled, trial


def rows_of(model: Any, table: TypedTable, given: ReadsPictures, bars: Bars) -> Any:
    """Return the rows of a table as the model reads them: its columns, or what its pictures are.

    Raises
    ------
    ValueError
        If the extractor is another than that of training, the table lists no pictures, or an option
        about pictures was given for a model that reads none.
    """
    from evenhand.cli import tables
    from evenhand.cli.output import Training
    from evenhand.datasets.pixels import PixelEncoder

    fitted = model.fitted_
    if fitted.extractor is None and not isinstance(fitted.core.encoder, PixelEncoder):
        for name in _ABOUT:
            if name in given.given:
                raise ValueError(
                    f"{_flag(name)} is about pictures, and this model reads the columns of a "
                    f"table. Leave it out."
                )
        return tables.features_of(model, table)
    manifest = tables.listed(table)
    known = Training.read(given.model)  # type: ignore[attr-defined]  # of ReadsModel
    said = {} if known is None or known.pictures is None else known.pictures
    reading = _as_before(model, given, said)
    extractor = None if reading.reads_pixels else _the_same(model, reading)
    side = None if "side" not in said else tuple(said["side"])
    files = reading.look([manifest], side=side, progress=bars)
    rows: Any
    (rows,) = reading.rows(files, extractor=extractor, progress=bars)
    if reading.reads_pixels:
        return rows
    # A file may be called otherwise now; what it computes is the same.
    rows, columns = replace(rows, extractor=fitted.extractor), fitted.columns
    if not columns:
        return rows
    frame = rows.frame()
    if tuple(frame.columns) != tuple(columns):
        raise ValueError(
            "This model reads further columns beside the features of pictures, and a table of "
            "pictures has features alone. Predict in Python, where it was trained."
        )
    return frame


def shown(model: Any, tables: TrainingTables, n: int) -> tuple[Any, ...]:
    """Return the first public pictures, groups in turn, for the report, with what is predicted."""
    if not n or tables.public_pictures is None:
        return ()
    import numpy as np

    from evenhand.cli.tables import sensitive_features
    from evenhand.estimators.fitted import decide
    from evenhand.fairness.groups import encode_groups
    from evenhand.report.pictures import ShownPicture

    files, given = tables.public_pictures, None
    names: tuple[str, ...] = ("",)
    codes = np.zeros(len(files), dtype=np.int64)
    if tables.groups is not None:
        given = sensitive_features(tables.groups)
        coded = encode_groups(given)
        names, codes = coded.names, coded.codes
    turn = np.empty(len(codes), dtype=np.int64)  # which one of its group a row is
    for z in range(len(names)):
        turn[codes == z] = np.arange((codes == z).sum())
    rows = np.lexsort((codes, turn))[:n]
    groups = None if given is None or not model.needs_group_at_prediction_ else given.iloc[rows]
    said = decide(model, tables.X_public[rows], groups)
    return tuple(
        ShownPicture.of(picture, row=int(row), group=names[codes[row]], predicted=str(label))
        for picture, row, label in zip(files[rows], rows, said.tolist(), strict=True)
    )


def network_of_user(reading: PictureReading | None) -> dict[str, bytes]:
    """Return the file of the user's own network, under the name that it has in a model folder."""
    if reading is None or reading.file is None:
        return {}
    return {_name_in_folder(reading.file): reading.file.read_bytes()}


def _name_in_folder(file: Path) -> str:
    return f"{NETWORK_FILE}{file.suffix.lower()}"


def remembered(reading: PictureReading, tables: TrainingTables) -> dict[str, Any]:
    """Return what a model folder remembers of how pictures were read; all of it is public."""
    from evenhand.datasets.features.words import with_file

    assert tables.side is not None
    word, file = reading.extractor, reading.file
    return {
        "size": reading.size,
        "mode": reading.mode,
        "side": list(tables.side),
        "extractor": word if file is None else with_file(word, _name_in_folder(file)),
        "mean": list(reading.mean),
        "sd": list(reading.sd),
    }


def _as_before(model: Any, given: ReadsPictures, known: dict[str, Any]) -> PictureReading:
    """Return how pictures are read for a model: as in training, but for what is asked for."""
    from evenhand.datasets.features.reading import PictureReading
    from evenhand.datasets.features.words import NONE, file_in, parts_of

    record = model.fitted_.extractor
    word = given.extractor
    if record is None:
        if word not in (None, NONE):
            raise ValueError(
                f"This model reads the pixels of pictures and no features, got --extractor {word}. "
                f"Leave it out."
            )
        word = NONE
    elif word is None:
        word = _word_of_training(model, given, known)
    of_file: dict[str, Any] = {}
    parts = parts_of(word)
    if any(map(file_in, parts)):
        of_file = {"trained_on": record.trained_on, "licence": record.licence}
    if any(part == file_in(part) for part in parts):  # of ONNX
        of_file |= {k: v for k in ("mean", "sd") if (v := getattr(record, k)) is not None}
        of_file |= {k: tuple(known[k]) for k in ("mean", "sd") if k in known}
    return PictureReading(
        extractor=word,
        size=given.size or known.get("size"),
        mode=given.mode or known.get("mode", "RGB"),
        features=given.features,
        **of_file,
    )


def _word_of_training(model: Any, given: Any, known: dict[str, Any]) -> str:
    """Return the word of the extractor that a model was trained with; its file is in the folder."""
    from evenhand.datasets.features.words import file_in, parts_of, with_file, word_of

    record = model.fitted_.extractor
    if (word := known.get("extractor")) is not None:
        files = [file for part in parts_of(word) if (file := file_in(part)) is not None]
        return with_file(word, str(given.model / files[0])) if files else str(word)
    if (word := word_of(record)) is None:
        raise ValueError(
            f"This model reads features by a network of the user's own, {record.name!r} "
            f"{record.version} (digest {record.digest[:12]}), which is not in its folder. Name its "
            f"file: --extractor {record.name}.onnx."
        )
    return word


def _the_same(model: Any, reading: PictureReading) -> FeatureExtractor:
    """Open the extractor, if it is the one of training."""
    from evenhand.datasets.features.extractor import ExtractorRecord

    extractor, record = reading.opened(), model.fitted_.extractor
    found = ExtractorRecord.of(extractor)
    if (found.digest, found.dimension) != (record.digest, record.dimension):
        raise ValueError(
            f"This model reads {record}, and {reading.extractor} is {found}. Their numbers mean "
            f"different things: use the extractor, and the version of it, of training."
        )
    return extractor


def _say_where(reading: PictureReading) -> None:
    """Say where features of private pictures are left."""
    if reading.kept_in is not None:
        note(
            f"Features are kept in {reading.kept_in}, for later runs; they are as private as the "
            f"pictures (--features none keeps none)."
        )


def _numbers(name: str, words: str | None) -> tuple[float, ...] | None:
    if words is None:
        return None
    try:
        return tuple(float(word) for word in words.split(","))
    except ValueError:
        raise ValueError(
            f"{_flag(name)} must be numbers, got {words!r}. For example {_flag(name)} "
            f"0.485,0.456,0.406."
        ) from None


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"

"""``evenhand synthesize PICTURES.npz``: synthetic pictures, with their claim and a report."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from zipfile import BadZipFile

import numpy as np

from evenhand._checks import did_you_mean, one_of
from evenhand.cli import vocabulary
from evenhand.cli.console import Bars
from evenhand.cli.drawn import GAPS, files_beside, measured_table, summary_of, write_claim
from evenhand.cli.failures import as_bad_input, told_once
from evenhand.cli.folder import whole_file

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.datasets.images import ImageData
    from evenhand.generators.images import ImageEvaluation, ImageSample, ImageSynthesizer

PICTURES: Final = "images"
ENDING: Final = ".npz"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the command line says about pictures.

    Parameters
    ----------
    private, out : Path
    test : Path or None
    label : str
        Name of the array of labels.
    sensitive : sequence of str
        Names of the arrays of groups.
    unit : str or None
        Name of the array of ids.
    unit_name : str
    per_unit : int
    epsilon, delta : float
    rows : int
    balance : tuple of str
    method : str or None
    noise : str
    seed : int or None
    overwrite : bool
    save, sign : Path or None
    """

    private: Path
    out: Path
    test: Path | None
    label: str
    sensitive: Sequence[str]
    unit: str | None
    unit_name: str
    per_unit: int
    epsilon: float
    delta: float
    rows: int
    balance: tuple[str, ...]
    method: str | None
    noise: str
    seed: int | None
    overwrite: bool
    save: Path | None
    sign: Path | None


def files_of(out: Path) -> dict[str, Path]:
    """Return where pictures, claim and report are written."""
    if out.suffix != ENDING:
        raise ValueError(f"--out holds pictures and must end in {ENDING}, got {out}.")
    return files_beside(out, "pictures")


def make_pictures(
    asked: Asked, files: dict[str, Path], bars: Bars
) -> tuple[ImageSynthesizer, dict[str, Any], list[Any]]:
    """Learn, draw, measure and write; return the generator, a summary and what to show."""
    from evenhand.generators.images import IMAGE_METHODS, MeanEmbeddingImages
    from evenhand.privacy import Budget

    known = {kind.method: kind for kind in IMAGE_METHODS.values()}
    method = one_of("--method", asked.method or MeanEmbeddingImages.method, known)
    arrays = _read(asked.private, [PICTURES, *_named(asked)])
    private = _data(arrays, asked, asked.private)
    test = None
    if asked.test is not None:
        test = _data(
            _read(asked.test, [PICTURES, asked.label, *asked.sensitive]), asked, asked.test
        )
    options: dict[str, Any] = (
        {} if asked.noise == "exact" else {"noise": vocabulary.noise(asked.noise)}
    )
    generator = known[method](random_state=asked.seed, **options)
    with as_bad_input(TypeError, MemoryError), told_once():
        generator.fit(
            private.images,
            _series(private.y, asked.label),
            sensitive_features=_frame(private),
            budget=Budget(epsilon=asked.epsilon, delta=asked.delta),
            unit_ids=None if asked.unit is None else arrays[asked.unit],
            unit_name=asked.unit_name,
            per_unit=asked.per_unit,
            progress=bars,
        )
    bars.begin("drawing pictures")
    drawn = generator.sample(asked.rows, balance=asked.balance, random_state=asked.seed)
    found = None if test is None else _evaluate(drawn, test, private, bars)
    bars.begin("writing")
    _write(generator, drawn, found, test, asked, files)
    if asked.save is not None:
        generator.save(asked.save, sign=asked.sign)
    conditions = _conditions(drawn, generator.conditions_.names[0])
    summary = summary_of(generator, conditions, found) | {
        "method": method,
        "out": str(asked.out),
        "report": str(files["report"]),
        "generator": None if asked.save is None else str(asked.save),
    }
    return generator, summary, _measured(found)


def _named(asked: Asked) -> list[str]:
    return [asked.label, *asked.sensitive, *([] if asked.unit is None else [asked.unit])]


def _read(path: Path, names: Sequence[str]) -> dict[str, Any]:
    """Return arrays of a file; nothing in it is run."""
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    no_array = ValueError(
        f"{path} is not a file of arrays of numbers or text ({ENDING}). Write it with "
        f"numpy.savez; objects are not read, for they could run code."
    )
    try:
        held = np.load(path, allow_pickle=False)
    except (OSError, EOFError, ValueError, BadZipFile):
        raise no_array from None
    if not isinstance(held, np.lib.npyio.NpzFile):
        raise no_array
    with held:
        for name in names:
            if name not in held.files:
                raise ValueError(
                    f"{path} has no array {name!r}; it has {', '.join(map(repr, held.files))}."
                    f"{did_you_mean(name, held.files)} Pictures are read from the array 'images'."
                )
        try:
            return {name: held[name] for name in names}
        except (OSError, EOFError, ValueError, BadZipFile):
            raise no_array from None


def _data(arrays: dict[str, Any], asked: Asked, path: Path) -> ImageData:
    import pandas as pd

    from evenhand.datasets.images import ImageData

    lengths = {name: values.shape[:1] for name, values in arrays.items()}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{name} {n[0] if n else 'none'}" for name, n in lengths.items())
        raise ValueError(f"The arrays of {path} have different lengths: {said}.")
    with as_bad_input(TypeError, ValueError, where=str(path)):
        return ImageData(
            images=arrays[PICTURES],
            y=arrays[asked.label],
            sensitive_features=pd.DataFrame({name: arrays[name] for name in asked.sensitive}),
            name=path.stem,
        )


def _series(values: Any, name: str) -> Any:
    import pandas as pd

    return pd.Series(values, name=name)


def _frame(data: ImageData) -> Any:
    return data.sensitive_features


def _evaluate(
    drawn: ImageSample, test: ImageData, private: ImageData, bars: Bars
) -> ImageEvaluation:
    from evenhand.generators.images import evaluate_images

    return evaluate_images(drawn, test, train=private, progress=bars)


def _conditions(drawn: ImageSample, label: str) -> pd.DataFrame:
    """Return labels and groups of what was drawn, by their names."""
    import pandas as pd

    frame, groups = pd.DataFrame({label: drawn.y}), drawn.sensitive_features
    return frame.join(groups) if isinstance(groups, pd.DataFrame) else frame


def _write(
    generator: ImageSynthesizer,
    drawn: ImageSample,
    found: ImageEvaluation | None,
    test: ImageData | None,
    asked: Asked,
    files: dict[str, Path],
) -> None:
    """Write the pictures, the claim and the report: all of them, or none."""
    from evenhand.report import write_image_report

    told = _conditions(drawn, asked.label)
    named = {str(name): told[name].to_numpy() for name in told.columns}
    # Text as fixed-width arrays: objects would make a pickle.
    named = {k: v.astype(str) if v.dtype == object else v for k, v in named.items()}
    with ExitStack() as stack:
        made = {
            name: stack.enter_context(whole_file(path, overwrite=asked.overwrite))
            for name, path in files.items()
        }
        with made["pictures"].open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **{PICTURES: drawn.uint8}, **named)
        write_claim(generator, made["claim"])
        write_image_report(
            generator,
            made["report"],
            evaluation=found,
            test=test,
            title=f"Synthetic pictures like {asked.private.name}",
            dataset={"Private pictures": asked.private.name, "Drawn": f"{len(drawn):,}"},
        )


def _measured(found: ImageEvaluation | None) -> list[Any]:
    if found is None:
        return []
    more = []
    if found.judged is not None:
        more = [
            ("KL of the groups shown, to even ones", f"{found.judged.balance.kl.value:.5f}"),
            ("  by a classifier whose accuracy is", f"{found.judged.accuracy:.3f}"),
        ]
    return measured_table("pictures", found, GAPS, more)

"""What a command writes: model folders and files, each whole or not at all, and tables."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from evenhand._arrow import require_arrow
from evenhand._roles import Roles
from evenhand.cli.failures import as_bad_input

if TYPE_CHECKING:
    import pandas as pd

    from evenhand._signing import PrivateKey
    from evenhand.fairness import Grouping

TRAINING: Final = "training.json"
REPORT: Final = "report.html"
TEXT: Final = (".csv", ".csv.gz")
PARQUET: Final = (".parquet", ".pq")
_SYSTEM: Final = ("/proc", "/sys")
_SEPARATORS: Final = re.compile(r"[/\\\0]")


@dataclass(frozen=True, kw_only=True)
class Training:
    """What the command line remembers of a run. Public; no claim rests on it.

    Predictions of pictures rest on ``pictures``, by which new ones are cut as those of training. It
    stands with the files of the model, in ``training.json``: the defaults of
    ``evenhand evaluate``, and the mark by which ``evenhand demo`` knows a folder of its own.
    """

    command: str
    label: str
    sensitive: tuple[str, ...]
    reference: str
    margin: float | None
    positive: str | None
    grouping: Grouping | None = None
    pictures: dict[str, Any] | None = None
    unit: str | None = None

    def __post_init__(self) -> None:
        texts = (self.command, self.label, self.reference, *self.sensitive, self.positive or "")
        texts += (self.unit or "",)
        if not all(isinstance(text, str) for text in texts):
            raise TypeError(
                "command, label, reference, sensitive, positive and unit must be texts."
            )
        if self.margin is not None and not isinstance(self.margin, int | float):
            raise TypeError("margin must be a number or null.")

    @classmethod
    def of(
        cls,
        command: str,
        roles: Roles,
        *,
        reference: str,
        margin: float | None,
        positive: Any,
        grouping: Grouping | None = None,
        pictures: dict[str, Any] | None = None,
    ) -> Training:
        """Remember the roles of the columns and what was asked for, and how pictures were read."""
        return cls(
            command=command,
            label=roles.label,
            sensitive=roles.sensitive,
            reference=reference,
            margin=margin,
            positive=None if positive is None else str(positive),
            grouping=grouping or None,
            pictures=pictures,
            unit=roles.unit,
        )

    @classmethod
    def read(cls, folder: Path) -> Training | None:
        """Read it back; None for a model that was saved from Python."""
        file = folder / TRAINING
        if not file.is_file():
            return None
        errors = (ValueError, TypeError, KeyError, AttributeError, RecursionError)
        with as_bad_input(*errors, where=f"{file} is damaged"):
            values = json.loads(file.read_text(encoding="utf-8"))
            if not isinstance(values, dict):
                raise TypeError("it must hold a JSON object.")
            if (grouping := values.get("grouping")) is not None:
                from evenhand.fairness import Grouping

                values["grouping"] = Grouping.from_dict(grouping)
            values["sensitive"] = tuple(values["sensitive"])
            values["pictures"] = _checked_pictures(values.get("pictures"))
            return cls(**values)

    def write(self, folder: Path) -> None:
        """Write it into ``folder``."""
        grouping = None if self.grouping is None else self.grouping.to_dict()
        values = asdict(replace(self, grouping=None)) | {"grouping": grouping}
        text = json.dumps(values, indent=2, ensure_ascii=False) + "\n"
        (folder / TRAINING).write_text(text, encoding="utf-8")


def _checked_pictures(pictures: Any) -> dict[str, Any] | None:
    """Return how pictures were read, as it stands in a file, checked."""
    if pictures is None:
        return None
    size, (height, width) = pictures["size"], pictures["side"]
    for number in (height, width, 1 if size is None else size):
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise ValueError("sizes of pictures must be whole numbers from 1 on.")
    if pictures["mode"] not in ("RGB", "L"):
        raise ValueError("the mode of pictures must be RGB or L.")
    read = {"size": size, "mode": pictures["mode"], "side": [height, width]}
    if set(pictures) == set(read):  # of an earlier version
        return read
    word, more = pictures["extractor"], {name: pictures[name] for name in ("mean", "sd")}
    if not isinstance(word, str) or _SEPARATORS.search(word):
        raise ValueError("the extractor of pictures must be a word, or a file of this folder.")
    for name, values in more.items():
        if not isinstance(values, list) or not all(isinstance(v, int | float) for v in values):
            raise ValueError(f"{name} of pictures must be a list of numbers.")
    if len(pictures) != len(read) + 1 + len(more):
        raise ValueError("pictures must say size, mode, side, extractor, mean and sd, and no more.")
    return read | {"extractor": word} | more


def require_free(out: Path, option: str = "--out", or_else: str = "") -> None:
    """Refuse a place that is taken, before anything is spent; ``option`` names it."""
    if out.is_symlink() or (out.exists() and (not out.is_dir() or any(out.iterdir()))):
        raise FileExistsError(
            f"{out} exists and is not empty. Choose another folder with {option}, or remove this "
            f"one first{or_else}."
        )
    nearest = next(folder for folder in out.absolute().parents if folder.exists())
    _require_writable(nearest, f" with {option}")


def _require_writable(folder: Path, where: str = "") -> None:
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(f"{folder} cannot be written. Choose another folder{where}.")


def require_free_or_demo(out: Path) -> None:
    """Like ``require_free``, but a folder that holds an earlier demo and nothing else will do."""
    if out.is_dir() and not out.is_symlink() and _is_demo(out):
        return
    require_free(out)


def write_model_folder(
    model: Any,
    out: Path,
    *,
    training: Training,
    write_report: Callable[[Path], object],
    replace_demo: bool = False,
    key: PrivateKey | None = None,
    copies: Mapping[str, bytes] | None = None,
) -> None:
    """Save the model, what is remembered and the report under one manifest: all, or nothing.

    Parameters
    ----------
    write_report : callable
        Called with the path of the report.
    replace_demo : bool
        Put it in the place of an earlier demo.
    key : PrivateKey, optional
        Signs the folder.
    copies : mapping of str to bytes, optional
        Public files that are kept with the model, by their names in the folder.
    """
    from evenhand._folder import seal

    out = out.absolute()
    out.parent.mkdir(parents=True, exist_ok=True)
    # Made beside its place and moved there at the end: a run that is killed leaves no half model.
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}-") as scratch:
        made = Path(scratch) / "model"
        model.save(made)
        training.write(made)
        write_report(made / REPORT)
        for name, content in (copies or {}).items():
            (made / name).write_bytes(content)
        seal(made, "model", key)
        if replace_demo and out.is_dir() and _is_demo(out):
            os.replace(out, Path(scratch) / "earlier")
        else:
            require_free(out)
        os.replace(made, out)


def require_place(out: Path, *, overwrite: bool | None = None) -> None:
    """Refuse to write anywhere but to a new file, or, if asked, in the place of a regular one.

    ``overwrite`` is None where the command has no such option.
    """
    if not out.absolute().parent.is_dir():
        raise FileNotFoundError(
            f"The folder {out.absolute().parent} does not exist. Make it first."
        )
    real = out.absolute().parent.resolve() / out.name
    if any(real.is_relative_to(system) for system in _SYSTEM):
        raise PermissionError(f"{out} belongs to the system and is no place for a file.")
    if out.is_symlink() or (out.exists() and not out.is_file()):
        kind = "a link" if out.is_symlink() else "a folder" if out.is_dir() else "a device"
        raise FileExistsError(f"{out} is {kind} and no regular file. Choose another name.")
    if out.exists() and not overwrite:
        or_else = "" if overwrite is None else ", or add --overwrite"
        raise FileExistsError(f"{out} exists. Choose another name{or_else}.")
    _require_writable(out.absolute().parent)


@contextmanager
def whole_file(out: Path, *, overwrite: bool | None = None) -> Iterator[Path]:
    """Give a path to write to, and put the file in its place once it is whole."""
    require_place(out, overwrite=overwrite)
    with tempfile.TemporaryDirectory(dir=out.absolute().parent, prefix=f".{out.name}-") as scratch:
        made = Path(scratch) / out.name
        yield made
        require_place(out, overwrite=overwrite)  # somebody may have put something else there
        os.replace(made, out)


def _is_demo(folder: Path) -> bool:
    """Whether ``folder`` holds what ``demo`` wrote, and nothing of anybody else."""
    from evenhand._folder import read_folder

    try:
        read_folder(folder, ("model",), ValueError)
        training = Training.read(folder)
    except (OSError, ValueError):
        return False
    return training is not None and training.command == "demo"


def require_table_name(out: Path, option: str = "--out") -> None:
    """Refuse a name that says another format than what would be written."""
    name = out.name.lower()
    if out.suffix and not name.endswith((*TEXT, *PARQUET)):
        raise ValueError(
            f"{option} names {out}, and a table is written as CSV or Parquet. End the name with "
            f"{', '.join((*TEXT, *PARQUET))}."
        )
    if name.endswith(PARQUET):
        require_arrow()


def write_table(frame: pd.DataFrame, made: Path | None, *, raw: bool = False) -> None:
    """Write a table into a file, or as CSV on stdout; ``raw`` leaves its cells as they are.

    Days, which ``attrs`` of the table list, are days (date32) in Parquet.
    """
    if made is not None and made.suffix.lower() in PARQUET:
        import pyarrow as pa

        from evenhand._frames import DAYS

        stored = pa.Schema.from_pandas(frame, preserve_index=False)
        for name in frame.attrs.get(DAYS, ()):
            at = stored.get_field_index(name)
            stored = stored.set(at, pa.field(name, pa.date32()))
        frame.to_parquet(made, index=False, schema=stored)  # no spreadsheet runs what it holds
        return
    from evenhand.datasets.csv_cells import neutral_table

    chosen = frame if raw else neutral_table(frame)
    chosen.to_csv(sys.stdout if made is None else made, index=False)

"""A fitted generator as a folder of plain files: JSON and safetensors, never pickle."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from safetensors.numpy import load_file, save_file

from evenhand._version import __version__
from evenhand.generators.codec import Conditions, TableCodec
from evenhand.generators.plan import SignalToNoise
from evenhand.privacy import Guarantee

FORMAT: Final = 1
MODEL, CLAIM, MANIFEST, ARRAYS = "model.json", "claim.json", "manifest.json", "arrays.safetensors"


class GeneratorDamaged(ValueError):
    """A generator's folder that is not what ``save`` wrote: a file is missing, cut or edited."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SavedAccount:
    """The books of a finished run, as they were saved. Nothing can be charged to them."""

    record: Mapping[str, Any]

    @property
    def spent(self) -> float:
        """Sum of ``mu**2`` that the run charged."""
        return float(self.record["mu_squared_spent"])

    def to_dict(self) -> dict[str, Any]:
        """Return the account as plain values, as ``Ledger.to_dict`` did."""
        return dict(self.record)


def save(generator: Any, path: Path) -> Path:
    """Write ``generator`` to the new folder ``path``: all of it, or nothing.

    Raises
    ------
    FileExistsError
        If something is there already.
    """
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise FileExistsError(
            f"{path} exists and is not empty. Choose another folder, or remove this one first."
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as scratch:
        folder = Path(scratch) / "generator"
        folder.mkdir()
        _write(generator, folder)
        if path.exists():
            path.rmdir()
        os.replace(folder, path)
    return path


def restore(path: Path, methods: Mapping[str, type]) -> Any:
    """Read a folder that ``save`` wrote."""
    _verify(path)
    head = _read(path / MODEL)
    if head.get("format") != FORMAT:
        raise GeneratorDamaged(
            f"{path / MODEL} has format {head.get('format')!r}; this version of evenhand "
            f"({__version__}) reads format {FORMAT}. Load it with the version that wrote it."
        )
    method = methods.get(str(head["method"]))
    if method is None:
        raise GeneratorDamaged(f"{path / MODEL} names the unknown method {head['method']!r}.")
    claim = _read(path / CLAIM)
    generator = method(**head["settings"])
    generator.codec_ = TableCodec.from_dict(head["codec"])
    names = tuple(head["conditions"])
    generator.conditions_ = Conditions(
        names=names,
        categories=tuple(generator.codec_[name].schema.categories for name in names),
    )
    generator.counts_ = np.array(head["counts"], dtype=np.float64)
    generator.counts_sigma_ = float(head["counts_sigma"])
    generator.snr_ = SignalToNoise(**head["snr"])
    generator.notes_ = tuple(head["notes"])
    generator.guarantee_ = Guarantee.from_dict(claim["guarantee"])
    generator.ledger_ = SavedAccount(record=claim["ledger"])
    generator._restore(load_file(path / ARRAYS))
    return generator


def _write(generator: Any, folder: Path) -> None:
    _dump(
        folder / MODEL,
        {
            "format": FORMAT,
            "evenhand": __version__,
            "method": type(generator).__name__,
            "settings": generator.settings(),
            "codec": generator.codec_.to_dict(),
            "conditions": list(generator.conditions_.names),
            "counts": generator.counts_.tolist(),
            "counts_sigma": generator.counts_sigma_,
            "snr": {"value": generator.snr_.value, "formula": generator.snr_.formula},
            "notes": list(generator.notes_),
        },
    )
    _dump(
        folder / CLAIM,
        {
            "sentence": str(generator.guarantee_),
            "guarantee": generator.guarantee_.to_dict(),
            "ledger": generator.ledger_.to_dict(),
        },
    )
    arrays = {name: np.ascontiguousarray(a) for name, a in generator._arrays().items()}
    save_file(arrays, folder / ARRAYS)
    files = sorted(file.name for file in folder.iterdir())
    _dump(folder / MANIFEST, {name: _digest(folder / name) for name in files})


def _verify(path: Path) -> None:
    if not path.is_dir():
        raise FileNotFoundError(f"{path} is not a folder. Name the folder that save() wrote.")
    if not (path / MANIFEST).is_file():
        raise GeneratorDamaged(f"{path} holds no {MANIFEST}: it is not a generator's folder.")
    for name, digest in _read(path / MANIFEST).items():
        file = path / name
        if not file.is_file():
            raise GeneratorDamaged(f"{path} is damaged: {name} is missing. Copy it again.")
        if _digest(file) != digest:
            raise GeneratorDamaged(
                f"{path} is damaged or edited: {name} is not as it was saved, so its claim cannot "
                f"be trusted. Copy the folder again, or train again."
            )


def _read(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise GeneratorDamaged(f"{file} cannot be read: {error}") from None
    if not isinstance(found, dict):
        raise GeneratorDamaged(f"{file} must hold a JSON object.")
    return found


def _dump(file: Path, values: Mapping[str, Any]) -> None:
    text = json.dumps(values, indent=2, sort_keys=True, allow_nan=False)
    file.write_text(text + "\n", encoding="utf-8")


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()

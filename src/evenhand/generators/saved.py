"""A fitted generator as a folder of plain files: JSON and safetensors, never pickle."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from safetensors.numpy import load_file, save_file

from evenhand._folder import read_json, verify, write_folder, write_json, write_manifest
from evenhand._version import __version__
from evenhand.generators.plan import SignalToNoise
from evenhand.privacy import Guarantee, SavedLedger

FORMAT: Final = 1
MODEL, CLAIM, ARRAYS = "model.json", "claim.json", "arrays.safetensors"


class GeneratorDamaged(ValueError):
    """A generator's folder that is not what ``save`` wrote: a file is missing, cut or edited."""


def save(generator: Any, path: Path) -> Path:
    """Write ``generator`` to the new folder ``path``: all of it, or nothing.

    Raises
    ------
    FileExistsError
        If something is there already.
    """
    return write_folder(path, lambda folder: _write(generator, folder))


def restore(path: Path, methods: Mapping[str, type]) -> Any:
    """Read a folder that ``save`` wrote."""
    verify(path, GeneratorDamaged)
    head = read_json(path / MODEL, GeneratorDamaged)
    if head.get("format") != FORMAT:
        raise GeneratorDamaged(
            f"{path / MODEL} has format {head.get('format')!r}; this version of evenhand "
            f"({__version__}) reads format {FORMAT}. Load it with the version that wrote it."
        )
    method = methods.get(str(head["method"]))
    if method is None:
        raise GeneratorDamaged(f"{path / MODEL} names the unknown method {head['method']!r}.")
    claim = read_json(path / CLAIM, GeneratorDamaged)
    generator = method(**head["settings"])
    generator._restore_shape(head)
    generator.counts_ = np.array(head["counts"], dtype=np.float64)
    generator.counts_sigma_ = float(head["counts_sigma"])
    generator.snr_ = SignalToNoise(**head["snr"])
    generator.notes_ = tuple(head["notes"])
    generator.guarantee_ = Guarantee.from_dict(claim["guarantee"])
    generator.ledger_ = SavedLedger(record=claim["ledger"])
    generator._restore(load_file(path / ARRAYS))
    return generator


def _write(generator: Any, folder: Path) -> None:
    write_json(
        folder / MODEL,
        {
            "format": FORMAT,
            "evenhand": __version__,
            "method": type(generator).__name__,
            "settings": generator.settings(),
            **generator._shape(),
            "counts": generator.counts_.tolist(),
            "counts_sigma": generator.counts_sigma_,
            "snr": {"value": generator.snr_.value, "formula": generator.snr_.formula},
            "notes": list(generator.notes_),
        },
    )
    write_json(
        folder / CLAIM,
        {
            "sentence": str(generator.guarantee_),
            "guarantee": generator.guarantee_.to_dict(),
            "ledger": generator.ledger_.to_dict(),
        },
    )
    arrays = {name: np.ascontiguousarray(a) for name, a in generator._arrays().items()}
    save_file(arrays, folder / ARRAYS)
    write_manifest(folder, sorted(file.name for file in folder.iterdir()))

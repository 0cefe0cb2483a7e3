"""A fitted generator as a folder of plain files: JSON and safetensors, never pickle."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from evenhand._folder import (
    Folder,
    read_folder,
    reading,
    seal,
    write_arrays,
    write_folder,
    write_json,
)
from evenhand._signing import PrivateKey
from evenhand.generators.budget_plan import SignalToNoise
from evenhand.privacy import Guarantee, SavedLedger
from evenhand.privacy.saved_claim import claim_record, read_claim

KIND: Final = "generator"
MODEL, CLAIM, ARRAYS = "model.json", "claim.json", "arrays.safetensors"
NEIGHBORS: Final = ("add or remove one", "replace one")


class GeneratorDamaged(ValueError):
    """A generator's folder that is not what ``save`` wrote, or whose claim is not its ledger's."""


def save(generator: Any, path: Path, sign: str | Path | None) -> Path:
    """Write ``generator`` to the new folder ``path``: all of it, or nothing.

    Raises
    ------
    FileExistsError
        If something is there already.
    """
    key = None if sign is None else PrivateKey.read(sign)

    def write(folder: Path) -> None:
        _write(generator, folder)
        seal(folder, KIND, key)

    return write_folder(path, write)


def restore(path: Path, methods: Mapping[str, type]) -> Any:
    """Read a folder that ``save`` wrote."""
    folder = read_folder(path, (KIND,), GeneratorDamaged)
    head = folder.json(MODEL)
    with reading(path, GeneratorDamaged):
        method = methods.get(str(head["method"]))
        if method is None:
            raise GeneratorDamaged(f"{path / MODEL} names the unknown method {head['method']!r}.")
        return _restore(folder, head, method)


def claim_of(folder: Folder) -> Guarantee:
    """Return the claim of a folder if its ledger bears it out; run nothing."""
    with reading(folder.path, GeneratorDamaged):
        return _claim(folder)[0]


def _claim(folder: Folder) -> tuple[Guarantee, SavedLedger | None]:
    return read_claim(folder.json(CLAIM), neighbors=NEIGHBORS, own_words=folder.own_words)


def _restore(folder: Folder, head: Mapping[str, Any], method: Any) -> Any:
    generator = method(**head["settings"])
    generator._restore_shape(head)
    generator.counts_ = np.array(head["counts"], dtype=np.float64)
    generator.counts_sigma_ = float(head["counts_sigma"])
    if generator.counts_.shape != (generator.conditions_.n,):
        raise ValueError("the counts are not one for each combination of label and group.")
    generator.snr_ = SignalToNoise(**head["snr"])
    generator.notes_ = tuple(map(str, head["notes"]))
    generator.warnings_ = tuple(map(str, head.get("warnings", ())))  # older folders have none
    generator.guarantee_, generator.ledger_ = _claim(folder)
    generator._restore(folder.arrays(ARRAYS))
    generator.sample(1, balance=(), random_state=0)  # arrays that do not fit each other show here
    return generator


def _write(generator: Any, folder: Path) -> None:
    write_json(
        folder / MODEL,
        {
            "method": type(generator).__name__,
            "settings": generator.settings(),
            **generator._shape(),
            "counts": generator.counts_.tolist(),
            "counts_sigma": generator.counts_sigma_,
            "snr": {"value": generator.snr_.value, "formula": generator.snr_.formula},
            "notes": list(generator.notes_),
            "warnings": list(generator.warnings_),
        },
    )
    write_json(folder / CLAIM, claim_record(generator.guarantee_, generator.ledger_))
    write_arrays(folder / ARRAYS, generator._arrays())

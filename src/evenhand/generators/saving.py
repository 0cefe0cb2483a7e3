"""A fitted generator as a folder of plain files: JSON and safetensors, never pickle."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from evenhand import _checks
from evenhand._folder import (
    Folder,
    TypesNotTrusted,
    read_folder,
    reading,
    require_replaceable,
    seal,
    write_arrays,
    write_folder,
    write_json,
)
from evenhand._signing import PrivateKey
from evenhand.generators.budget_plan import SignalToNoise
from evenhand.generators.payload import Progress
from evenhand.generators.registry import GENERATORS, home_of, registered_at
from evenhand.privacy import Guarantee
from evenhand.privacy.saved_claim import SavedLedger, claim_record, read_claim

if TYPE_CHECKING:
    from evenhand.generators.synthesizer import Synthesizer

KIND: Final = "generator"
MODEL, CLAIM, ARRAYS = "model.json", "claim.json", "arrays.safetensors"
NEIGHBORS: Final = ("add or remove one", "replace one")


class GeneratorDamaged(ValueError):
    """A generator's folder that is not what ``save`` wrote, or whose claim is not its ledger's."""


def save(
    generator: Synthesizer, path: Path, sign: str | Path | None, *, overwrite: bool = False
) -> Path:
    """Write ``generator`` to the new folder ``path``: all of it, or nothing.

    Raises
    ------
    FileExistsError
        If something is there already; with ``overwrite``, if it is something else than a generator.
    """
    fitted, arrays = generator.fitted_, generator._arrays()
    key = None if sign is None else PrivateKey.read(sign)
    head = {
        "payload": fitted.payload,
        "method": fitted.method,
        "home": home_of(type(generator)),
        "settings": fitted.settings,
        "codec": fitted.codec.to_dict(),
        "counts": fitted.counts.tolist(),
        "counts_sigma": fitted.counts_sigma,
        "snr": {"value": fitted.snr.value, "formula": fitted.snr.formula},
        "notes": list(fitted.notes),
        "warnings": list(fitted.warnings),
    }

    def write(folder: Path) -> None:
        write_json(folder / MODEL, head)
        write_json(folder / CLAIM, claim_record(fitted.guarantee, fitted.ledger))
        write_arrays(folder / ARRAYS, arrays)
        seal(folder, KIND, key)

    return write_folder(path, write, instead_of=KIND if overwrite else None)


def autosave(
    generator: Synthesizer,
    path: str | Path,
    *,
    every: float = 60.0,
    progress: Progress | None = None,
) -> Progress:
    """Return a ``progress`` for ``fit`` that saves the generator as it goes.

    The folder is there as soon as what was released is paid for, and is replaced at intervals; an
    interrupted fit goes on with ``load(path).resume()``, where the method has it
    (``EmbeddedImages``). Others reach their claim with their last step, and are not saved before.

    Parameters
    ----------
    generator : Synthesizer
        Whose ``fit``, ``refit`` or ``resume`` is given the result.
    path : path
        A new folder; or, of a generator that is fitted already, one that holds a generator, which
        it replaces.
    every : float
        Seconds between two saves, at least 0.
    progress : callable, optional
        Called as well.

    Privacy
    -------
    What is saved was released, or made of that: it may be published as the generator may.

    Examples
    --------
    >>> made = PublicFeatureImages()  # doctest: +SKIP
    >>> made.fit(images, y, budget=budget, progress=autosave(made, "faces"))  # doctest: +SKIP
    """
    folder, wait, last = Path(path), _checks.non_negative("every", every), -math.inf
    # A new fit is not to take the place of what was paid for.
    require_replaceable(folder, KIND if generator.is_fitted_ else None)

    def told(stage: str, done: int, total: int) -> None:
        nonlocal last
        if progress is not None:
            progress(stage, done, total)
        if generator.is_fitted_ and time.monotonic() >= last + wait:
            generator.save(folder, overwrite=True)
            last = time.monotonic()

    return told


def load(path: str | Path, *, trusted: Iterable[str] = ()) -> Synthesizer:
    """Read the folder of a generator that ``save`` wrote, without running any code in it.

    Parameters
    ----------
    path : path
        The folder.
    trusted : iterable of str, optional
        Generators of your own, ``"package.module:Class"``, whose modules are imported, which runs
        their code. No module is imported because a folder names it.

    Returns
    -------
    Synthesizer
        Fitted, with ``guarantee_`` and ``ledger_`` (closed: nothing can be charged).

    Raises
    ------
    FileNotFoundError
        If there is no such folder.
    GeneratorDamaged
        If a file is missing or is not, bit for bit, what was saved; or if an earlier version saved
        it in another format.
    TypesNotTrusted
        If a generator of somebody's own wrote it, whose module was not imported.
    """
    path = Path(path)
    for home in trusted:
        registered_at(home, "trusted")
    folder = read_folder(path, (KIND,), GeneratorDamaged)
    head = folder.json(MODEL)
    with reading(path, GeneratorDamaged, TypesNotTrusted):
        if "payload" not in head:
            raise GeneratorDamaged(
                f"{path} was saved by an earlier version, in another format. Fit the generator "
                f"again and save it, or read the folder with the version that wrote it."
            )
        kind = GENERATORS.get((str(head["payload"]), str(head["method"])))
        if kind is None:
            raise _unknown(path, head)
        return _restore(folder, head, kind)


def _unknown(path: Path, head: Mapping[str, Any]) -> Exception:
    """Return why a generator that nobody registered is not made, and the way out."""
    said = f"{path / MODEL} names the unknown method {head['method']!r} of {head['payload']!r}"
    home = head.get("home")
    if not isinstance(home, str):
        return GeneratorDamaged(
            f"{said}. A generator of your own must be registered first, with "
            f"evenhand.generators.registry.register."
        )
    return TypesNotTrusted(
        f"{said}, a generator of {home}, which is none of this package's. Nothing was loaded. If "
        f"you trust that module, import it first, or name it: load(path, trusted=[{home!r}]), or "
        f"--trust {home}."
    )


def claim_of(folder: Folder) -> Guarantee:
    """Return the claim of a folder if its ledger bears it out; run nothing."""
    with reading(folder.path, GeneratorDamaged):
        return _claim(folder)[0]


def _claim(folder: Folder) -> tuple[Guarantee, SavedLedger | None]:
    return read_claim(folder.json(CLAIM), neighbors=NEIGHBORS, own_words=folder.own_words)


def _restore(folder: Folder, head: Mapping[str, Any], kind: type[Synthesizer]) -> Synthesizer:
    generator = kind(**head["settings"])
    generator.codec_ = generator.codec_type.from_dict(head["codec"])
    generator.conditions_ = generator.codec_.conditions
    generator.counts_ = np.array(head["counts"], dtype=np.float64)
    generator.counts_sigma_ = float(head["counts_sigma"])
    if generator.counts_.shape != (generator.conditions_.n,):
        raise ValueError("the counts are not one for each combination of label and group.")
    generator.snr_ = SignalToNoise(**head["snr"])
    generator.notes_ = tuple(map(str, head["notes"]))
    generator.warnings_ = tuple(map(str, head["warnings"]))
    generator.guarantee_, generator.ledger_ = _claim(folder)
    generator._restore(folder.arrays(ARRAYS))
    generator.sample(1, balance=(), random_state=0)  # arrays that do not fit each other show here
    return generator

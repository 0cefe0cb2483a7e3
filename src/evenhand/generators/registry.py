"""One record per generator: its name, what it generates, what it needs and its arguments."""

from __future__ import annotations

import importlib
import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from evenhand._checks import one_of

if TYPE_CHECKING:
    from evenhand.generators.synthesizer import Synthesizer

PAYLOADS: Final = ("tables", "images")


@dataclass(frozen=True, kw_only=True)
class GeneratorRecord:
    """What the command line, saved folders and reports know of a generator before they import it.

    Parameters
    ----------
    payload : {"tables", "images"}
        What it generates.
    name : str
        Its name on the command line and in saved folders.
    where : str
        Module and class, "package.module:Class".
    words : str
        What it learns from, for the help page.
    needs : tuple of str
        Extras that must be installed.
    private : bool
        Whether it keeps a budget; references without privacy do not.
    """

    payload: str
    name: str
    where: str
    words: str
    needs: tuple[str, ...] = ()
    private: bool = True

    def __post_init__(self) -> None:
        one_of("payload", self.payload, PAYLOADS)

    @property
    def kind(self) -> type[Synthesizer]:
        """The class, imported when it is first used."""
        module, _, name = self.where.partition(":")
        found: type[Synthesizer] = getattr(importlib.import_module(module), name)
        return found

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names of the constructor's arguments."""
        return arguments_of(self.kind)


GENERATORS: Final[dict[tuple[str, str], GeneratorRecord]] = {}
"""All generators by payload and name, the default of each payload first; see ``register``."""


def register(record: GeneratorRecord) -> GeneratorRecord:
    """Make a generator known to ``load`` and to the command line.

    Raises
    ------
    ValueError
        If another generator of this payload has the name.
    """
    known = GENERATORS.setdefault((record.payload, record.name), record)
    if known != record:
        raise ValueError(
            f"A generator of {record.payload} is named {record.name!r} already: {known.where}. "
            f"Choose another name."
        )
    return record


def generators(payload: str, *, private: bool | None = None) -> dict[str, GeneratorRecord]:
    """Return the generators of a payload by name; ``private`` leaves out the others.

    Examples
    --------
    >>> list(generators("tables", private=True))[:2]
    ['marginal', 'mean-embedding']
    """
    one_of("payload", payload, PAYLOADS)
    return {
        name: record
        for (of, name), record in GENERATORS.items()
        if of == payload and private in (None, record.private)
    }


def arguments_of(kind: type) -> tuple[str, ...]:
    """Return what a constructor takes by name, also what it passes on as ``**others``.

    Examples
    --------
    >>> class Base:
    ...     def __init__(self, *, width=1, depth=2): ...
    >>> class Special(Base):
    ...     def __init__(self, *, rate=3, **others): ...
    >>> arguments_of(Special)
    ('rate', 'width', 'depth')
    """
    names: dict[str, None] = {}
    for cls in kind.__mro__:
        if "__init__" not in vars(cls):
            continue
        given = list(inspect.signature(vars(cls)["__init__"]).parameters.values())[1:]
        names |= dict.fromkeys(p.name for p in given if p.kind is not p.VAR_KEYWORD)
        if all(p.kind is not p.VAR_KEYWORD for p in given):
            break
    fixed = getattr(kind, "fixed", ())
    return tuple(name for name in names if name not in fixed)


_TABLES: Final = "evenhand.generators.tables"
_IMAGES: Final = "evenhand.generators.images"

for _record in (
    GeneratorRecord(
        payload="tables",
        name="marginal",
        where=f"{_TABLES}.marginal:MarginalSynthesizer",
        words="noisy tables of counts on a tree of columns",
    ),
    GeneratorRecord(
        payload="tables",
        name="mean-embedding",
        where=f"{_TABLES}.mean_embedding:MeanEmbeddingSynthesizer",
        words="noisy means of random features",
    ),
    GeneratorRecord(
        payload="tables",
        name="pate-gan",
        where=f"{_TABLES}.pate_gan:PATEGANSynthesizer",
        words="noisy votes of teachers on generated rows",
        needs=("torch",),
    ),
    GeneratorRecord(
        payload="tables",
        name="dp-wgan",
        where=f"{_TABLES}.dp_wgan:DPWGANSynthesizer",
        words="noisy gradients of a critic",
        needs=("torch",),
    ),
    GeneratorRecord(
        payload="tables",
        name="ron-gauss",
        where=f"{_TABLES}.ron_gauss:RONGaussSynthesizer",
        words="noisy means and covariances",
    ),
    GeneratorRecord(
        payload="tables",
        name="ffpdg",
        where=f"{_TABLES}.ron_gauss:FFPDGSynthesizer",
        words="noisy means and covariances, evened out between groups",
    ),
    GeneratorRecord(
        payload="tables",
        name="non-private",
        where=f"{_TABLES}.nonprivate:NonPrivateSynthesizer",
        words="exact counts, without privacy",
        private=False,
    ),
    GeneratorRecord(
        payload="tables",
        name="reweighted",
        where=f"{_TABLES}.nonprivate:ReweightedSynthesizer",
        words="rows weighted towards a public reference, without privacy",
        private=False,
    ),
    GeneratorRecord(
        payload="images",
        name="mean-embedding",
        where=f"{_IMAGES}.mean_embedding:MeanEmbeddingImages",
        words="noisy means of random features",
        needs=("torch",),
    ),
    GeneratorRecord(
        payload="images",
        name="teacher-gan",
        where=f"{_IMAGES}.teacher_gan:TeacherGANImages",
        words="noisy sums of the gradients of teachers",
        needs=("torch",),
    ),
    GeneratorRecord(
        payload="images",
        name="gs-wgan",
        where=f"{_IMAGES}.gs_wgan:GSWGANImages",
        words="noisy gradients of Wasserstein critics",
        needs=("torch",),
    ),
    GeneratorRecord(
        payload="images",
        name="g-pate",
        where=f"{_IMAGES}.g_pate:GPATEImages",
        words="noisy votes of teachers on projected gradients",
        needs=("torch",),
    ),
    GeneratorRecord(
        payload="images",
        name="datalens",
        where=f"{_IMAGES}.datalens:DataLensImages",
        words="noisy sums of the signs of teachers' largest gradients",
        needs=("torch",),
    ),
    GeneratorRecord(
        payload="images",
        name="dp-wgan",
        where=f"{_IMAGES}.dp_wgan:DPWGANImages",
        words="noisy gradients of a critic",
        needs=("torch",),
    ),
    GeneratorRecord(
        payload="images",
        name="plain-gan",
        where=f"{_IMAGES}.plain_gan:PlainGANImages",
        words="one critic on all pictures, without privacy",
        needs=("torch",),
        private=False,
    ),
):
    register(_record)

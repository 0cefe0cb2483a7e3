"""All generators by payload and name: a class registers itself, and is imported when it is used."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from evenhand._checks import class_at, one_of

if TYPE_CHECKING:
    from evenhand.generators.synthesizer import Synthesizer

PAYLOADS: Final = ("tables", "images", "two tables")

Key: TypeAlias = tuple[str, str]
"""Payload and name."""

HOMES: Final[Mapping[Key, str]] = {
    ("tables", "marginal"): "generators.tables.marginal",
    ("tables", "mean-embedding"): "generators.tables.mean_embedding",
    ("tables", "pate-gan"): "generators.tables.pate_gan",
    ("tables", "dp-wgan"): "generators.tables.dp_wgan",
    ("tables", "ron-gauss"): "generators.tables.ron_gauss",
    ("tables", "ffpdg"): "generators.tables.ron_gauss",
    ("images", "gaussian"): "generators.images.gaussian",
    ("images", "diffusion"): "generators.images.diffusion",
    ("images", "mean-embedding"): "generators.images.mean_embedding",
    ("images", "public-features"): "generators.images.public_features",
    ("images", "evolution"): "generators.images.evolution",
    ("images", "teacher-gan"): "generators.images.teacher_gan",
    ("images", "gs-wgan"): "generators.images.teacher_gan",
    ("images", "g-pate"): "generators.images.g_pate",
    ("images", "datalens"): "generators.images.datalens",
    ("images", "dp-wgan"): "generators.images.dp_wgan",
    ("two tables", "two-table"): "generators.tables.two_tables",
}
"""The module of each generator, the default of each payload first. One more is one more line."""

REFERENCES: Final[Mapping[Key, str]] = {
    ("tables", "non-private"): "generators.tables.nonprivate",
    ("tables", "reweighted"): "generators.tables.nonprivate",
    ("tables", "pate-gan-strata"): "baselines.pfguard",
    ("tables", "pate-gan-gold"): "baselines.pfguard",
    ("tables", "pate-gan-global-shares"): "baselines.pfguard",
    ("images", "plain-gan"): "generators.images.plain_gan",
    ("images", "gs-wgan-published"): "baselines.gs_wgan",
    ("images", "teacher-gan-strata"): "baselines.pfguard",
    ("images", "teacher-gan-gold"): "baselines.pfguard",
    ("images", "teacher-gan-global-shares"): "baselines.pfguard",
}
"""Those that are there to be compared with: saved and read alike, and not on the command line."""

_ALL: Final[Mapping[Key, str]] = {**HOMES, **REFERENCES}

REGISTERED: Final[dict[Key, type[Synthesizer]]] = {}
"""Those whose modules were imported; ``GENERATORS`` holds all."""

_Kind = TypeVar("_Kind", bound="type[Synthesizer]")


def register(kind: _Kind) -> _Kind:
    """Make a generator known to ``load`` and to the command line; a decorator of its class.

    Raises
    ------
    ValueError
        If another generator of this payload has the name.
    """
    key = (one_of("payload", kind.payload, PAYLOADS), kind.method)
    home = f"evenhand.{_ALL[key]}" if key in _ALL else kind.__module__
    known = REGISTERED.get(key, kind)
    if (known.__module__, known.__qualname__) != (home, kind.__qualname__):
        raise ValueError(
            f"A generator of {kind.payload} is named {kind.method!r} already, in {home}. Choose "
            f"another name."
        )
    REGISTERED[key] = kind
    return kind


def home_of(kind: type[Synthesizer]) -> str | None:
    """Return MODULE:CLASS of a generator of the user's own; None of this package's, or a script's.

    Nobody else can import what a script defines.
    """
    ours = kind.__module__ == "__main__" or kind.__module__.startswith("evenhand.")
    return None if ours else f"{kind.__module__}:{kind.__qualname__}"


def registered_at(home: str, named_by: str = "--method") -> str:
    """Register a generator that a user named as MODULE:CLASS, and return its method.

    Raises
    ------
    ValueError
        If there is none; its module is imported, which runs its code.
    """
    kind = class_at(named_by, home)
    payload, named = getattr(kind, "payload", None), getattr(kind, "method", None)
    if not (isinstance(kind, type) and payload in PAYLOADS and isinstance(named, str)):
        raise ValueError(
            f"{named_by} names {home!r}, which is no generator. Derive it from TableSynthesizer or "
            f"ImageSynthesizer, with a name of its own as method."
        )
    register(kind)
    return named


class _Generators(Mapping["Key", "type[Synthesizer]"]):
    """The classes by payload and name; a module is imported when its class is first used."""

    def __getitem__(self, key: Key) -> type[Synthesizer]:
        if key not in REGISTERED and key in _ALL:
            importlib.import_module(f"evenhand.{_ALL[key]}")
        return REGISTERED[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(dict.fromkeys((*_ALL, *REGISTERED)))

    def __len__(self) -> int:
        return len(_ALL.keys() | REGISTERED.keys())


GENERATORS: Final[Mapping[Key, type[Synthesizer]]] = _Generators()


def names_of(payload: str, *, offered: bool = False) -> tuple[str, ...]:
    """Return the names of the generators of a payload; nothing is imported.

    Parameters
    ----------
    payload : {"tables", "images", "two tables"}
    offered : bool
        Whether to leave out those that are there to be compared with.

    Examples
    --------
    >>> names_of("tables", offered=True)[:2]
    ('marginal', 'mean-embedding')
    """
    one_of("payload", payload, PAYLOADS)
    kept = (key for key in GENERATORS if not (offered and key in REFERENCES))
    return tuple(name for of, name in kept if of == payload)


def generators(payload: str, *, offered: bool = False) -> dict[str, type[Synthesizer]]:
    """Return the generators of a payload by name; see ``names_of``."""
    return {name: GENERATORS[payload, name] for name in names_of(payload, offered=offered)}

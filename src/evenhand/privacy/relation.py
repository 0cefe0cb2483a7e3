"""Whose what is protected: the whole record, or one attribute of it and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from evenhand._checks import one_of, text
from evenhand.privacy.renyi import NEIGHBORS

GROUP_LABEL: Final = "change one group label"
GROUP_AND_CLASS_LABEL: Final = "change one group and class label"

_OF_LABELS: Final[Mapping[str, str]] = {
    GROUP_LABEL: "sensitive attribute of one ",
    GROUP_AND_CLASS_LABEL: "sensitive attribute and class label of one ",
}
"""How the unit begins where neighbors differ in labels only; a noun ends it."""

_RELATION: Final[Mapping[str, str]] = {
    "replace one": "replace one {holder}",
    "add or remove one": "add or remove one {holder}",
    GROUP_LABEL: "change the group label of one {holder}",
    GROUP_AND_CLASS_LABEL: "change the group label and the class label of one {holder}",
}


def attribute_of(holder: str, *, and_class_label: bool = False) -> str:
    """Return the unit of a guarantee for the sensitive attribute of a ``holder``, and no more.

    Examples
    --------
    >>> attribute_of("person")
    'sensitive attribute of one person'
    """
    return _OF_LABELS[GROUP_AND_CLASS_LABEL if and_class_label else GROUP_LABEL] + holder


def is_attribute(unit: str) -> bool:
    """Whether ``unit`` is an attribute of somebody, and not the whole record.

    Examples
    --------
    >>> is_attribute(attribute_of("person")), is_attribute("person")
    (True, False)
    """
    return any(unit.startswith(start) for start in _OF_LABELS.values())


def holder_of(unit: str) -> str:
    """Return who has the attribute; a unit that is a whole record is its own holder.

    Examples
    --------
    >>> holder_of(attribute_of("person")), holder_of("record")
    ('person', 'record')
    """
    for start in _OF_LABELS.values():
        if unit.startswith(start):
            return unit.removeprefix(start)
    return unit


def each(unit: str) -> str:
    """Return the words for every single unit.

    Examples
    --------
    >>> each("record"), each(attribute_of("person"))
    ('each record', 'the sensitive attribute of each person')
    """
    return f"the {unit.replace(' of one ', ' of each ')}" if is_attribute(unit) else f"each {unit}"


def words_of(unit: str, neighbors: str) -> str:
    """Return the change between neighbors in words.

    Examples
    --------
    >>> words_of(attribute_of("person"), GROUP_LABEL)
    'change the group label of one person'
    """
    return _RELATION[neighbors].format(holder=holder_of(unit))


def check_relation(unit: str, neighbors: str) -> None:
    """Refuse a unit that does not say what the neighbors change.

    Raises
    ------
    ValueError
        If neighbors differ in a label only and the unit sounds like the whole record, or the other
        way round: one would be read as the other.
    """
    one_of("neighbors", neighbors, NEIGHBORS)
    text("unit", unit)
    if not unit:
        raise ValueError("unit must name whose data are protected, for example 'record'.")
    wanted = _OF_LABELS.get(neighbors)
    if wanted is None and is_attribute(unit):
        raise ValueError(
            f"unit={unit!r} is an attribute, and neighbors={neighbors!r} changes a whole "
            f"{holder_of(unit)}. Use neighbors={GROUP_LABEL!r}, or unit={holder_of(unit)!r}."
        )
    if wanted is not None and not (unit.startswith(wanted) and holder_of(unit)):
        raise ValueError(
            f"neighbors={neighbors!r} protects labels and nothing else of a record, and "
            f"unit={unit!r} does not say so. Use unit={wanted + holder_of(unit)!r}."
        )


def apart(name: str, mine: str, theirs: str) -> str:
    """Return why two costs do not add up, and what to do.

    Examples
    --------
    >>> print(apart("unit", "record", attribute_of("person")))
    Guarantees add up only for the same unit, got 'record' and 'sensitive attribute of one
    person'. Privacy of an attribute alone is not privacy of the record. State them side by side.
    """
    differ = is_attribute(mine) != is_attribute(theirs) if name == "unit" else False
    why = " Privacy of an attribute alone is not privacy of the record." if differ else ""
    return (
        f"Guarantees add up only for the same {name}, got {mine!r} and {theirs!r}.{why} State them "
        f"side by side."
    )

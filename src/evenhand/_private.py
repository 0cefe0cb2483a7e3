"""What is computed from private records and was not paid for: it prints as ``<private>``.

Printing, comparing, converting, pickling or turning it into JSON is refused or shows nothing: each
would publish a function of the records that no budget covers. A type of this kind has doors of its
own, named after who may use them: ``reveal_to_curator()``.
"""

from __future__ import annotations

from typing import ClassVar, NoReturn, Self


class Private:
    """A value for the curator alone; subclasses keep it in slots of their own.

    Slots are set by ``object.__setattr__``, once.
    """

    __slots__ = ()

    _way_out: ClassVar[str]
    """What it is, why it is refused, and what to do instead."""

    def __repr__(self) -> str:
        return "<private>"

    def __format__(self, spec: str) -> str:
        return "<private>"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def _refuse(self, *_: object) -> NoReturn:
        raise TypeError(self._way_out)

    __setattr__ = __delattr__ = _refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __bool__ = __float__ = __int__ = __index__ = __complex__ = __round__ = _refuse
    __iter__ = __getitem__ = __contains__ = __array__ = _refuse
    __reduce__ = __reduce_ex__ = __getstate__ = _refuse
    __hash__ = None  # type: ignore[assignment]  # as for any type whose == is refused
    __array_ufunc__ = None

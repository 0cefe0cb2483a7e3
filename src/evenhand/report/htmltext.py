"""Small pieces of HTML in which every text from outside is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def text(value: object) -> str:
    """Return a value as text that is safe inside an element and inside a quoted attribute."""
    return escape(str(value), quote=True)


def items(values: Iterable[str]) -> str:
    """Return an unordered list; nothing for no values."""
    inside = "".join(f"<li>{text(value)}</li>" for value in values)
    return f"<ul>{inside}</ul>" if inside else ""


def pairs(rows: Iterable[tuple[str, str]]) -> str:
    """Return a description list of names with their values."""
    inside = "".join(f"<div><dt>{text(n)}</dt><dd>{text(v)}</dd></div>" for n, v in rows)
    return f'<dl class="pairs">{inside}</dl>' if inside else ""


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], numbers: int) -> str:
    """Return a table whose first column is a header and whose last ``numbers`` columns are numbers.

    It scrolls by itself where the page is narrow, by keyboard too.
    """
    first_number = len(head) - numbers
    top = "".join(
        f'<th scope="col"{_aligned(column >= first_number)}>{text(name)}</th>'
        for column, name in enumerate(head)
    )
    body = "".join(_row(row, first_number) for row in rows)
    label = text(caption)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{label}">'
        f"<table><caption>{label}</caption><thead><tr>{top}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def _row(row: Sequence[str], first_number: int) -> str:
    cells = [f'<th scope="row">{text(row[0])}</th>']
    cells += [
        f"<td{_aligned(column >= first_number)}>{text(value)}</td>"
        for column, value in enumerate(row[1:], start=1)
    ]
    return f"<tr>{''.join(cells)}</tr>"


def _aligned(number: bool) -> str:
    return ' class="number"' if number else ""

"""A card as a page, as Markdown, as JSON, and its entry for the registry as YAML."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from evenhand._version import __version__
from evenhand.report.card import registry
from evenhand.report.card.content import SECTIONS, ModelCard
from evenhand.report.card.questions import Answer
from evenhand.report.card.record import EXACT_COUNTS, ImpactTable
from evenhand.report.page import render

FORMATS: Final = ("html", "md", "yaml", "json")


def written(card: ModelCard, form: str) -> str:
    """Return the card in one of ``FORMATS``."""
    makers = {"html": render, "md": _markdown, "yaml": _yaml_of, "json": _json}
    return makers[form](card)


def to_dict(card: ModelCard) -> dict[str, Any]:
    """Return the card as plain values."""
    return {
        "card": card.title,
        "evenhand": __version__,
        "guarantee": card.guarantee.to_dict() | {"sentence": str(card.guarantee)},
        "sections": {
            name: {
                "source": SECTIONS[name].source,
                "answers": {answer.question.key: answer.to_dict() for answer in said},
            }
            for name, said in card.answers.items()
        },
        "impact": [table.to_dict() for table in card.impact],
        "exact_counts": EXACT_COUNTS if card.impact else None,
        "registry_schema": {"name": registry.SCHEMA, "version": registry.SCHEMA_VERSION},
        "registry_entry": card.entry if "registry" in card.answers else None,
        "warnings": list(card.warnings),
    }


def _json(card: ModelCard) -> str:
    return json.dumps(to_dict(card), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _markdown(card: ModelCard) -> str:
    lines = [f"# {_cell(card.title)}", "", f"> {_cell(str(card.guarantee))}", ""]
    lines += [f"* {_cell(words)}" for words in card.warnings]
    for name, said in card.answers.items():
        lines += ["", f"## {SECTIONS[name].title}", "", f"{SECTIONS[name].source}.", ""]
        if name == "ll144":
            lines += _impact(card)
        lines += ["| question | answer | from |", "| --- | --- | --- |"]
        lines += [f"| {_cell(a.question.asks)} | {_cell(a.text)} | {a.source} |" for a in said]
    return "\n".join([*lines, "", f"Written by evenhand {__version__}.", ""])


def _impact(card: ModelCard) -> list[str]:
    if not card.impact:
        return ["Not measured: no labelled rows were given.", ""]
    lines = [EXACT_COUNTS, ""]
    if card.told:
        groups = _cell("; ".join(card.told))
        lines += [f"Everybody of these groups got the same decision: {groups}.", ""]
    for table in card.impact:
        lines += [f"### By {_cell(table.by)}: {_cell(table.selected)}", ""]
        lines += [
            "| " + " | ".join(ImpactTable.HEAD) + " |",
            "| --- " + "| ---: " * (len(ImpactTable.HEAD) - 1) + "|",
        ]
        lines += ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in table.cells]
        lines.append("")
    return lines


def _cell(words: str) -> str:
    """Return text that Markdown shows as it is: names in a user's file may hold anything."""
    kept = " ".join(words.split())
    for mark in "\\`*_[]<>|#":
        kept = kept.replace(mark, f"\\{mark}")
    return kept


def _yaml_of(card: ModelCard) -> str:
    head = [
        f"# Registry of deployments: {registry.SCHEMA} ({registry.SCHEMA_VERSION})",
        f"# Written by evenhand {__version__}; blanks are filled by card.toml.",
    ]
    head += (
        [f"# blank: {_wanted(a)}" for a in registry.blanks(card.answers["registry"])]
        if ("registry" in card.answers)
        else []
    )
    return "\n".join([*head, *_yaml(card.entry), ""])


def _wanted(answer: Answer) -> str:
    among = answer.question.among
    choices = f" ({', '.join(among)})" if among else ""
    return f"[registry] {answer.question.key}: {answer.question.asks}{choices}"


def _yaml(values: Mapping[str, Any], indent: int = 0) -> Iterator[str]:
    """Yield lines of YAML: blocks of keys, and scalars as JSON has them, which are YAML too."""
    for key, value in values.items():
        lead = f"{'  ' * indent}{key}:"
        if isinstance(value, Mapping):
            yield lead
            yield from _yaml(value, indent + 1)
        elif isinstance(value, list):
            yield lead
            yield from (f"{'  ' * (indent + 1)}- {_scalar(item)}" for item in value)
        else:
            yield f"{lead} {_scalar(value)}"


def _scalar(value: Any) -> str:
    made = json.dumps(value, ensure_ascii=False)
    # YAML 1.1 takes a number with an exponent for one only if it has a point.
    if isinstance(value, float) and "e" in made and "." not in made:
        made = made.replace("e", ".0e")
    return made

"""Draw ``frontier.svg``, the picture of the README, from saved results.

python docs/figures/frontier.py
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
REPRODUCTIONS = HERE.parents[1] / "reproductions"
sys.path.insert(0, str(REPRODUCTIONS))

from _pictures import Axis, Panel, Series, draw  # noqa: E402

ABOUT = (
    "Adult, test error against the gap between women and men, at epsilon 1 and 3, means over seeds "
    "with 95 % intervals"
)
EPSILONS = (1.0, 3.0)
MARGINS = ("penalty 0", "margin 0.1", "margin 0.05", "margin 0.01")


def rows(name: str, table: str = "rows", **wanted: Any) -> list[dict[str, Any]]:
    """Return saved rows, in order of their gap."""
    saved = json.loads((REPRODUCTIONS / "results" / f"{name}.json").read_text(encoding="utf-8"))
    return [row for row in saved[table] if all(row.get(k) == v for k, v in wanted.items())]


def measured(name: str, found: list[dict[str, Any]]) -> Series:
    """Points with their intervals."""
    found = sorted(found, key=lambda row: float(row["gap"]))
    columns = ([row[key] for row in found] for key in ("gap", "error", "gap_pm", "error_pm"))
    x, y, x_pm, y_pm = columns
    return Series(name=name, x=x, y=y, x_pm=x_pm, y_pm=y_pm)


def published(name: str, pairs: list[tuple[float, float]]) -> Series:
    """Return points that others give as error and gap, without intervals."""
    pairs = sorted(pairs, key=lambda pair: pair[1])
    return Series(name=name, x=[gap for _, gap in pairs], y=[error for error, _ in pairs])


def panel(epsilon: float) -> Panel:
    """All series at one epsilon."""
    own = rows("dpsgd_adult", data="Adult", epsilon=epsilon)
    cut = rows("group_thresholds", method="DP-SGD", epsilon=epsilon)
    shares = rows("labels_or_shares", data="Adult", epsilon=epsilon, answers="shares")
    fermi = rows("dp_fermi_adult", "points", data="Adult", epsilon=epsilon)
    return Panel(
        title=f"epsilon {epsilon:g}",
        x=Axis(title="gap between groups", low=0.0, high=0.21, ticks=(0, 0.05, 0.1, 0.15, 0.2)),
        y=Axis(title="test error", low=0.14, high=0.2, ticks=(0.14, 0.16, 0.18, 0.2)),
        series=[
            measured("evenhand, teachers", shares),
            measured("evenhand, DP-SGD", [row for row in own if row["setting"] in MARGINS]),
            measured("evenhand, DP-SGD, sees the group", cut),
            published("Opacus + fairlearn, sees the group", [r["reference"] for r in cut]),
            published("DP-FERMI, published", [row["published"] for row in fermi]),
        ],
    )


def picture(folder: Path) -> None:
    """Write ``frontier.svg`` into a folder."""
    draw("frontier", ABOUT, [panel(epsilon) for epsilon in EPSILONS], 2, folder=folder)


if __name__ == "__main__":
    picture(HERE)

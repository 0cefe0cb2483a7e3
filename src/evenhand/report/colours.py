"""Colours that stay apart for colour-blind readers, and the ink that can be read on them."""

from __future__ import annotations

from typing import Final

import numpy as np

# Okabe and Ito 2008 less their yellow (too pale) and pink (near green for some readers), with the
# wine and the navy of Tol 2021: of seven, each pair stays apart for red- and green-blind readers.
PALETTE: Final = ("#0072B2", "#E69F00", "#009E73", "#56B4E9", "#882255", "#D55E00", "#332288")
INK: Final = "#1f2933"
SOFT: Final = "#52606d"  # of axes and their words
GRID: Final = "#e4e7eb"
NOT_USED: Final = "#eef1f4"


def colours(n: int) -> list[str]:
    """Return ``n`` colours that differ for colour-blind readers: a palette, or steps of Cividis."""
    if n <= len(PALETTE):
        return list(PALETTE[:n])
    steps = np.linspace(0, 1, n)[:, None]
    dark, middle, light = np.array([0, 34, 78]), np.array([124, 123, 120]), np.array([253, 231, 55])
    mixed = np.where(
        steps < 0.5, dark + 2 * steps * (middle - dark), middle + (2 * steps - 1) * (light - middle)
    )
    return ["#" + "".join(f"{round(part):02x}" for part in row) for row in mixed.tolist()]


def ink_on(colour: str) -> str:
    """Return white or the ink of the page, whichever stands out more on ``colour`` (WCAG 2.2)."""
    there = _luminance(colour) + 0.05
    return INK if there / (_luminance(INK) + 0.05) >= 1.05 / there else "white"


def _luminance(colour: str) -> float:
    """Relative luminance of "#rrggbb"."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue

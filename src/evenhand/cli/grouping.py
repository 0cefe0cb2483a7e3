"""How ``--bins`` and ``--merge-small`` make groups of the sensitive columns."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand._checks import at_least

if TYPE_CHECKING:
    import pandas as pd

    from evenhand._roles import Roles
    from evenhand.fairness import Grouping

WAY_OUT = "--bins {name!r}=4, or --bins {name!r}=25,45,65 for edges of your own"


@dataclass(frozen=True, kw_only=True)
class GroupingOptions:
    """What was asked for: ranges per column, and from how many public rows on a group stays."""

    bins: dict[str, int | tuple[float, ...]]
    merge_small: int = 0

    @classmethod
    def of(cls, bins: list[str] | None, merge_small: int) -> GroupingOptions:
        """Read the words of the command line: ``age=4``, or ``age=25,45,65``."""
        return cls(
            bins=dict(map(_bins, bins or ())), merge_small=at_least("--merge-small", merge_small, 0)
        )

    def check(self, roles: Roles, *, has_public: bool) -> None:
        """Refuse what would be read from private rows, and columns that are not sensitive."""
        for name in self.bins:
            if name not in roles.sensitive:
                raise ValueError(
                    f"--bins cuts sensitive columns, and {name!r} is none: "
                    f"{', '.join(roles.sensitive) or 'there are none'}. Name it with --sensitive."
                )
        counted = [name for name, cuts in self.bins.items() if isinstance(cuts, int)]
        if (counted or self.merge_small) and not has_public:
            what = f"--bins {counted[0]}=..." if counted else "--merge-small"
            raise ValueError(
                f"{what} counts rows, which must be public ones, and --public is missing. Give "
                f"--public FILE, or edges of your own: --bins COLUMN=25,45,65."
            )

    @property
    def counts_rows(self) -> bool:
        """Whether anything is to be cut or merged."""
        return bool(self.bins or self.merge_small)

    def read(self, groups: pd.DataFrame | None, path: Path | None) -> Grouping:
        """Return the grouping, from the sensitive columns of public rows where there are some."""
        from evenhand.fairness import Grouping

        if groups is None:
            edges = {name: cuts for name, cuts in self.bins.items() if isinstance(cuts, tuple)}
            return Grouping(edges=edges)
        try:
            return Grouping.of_public(groups, bins=self.bins, merge_small=self.merge_small)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None


def grouped(groups: pd.DataFrame, grouping: Grouping | None, path: Path) -> pd.DataFrame:
    """Return the groups of these sensitive columns, as a frame; few enough to be compared."""
    from evenhand.fairness.grouping import refuse_many_values

    try:
        if grouping:
            made: Any = grouping(groups)
            groups = made if hasattr(made, "columns") else made.to_frame(name="group")
        refuse_many_values(groups, way_out=WAY_OUT)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return groups


def _bins(word: str) -> tuple[str, int | tuple[float, ...]]:
    name, equals, cuts = word.rpartition("=")
    try:
        numbers = [float(cut) for cut in cuts.split(",")]
        if name and equals and len(numbers) > 1:
            return name, tuple(numbers)
        if name and equals and numbers[0] == int(numbers[0]) >= 2:
            return name, int(numbers[0])
    except (ValueError, OverflowError):
        pass
    raise ValueError(
        f"--bins must be COLUMN=N, with N at least 2, or COLUMN=EDGE,EDGE,..., got {word!r}. For "
        f"example --bins age=4, or --bins age=25,45,65."
    )

"""What persons and their visits, two tables with one key, do for ``evenhand synthesize``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.cli.failures import as_bad_input
from evenhand.cli.output import require_table_name, write_table
from evenhand.cli.synthesize_options import SynthesizeOptions
from evenhand.cli.synthetic_data import Tables, require_like, rows_of
from evenhand.cli.tables import read
from evenhand.generators.registry import GENERATORS

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.cli.console import Bars
    from evenhand.datasets import Schema
    from evenhand.generators.synthesizer import Synthesizer
    from evenhand.generators.tables.visits_evaluation import TwoTableEvaluation


class TwoTables(Tables):
    """A private table of persons, and a second one of their visits."""

    words = "persons and visits"
    title, facts = "Synthetic persons of", ("Private table", "Persons drawn")

    visits: pd.DataFrame
    visits_schema: Any

    @classmethod
    def of(cls, given: SynthesizeOptions) -> TwoTables:
        """Take the options; the key is the unit of both tables."""
        for option, value in (
            ("--curators-report", given.curators_report),
            ("--reference", given.reference),
            ("--unit", given.unit),
        ):
            if value is not None:
                raise ValueError(f"{option} is about one table, and --visits names a second one.")
        if given.per_unit != 1:
            raise ValueError("--per-unit is about one table: --most says how many visits are read.")
        if given.key is None:
            raise ValueError("--visits needs --key, the column of both that says whose a row is.")
        if (given.test is None) != (given.test_visits is None):
            raise ValueError(
                "--test and --test-visits go together: persons that were held out, and all visits "
                "of theirs. Name both files, or neither."
            )
        return cls(replace(given, unit=given.key))

    def refuse(self) -> None:
        """Refuse what a table alone refuses, and a second name that is no table's."""
        super().refuse()
        require_table_name(self.tables["visits"])

    @property
    def tables(self) -> dict[str, Path]:
        """The files of both tables."""
        out, second = self.given.out, self.given.visits_out
        return {"out": out, "visits": second or out.with_suffix(f".visits{out.suffix}")}

    def generator(self, method: str) -> Synthesizer:
        """Return what is to learn both tables by one method."""
        own = {"method": method} | self.settings(method)
        by = {"persons": own, "visits": own}
        kind: Any = GENERATORS["two tables", "two-table"]
        made: Synthesizer = kind(**by, **self.noise(), random_state=self.given.seed)
        return made

    def read(self) -> None:
        """Read both tables and their schemas; what --drop and --keep name may be in either."""
        import pandas as pd

        from evenhand.datasets import Schema
        from evenhand.generators.tables.linked_tables import NUMBER, link
        from evenhand.generators.tables.records import as_roles

        asked = self.given
        assert asked.visits is not None
        visits = read(asked.visits)
        drop, self.keep = (
            [name for name in of or () if name in visits] for of in (asked.drop, asked.keep)
        )
        self.given = replace(
            asked,
            test=None,
            drop=[name for name in asked.drop or () if name not in drop],
            keep=[name for name in asked.keep or () if name not in self.keep],
        )
        self.counted = (NUMBER,)
        super().read()
        if not isinstance(self.private, pd.DataFrame):
            raise ValueError(
                f"{asked.private} is read in batches, and two tables are read whole. Write the "
                f"persons to one file."
            )
        self.private = self.private.drop(columns=[name for name in drop if name in self.private])
        with as_bad_input(TypeError, KeyError, where=str(asked.visits_schema)):
            declared = asked.visits_schema
            self.visits_schema = None if declared is None else Schema.load(declared)
        self.visits = visits.frame.drop(columns=drop)
        if self.visits_schema is not None:
            self.visits = self.visits_schema.parse(self.visits, asked.visits)
        if asked.test is not None and asked.test_visits is not None:
            persons = self._test_rows(asked.test, self.private, self.schema)
            theirs = self._test_rows(asked.test_visits, self.visits, self.visits_schema)
            # What does not fit shows before anything is spent.
            roles = as_roles(asked.label, asked.sensitive, asked.key)
            link(persons, theirs, roles, asked.most)
            require_like(persons, asked.test, self.private, self.schema, roles.conditions)
            require_like(theirs, asked.test_visits, self.visits, self.visits_schema, ())
            self.test = persons, theirs
        self.given = replace(self.given, test=asked.test)

    def _test_rows(self, path: Path, private: pd.DataFrame, schema: Schema | None) -> pd.DataFrame:
        """Return rows with the columns that are learnt of a table, and with its key."""
        made = () if schema is None else (column.name for column in schema.made)
        rows = rows_of(read(path), columns={*private.columns} - {*made} | {str(self.given.key)})
        return rows if schema is None else schema.parse(rows, path)

    def fit(self, generator: Any, **how: Any) -> None:
        """Learn from both tables."""
        given = self.given
        how.pop("per_unit")
        generator.fit(
            self.private,
            self.visits,
            key=given.key,
            label=given.label,
            sensitive=given.sensitive,
            most=given.most,
            carry=given.carry or (),
            schema=self.schema,
            visits_schema=self.visits_schema,
            keep=given.keep or (),
            visits_keep=self.keep,
            **how,
        )

    def draw(self, generator: Any) -> Any:
        """Draw persons as rows of one table are drawn, and their visits."""
        return generator.sample(self.given.rows, **self.how(generator.persons_))

    def evaluate(self, generator: Any, drawn: Any, bars: Bars) -> TwoTableEvaluation:
        """Measure both tables on persons that were held out."""
        from evenhand.generators import evaluate

        with as_bad_input(KeyError, where="--test"):
            found: TwoTableEvaluation = evaluate(generator, drawn, self.test, progress=bars)
            return found

    def measured(self, found: Any) -> tuple[Sequence[tuple[str, str]], list[tuple[str, str]]]:
        """Return what is shown of the persons, and how near the visits are."""
        shown, more = super().measured(found)
        beside = {"visits of a person": found.n_visits} | {
            f"visits, variance of {name} between persons": shares
            for name, shares in found.between.items()
        }
        return shown, [
            *more,
            ("visits, fidelity of columns", f"{found.visits.column_score:.3f}"),
            ("visits, fidelity of pairs", f"{found.visits.pair_score:.3f}"),
            *((words, f"{made:.3f} (real {real:.3f})") for words, (real, made) in beside.items()),
        ]

    def conditions(self, drawn: Any) -> pd.DataFrame:
        """Return label and groups of the persons."""
        return super().conditions(drawn[0])

    def write(self, drawn: Any, *paths: Path) -> None:
        """Write both tables."""
        for table, path in zip(drawn, paths, strict=True):
            write_table(table, path, raw=self.given.raw)

    def report(self, generator: Any, drawn: Any, path: Path, found: Any, *more: Any) -> None:
        """Write the report on both tables, with the whole claim."""
        super().report(generator, drawn[0], path, found, *more)

    def sizes(self, drawn: Any) -> dict[str, int]:
        """Return how many visits were drawn."""
        return {"n_visits": len(drawn[1])}

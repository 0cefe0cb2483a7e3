"""Tables for ``evenhand synthesize``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.cli import vocabulary
from evenhand.cli.console import Bars
from evenhand.cli.failures import as_bad_input
from evenhand.cli.output_tables import require_table_name, write_table
from evenhand.cli.synthesis import GAPS
from evenhand.cli.synthesize_options import SynthesizeOptions

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.datasets import Schema
    from evenhand.generators.tables.evaluation import TableEvaluation
    from evenhand.generators.tables.synthesizer import TableSynthesizer


class Tables:
    """A private table, CSV or Parquet; see ``SyntheticData``."""

    payload, default, words = "tables", "marginal", "rows"

    private: pd.DataFrame
    schema: Schema | None
    reference: pd.DataFrame | None
    test: pd.DataFrame | None

    def __init__(self, given: SynthesizeOptions) -> None:
        self._given = given

    def refuse(self) -> None:
        """Refuse a name that is no table's."""
        require_table_name(self._given.out)

    def read(self) -> None:
        """Read schema, private table, reference and test rows."""
        from evenhand.datasets import Schema, read_table
        from evenhand.generators.memory import require_memory
        from evenhand.generators.tables.codec import BYTES_PER_CELL

        given = self._given
        with as_bad_input(TypeError, KeyError, where=str(given.schema)):
            self.schema = None if given.schema is None else Schema.load(given.schema)
        self.private = _read(given.private, given.drop or ())
        self.reference = None if given.reference is None else read_table(given.reference)
        columns = set(self.private.columns)
        self.test = None if given.test is None else _read(given.test, columns=columns)
        require_memory(
            f"{given.rows:,} rows of {len(columns)} columns",
            float(given.rows) * len(columns) * BYTES_PER_CELL,
            "--rows, and draw more from the folder of --save",
        )

    def noise(self) -> dict[str, Any]:
        """Return exact noise, unless another one is named."""
        return {"noise": vocabulary.noise(self._given.noise or "exact")}

    def fit(self, generator: TableSynthesizer, **how: Any) -> None:
        """Learn from the private table."""
        given = self._given
        generator.fit(
            self.private,
            label=given.label,
            sensitive=given.sensitive,
            schema=self.schema,
            unit=given.unit,
            reference=self.reference,
            keep=given.keep or (),
            **how,
        )

    def draw(self, generator: TableSynthesizer) -> pd.DataFrame:
        """Draw rows, balanced or with the shares of --parity."""
        from evenhand.generators import even_rates

        given = self._given
        how: dict[str, Any] = {"balance": given.balanced}
        if given.parity != "none":
            parity = given.parity.replace("-", "_")
            how = {"shares": even_rates(generator, parity, random_state=given.seed)}
        drawn: pd.DataFrame = generator.sample(given.rows, random_state=given.seed, **how)
        return drawn

    def evaluate(
        self, generator: TableSynthesizer, drawn: pd.DataFrame, bars: Bars
    ) -> TableEvaluation:
        """Measure on the test rows."""
        from evenhand.generators.tables.evaluation import evaluate_rows

        assert self.test is not None
        with as_bad_input(KeyError, where="--test"):
            return evaluate_rows(generator, drawn, self.test[list(drawn.columns)], progress=bars)

    def conditions(self, drawn: pd.DataFrame) -> pd.DataFrame:
        """Return label and groups of the rows."""
        return drawn[[self._given.label, *self._given.sensitive]]

    def write(self, drawn: pd.DataFrame, path: Path) -> None:
        """Write the rows."""
        write_table(drawn, path, raw=self._given.raw)

    def report(
        self,
        generator: TableSynthesizer,
        drawn: pd.DataFrame,
        path: Path,
        found: TableEvaluation | None,
    ) -> None:
        """Write the report."""
        from evenhand.report import write_report

        name = self._given.private.name
        write_report(
            generator,
            path,
            measured=found,
            test=None if self.test is None else self.test[list(drawn.columns)],
            title=f"Synthetic rows of {name}",
            dataset={"Private table": name, "Rows drawn": f"{len(drawn):,}"},
        )

    def measured(
        self, found: TableEvaluation
    ) -> tuple[Sequence[tuple[str, str]], list[tuple[str, str]]]:
        """Return AUROC and gaps, and how near the columns are."""
        return (("AUROC", "auroc"), *GAPS), [
            ("fidelity of columns", f"{found.fidelity.column_score:.3f}"),
            ("fidelity of pairs", f"{found.fidelity.pair_score:.3f}"),
        ]


def _read(path: Path, drop: Sequence[str] = (), columns: set[str] | None = None) -> pd.DataFrame:
    from evenhand.cli.tables import read

    table = read(path)
    if columns is None:
        table.require(drop, "which --drop names")
        return table.frame.drop(columns=list(drop))
    table.require(columns, "which the private table names")
    return table.frame[[column for column in table if column in columns]]

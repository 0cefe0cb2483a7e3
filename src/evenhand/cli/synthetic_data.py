"""What a kind of data, rows or pictures, does for ``evenhand synthesize``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from evenhand._checks import did_you_mean, together
from evenhand._words import ARRAYS
from evenhand.cli import options
from evenhand.cli.console import Bars
from evenhand.cli.constraints import constraints_of
from evenhand.cli.failures import as_bad_input
from evenhand.cli.method_settings import settings_of
from evenhand.cli.output import require_table_name, write_table
from evenhand.cli.synthesize_options import SynthesizeOptions
from evenhand.cli.tables import read, stream_of, unit_ids
from evenhand.generators.registry import GENERATORS

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.datasets import Schema
    from evenhand.datasets.columns import TypedTable
    from evenhand.datasets.images import ImageData
    from evenhand.datasets.parquet import ParquetRows
    from evenhand.generators.evaluation import Evaluation
    from evenhand.generators.images.codec import ImageSample
    from evenhand.generators.images.evaluation import ImageEvaluation
    from evenhand.generators.images.synthesizer import ImageSynthesizer
    from evenhand.generators.synthesizer import Synthesizer
    from evenhand.generators.tables.codec import TableCodec
    from evenhand.generators.tables.constraints import Constraint
    from evenhand.generators.tables.evaluation import TableEvaluation
    from evenhand.generators.tables.membership import Membership
    from evenhand.generators.tables.synthesizer import TableSynthesizer

GAPS: Final = (
    ("accuracy", "accuracy"),
    ("demographic parity gap", "demographic_parity_pairwise"),
    ("equalized odds gap", "equalized_odds_pairwise"),
    ("accuracy gap", "error_parity_pairwise"),
)
"""What is measured of models that saw synthetic data alone, in words and by its key."""


class SyntheticData(ABC):
    """One kind of data on the command line: how it is read, learnt, drawn and written."""

    payload: ClassVar[str]
    default: ClassVar[str]
    words: ClassVar[str]
    title: ClassVar[str]
    facts: ClassVar[tuple[str, str]]
    usual_noise: ClassVar[str | None] = None

    test: Any = None

    def __init__(self, given: SynthesizeOptions) -> None:
        self.given = given

    @abstractmethod
    def refuse(self) -> None:
        """Refuse options that do not go with this kind of data, and names of other files."""

    @abstractmethod
    def read(self) -> None:
        """Read the private file, and the others that were named."""

    def noise(self) -> dict[str, Any]:
        """Return the noise that is named, or the usual one, or leave it to the method."""
        named = self.given.noise or self.usual_noise
        return {} if named is None else {"noise": options.noise(named)}

    def settings(self, method: str) -> dict[str, Any]:
        """Return the settings of the method that are named; a wrong name or type is refused."""
        named = self.given.setting  # without any, no class is imported
        return settings_of(GENERATORS[self.payload, method], named) if named else {}

    def generator(self, method: str) -> Synthesizer:
        """Return what is to learn, by the name of its method."""
        settings = self.settings(method) | self.noise()
        return GENERATORS[self.payload, method](**settings, random_state=self.given.seed)

    @property
    def tables(self) -> dict[str, Path]:
        """The files of what is drawn, by their names in a summary."""
        return {"out": self.given.out}

    @abstractmethod
    def fit(self, generator: Any, **how: Any) -> None:
        """Learn from the private file."""

    @abstractmethod
    def draw(self, generator: Any) -> Any:
        """Draw what was asked for."""

    @abstractmethod
    def evaluate(self, generator: Any, drawn: Any, bars: Bars) -> Evaluation:
        """Measure on the test file."""

    def attack(self, generator: Any, drawn: Any, bars: Bars) -> Membership | None:
        """Attack private records for the curator alone, where that was asked for."""
        return None

    @abstractmethod
    def conditions(self, drawn: Any) -> pd.DataFrame:
        """Return label and groups of what was drawn, by their names."""

    @abstractmethod
    def write(self, drawn: Any, *paths: Path) -> None:
        """Write what was drawn, to a path for each of ``tables``."""

    def sizes(self, drawn: Any) -> dict[str, int]:
        """Return how many records a further table has, by a name for a summary."""
        return {}

    def report(
        self,
        generator: Any,
        drawn: Any,
        path: Path,
        found: Any,
        membership: Membership | None = None,
    ) -> None:
        """Write the report; with ``membership`` the one for the curator alone."""
        from evenhand.report import write_report

        name = self.given.private.name
        write_report(
            generator,
            path,
            measured=found,
            test=self.test,
            membership=membership,
            title=f"{self.title} {name}",
            dataset=dict(zip(self.facts, (name, f"{len(drawn):,}"), strict=True)),
        )

    @abstractmethod
    def measured(self, found: Any) -> tuple[Sequence[tuple[str, str]], list[tuple[str, str]]]:
        """Return which means to show, by words and key, and more lines below them."""


class Tables(SyntheticData):
    """A private table, CSV or Parquet, or rows of Parquet that are read in batches."""

    payload, default, words = "tables", "marginal", "rows"
    title, facts = "Synthetic rows of", ("Private table", "Rows drawn")
    usual_noise = "exact"

    private: pd.DataFrame | ParquetRows
    schema: Schema | None
    reference: pd.DataFrame | None
    where: dict[str, str | None]
    constraints: list[Constraint]
    counted: tuple[str, ...] = ()
    """Columns that are learnt, and that no file has."""
    test_units: pd.Series[Any] | None = None
    """Whose record a test row is, where its file has the column of --unit."""

    def refuse(self) -> None:
        """Refuse a name that is no table's."""
        if self.given.out.suffix == ARRAYS:
            raise ValueError(
                f"--out {self.given.out} is for pictures, and they are learnt from a file {ARRAYS} "
                f"with the array images; {self.given.private} is read as a table. Pictures that "
                f"a table lists are read in Python: ImageData.from_csv."
            )
        require_table_name(self.given.out)

    def read(self) -> None:
        """Read schema, private table, reference and test rows."""
        from evenhand.datasets import Schema, read_table
        from evenhand.datasets.patterns import Pattern
        from evenhand.generators.memory import require_memory
        from evenhand.generators.tables.codec import BYTES_PER_CELL

        given = self.given
        with as_bad_input(TypeError, KeyError, where=str(given.schema)):
            self.schema = None if given.schema is None else Schema.load(given.schema)
        made = () if self.schema is None else self.schema.made
        together(partial(Pattern(str(c.pattern)).require_room, given.rows, c.name) for c in made)
        stream = stream_of(given.private, None, None)
        if stream is None:
            frame = rows_of(read(given.private), given.drop or ())
            self.private = self._parsed(frame, given.private)
        else:
            self.private = replace(stream, drop=given.drop or ())
        self.reference = None if given.reference is None else read_table(given.reference)
        columns = set(self.private.columns)
        learnt = columns - {given.unit} - {column.name for column in made}
        drawn_by = learnt | {*self.counted}
        rows = _in_memory(self.private)
        rows = rows[[name for name in rows.columns if name in learnt]]

        def rules() -> None:
            self.constraints = constraints_of(given.constraint or (), rows, self.schema)

        where = partial(self._read_where, drawn_by, rows)
        together((where, rules, self._require_two_classes, self._require_save))
        if given.test is not None:
            table = read(given.test)
            self.test = self._parsed(rows_of(table, columns=learnt), given.test)
            if given.unit is not None and given.unit in table:
                self.test_units = unit_ids(table[given.unit])
            conditions = (given.label, *given.sensitive)  # before anything is spent
            require_like(self.test, given.test, self.private, self.schema, conditions)
        if given.curators_report is not None:
            from evenhand.generators.tables.membership import require_rows

            if stream is not None:
                raise ValueError(
                    f"--curators-report attacks rows in memory, and those of {given.private} are "
                    f"read in batches. Leave it out, or give one file of some of these rows."
                )
            require_rows(self._members, self.test)  # before anything is spent
        require_memory(
            f"{given.rows:,} rows of {len(columns)} columns",
            float(given.rows) * len(columns) * BYTES_PER_CELL,
            "--rows, and draw more from the folder of --save",
        )

    def _read_where(self, columns: set[Any], rows: pd.DataFrame) -> None:
        """Read what --where asks for; what the schema says that no row has is refused."""
        from evenhand.datasets import Schema
        from evenhand.datasets.columns import TypedTable
        from evenhand.generators.tables.codec import TableCodec
        from evenhand.generators.tables.wanted_rows import Wanted

        given = self.given
        asked = [_asked(text, columns) for text in given.where or ()]
        self.where = dict(asked)
        for name, value in self.where.items():
            if name in (given.label, *given.sensitive) and given.fairness != "none":
                raise ValueError(
                    f"--fairness says the shares of label and groups, and --where {name}= asks for "
                    f"rows of one of them. Leave one of the two out."
                )
            if value is None and name in (given.label, *given.sensitive):
                raise ValueError(
                    f"--where {name}= asks for rows without a value, and the label and the groups "
                    f"of drawn rows are never missing. Name one: {name}=VALUE."
                )
            if sum(name == other for other, _ in asked) > 1:
                raise ValueError(f"--where names {name!r} twice. Give it once.")
        known = () if self.schema is None else self.schema.columns
        declared = [c for c in known if c.name in self.where and (c.categories or c.bounds)]
        if declared:
            table = TypedTable.of(rows.iloc[:0][[column.name for column in declared]])
            codec = TableCodec.of(Schema(columns=tuple(declared)), table, ())
            Wanted.of(codec, self._conditions(codec), ())

    def _require_two_classes(self) -> None:
        """Refuse --fairness for a label of more classes, where the schema says how many it has."""
        if self.given.fairness == "none" or self.schema is None:
            return
        label = next((c for c in self.schema.columns if c.name == self.given.label), None)
        if label is not None and len(label.categories) not in (0, 2):
            raise ValueError(
                f"--fairness moves the shares of two classes, and the schema declares "
                f"{len(label.categories)} of {label.name!r}. Leave it out; --balance spreads any "
                f"number of classes evenly."
            )

    def _conditions(self, codec: TableCodec) -> dict[str, Any]:
        """Return what --where asks of these columns, LOW..HIGH of numbers and dates as a range."""
        return {
            name: text
            if text is None or codec[name].bins is None or ".." not in text
            else tuple(text.split("..", 1))
            for name, text in self.where.items()
            if name in codec.names
        }

    def _require_save(self) -> None:
        """Refuse a condition that could cost the whole fit."""
        given = self.given
        if (given.where or given.constraint) and given.save is None:
            raise ValueError(
                f"{'--where' if given.where else '--constraint'} may ask for what no row has, "
                f"which only the fit can tell, and the fit would be lost with its budget. Keep it "
                f"with --save FOLDER."
            )

    def _parsed(self, frame: pd.DataFrame, path: Path) -> pd.DataFrame:
        """Read cells as the schema says."""
        return frame if self.schema is None else self.schema.parse(frame, path)

    @property
    def _members(self) -> pd.DataFrame:
        """Private rows that the fit reads."""
        import pandas as pd

        from evenhand.generators.tables.records import first_of_units

        assert isinstance(self.private, pd.DataFrame)
        unit = self.given.unit
        if unit is None:
            return self.private
        return first_of_units(self.private, unit, self.given.per_unit).drop(columns=unit)

    def fit(self, generator: TableSynthesizer, **how: Any) -> None:
        """Learn from the private table."""
        given = self.given
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

    def draw(self, generator: TableSynthesizer) -> Any:
        """Draw rows, balanced or with the shares of --fairness."""
        drawn = generator.sample(self.given.rows, **self.how(generator))
        if self.test is not None:
            self.test = self.test[[name for name in drawn.columns if name in self.test]]
        return drawn

    def how(self, generator: TableSynthesizer) -> dict[str, Any]:
        """Return how rows are drawn, as ``sample`` takes it."""
        from evenhand.generators import even_rates

        given = self.given
        how: dict[str, Any] = {"balance": given.balanced, "random_state": given.seed}
        if given.fairness != "none":
            shares = even_rates(generator, given.fairness, random_state=given.seed)
            how = {"shares": shares, "random_state": given.seed}
        asked = self._conditions(generator.codec_) or None
        return how | {"conditions": asked, "constraints": self.constraints}

    def evaluate(
        self, generator: TableSynthesizer, drawn: pd.DataFrame, bars: Bars
    ) -> TableEvaluation:
        """Measure on the test rows; models see private rows for the curator's report alone."""
        from evenhand.generators.tables.evaluation import evaluate_rows

        assert self.test is not None
        train = None if self.given.curators_report is None else self._members
        with as_bad_input(KeyError, where="--test"):
            return evaluate_rows(
                generator, drawn, self.test, train=train, units=self.test_units, progress=bars
            )

    def attack(
        self, generator: TableSynthesizer, drawn: pd.DataFrame, bars: Bars
    ) -> Membership | None:
        """Attack private rows for the curator alone, where that was asked for."""
        if self.given.curators_report is None:
            return None
        from evenhand.generators.tables.membership import attack_membership

        bars.begin("attacking, for the curator")
        found = attack_membership(generator, drawn, self._members, self.test)
        return found.reveal_to_curator()

    def conditions(self, drawn: Any) -> pd.DataFrame:
        """Return label and groups of the rows."""
        found: pd.DataFrame = drawn[[self.given.label, *self.given.sensitive]]
        return found

    def write(self, drawn: Any, *paths: Path) -> None:
        """Write the rows."""
        write_table(drawn, paths[0], raw=self.given.raw)

    def measured(
        self, found: TableEvaluation
    ) -> tuple[Sequence[tuple[str, str]], list[tuple[str, str]]]:
        """Return AUROC and gaps, and how near the columns are."""
        return (("AUROC", "auroc"), *GAPS), [
            ("fidelity of columns", f"{found.fidelity.column_score:.3f}"),
            ("fidelity of pairs", f"{found.fidelity.pair_score:.3f}"),
        ]


def _asked(text: str, columns: set[Any]) -> tuple[str, str | None]:
    """Return column and value of a --where; None is a missing one, as an empty field of a CSV."""
    # A name may have an equals sign, and then the longest one is meant.
    parts = text.split("=")
    names = ("=".join(parts[:n]) for n in range(len(parts) - 1, 0, -1))
    name = next((name for name in names if name in columns), None)
    if name is not None:
        return name, text[len(name) + 1 :] or None
    said = f"--where is COLUMN=VALUE with a column that is learnt, got {text!r}."
    if len(parts) == 1 and text in columns:
        raise ValueError(f"{said} Say which value: {text}=VALUE, or {text}= for a missing one.")
    raise ValueError(f"{said}{did_you_mean(parts[0], columns)}")


def rows_of(
    table: TypedTable, drop: Sequence[str] = (), columns: set[str] | None = None
) -> pd.DataFrame:
    """Return a table without some columns, or these columns alone, in its order."""
    if columns is None:
        table.require(drop, "which --drop names")
        return table.frame.drop(columns=list(drop))
    table.require(sorted(columns), "which the private table names")
    return table.frame[[column for column in table if column in columns]]


def require_like(
    test: pd.DataFrame,
    path: Path,
    private: pd.DataFrame | ParquetRows,
    schema: Schema | None,
    conditions: Sequence[str],
) -> None:
    """Refuse test rows on which what is learnt of a private table could not be measured."""
    from evenhand.datasets.columns import TypedTable
    from evenhand.generators.tables.evaluation import columns_like, require_measurable

    columns = columns_like(TypedTable.of(_in_memory(private)), schema)
    require_measurable(TypedTable(test, path), columns, conditions)


def _in_memory(private: pd.DataFrame | ParquetRows) -> pd.DataFrame:
    """Return rows, some of those that are read in batches: for names and dtypes alone."""
    from evenhand.datasets.parquet import ParquetRows

    if isinstance(private, ParquetRows):
        return private.as_stored(private.sample(private.columns))
    return private


class Pictures(SyntheticData):
    """Private pictures, arrays in an .npz."""

    payload, default, words = "images", "gaussian", "pictures"
    title, facts = "Synthetic pictures like", ("Private pictures", "Drawn")

    private: ImageData
    declared: dict[str, Any]
    """What of labels and groups is declared, as ``fit`` takes it."""

    def refuse(self) -> None:
        """Refuse options of tables, and another ending."""
        given = self.given
        for option, value in (
            ("--fairness", given.fairness != "none"),
            ("--where", given.where),
            ("--constraint", given.constraint),
            ("--drop", given.drop),
            ("--keep", given.keep),
            ("--reference", given.reference),
            ("--curators-report", given.curators_report),
        ):
            if value:
                raise ValueError(f"{option} is for tables, and {given.private} holds pictures.")
        if given.out.suffix != ARRAYS:
            raise ValueError(f"--out holds pictures and must end in {ARRAYS}, got {given.out}.")

    def settings(self, method: str) -> dict[str, Any]:
        """Return the settings that are named; with a balance of groups that none draws, refuse."""
        given, found = self.given, super().settings(method)
        alone = found.get("condition") == "label"
        if alone and given.balance is not None and "sensitive" in given.balanced:
            from evenhand.generators.conditions import NO_GROUPS

            raise ValueError(f"--balance {given.balance} {NO_GROUPS}")
        return found

    def read(self) -> None:
        """Read private and test pictures."""
        from evenhand.datasets.images import ImageData

        given = self.given
        named: dict[str, Any] = {"label": given.label, "sensitive": given.sensitive}
        self.declared = self._declared()
        self.private = ImageData.from_npz(given.private, **named, unit=given.unit)
        if given.test is not None:
            from evenhand.generators.images.evaluation import require_measurable

            self.test = ImageData.from_npz(given.test, **named)
            require_measurable(self.test, self.private, "private")  # before anything is spent

    def _declared(self) -> dict[str, Any]:
        """Read which values of the label and the groups the schema names."""
        from evenhand.datasets import Schema

        given = self.given
        if given.schema is None:
            return {}
        with as_bad_input(TypeError, KeyError, where=str(given.schema)):
            columns = Schema.load(given.schema).columns
        known = {column.name: column.categories for column in columns}
        for name, values in known.items():
            if name not in (given.label, *given.sensitive) or not values:
                raise ValueError(
                    f"Of pictures {given.schema} declares the categories of --label and "
                    f"--sensitive alone, and it has {name!r}"
                    f"{' without any' * (name in (given.label, *given.sensitive))}. Leave it out."
                )
        classes = known.pop(given.label, None)
        return {"classes": classes, "groups": known or None}

    def fit(self, generator: ImageSynthesizer, **how: Any) -> None:
        """Learn from the private pictures."""
        import pandas as pd

        generator.fit(
            self.private.images,
            pd.Series(self.private.y, name=self.given.label),
            sensitive_features=self.private.sensitive_features,
            unit_ids=self.private.units,
            **self.declared,
            **how,
        )

    def draw(self, generator: ImageSynthesizer) -> ImageSample:
        """Draw balanced pictures."""
        given = self.given
        drawn: ImageSample = generator.sample(
            given.rows, balance=given.balanced, random_state=given.seed
        )
        return drawn

    def evaluate(
        self, generator: ImageSynthesizer, drawn: ImageSample, bars: Bars
    ) -> ImageEvaluation:
        """Measure on the test pictures."""
        from evenhand.generators.images.evaluation import evaluate_images

        assert self.test is not None
        return evaluate_images(drawn, self.test, progress=bars)  # no private picture is read

    def conditions(self, drawn: ImageSample) -> pd.DataFrame:
        """Return labels and groups of the pictures."""
        import pandas as pd

        frame, groups = pd.DataFrame({self.given.label: drawn.y}), drawn.sensitive_features
        return frame.join(groups) if isinstance(groups, pd.DataFrame) else frame

    def write(self, drawn: ImageSample, *paths: Path) -> None:
        """Write the pictures and their labels and groups as arrays."""
        import numpy as np

        from evenhand.datasets.images.arrays import IMAGES

        frame = self.conditions(drawn)
        named = {str(name): frame[name].to_numpy() for name in frame.columns}
        # Text as fixed-width arrays: objects would make a pickle.
        named = {k: v.astype(str) if v.dtype == object else v for k, v in named.items()}
        with paths[0].open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **{IMAGES: drawn.uint8}, **named)

    def measured(
        self, found: ImageEvaluation
    ) -> tuple[Sequence[tuple[str, str]], list[tuple[str, str]]]:
        """Return the gaps, and how even the groups are that the pictures show."""
        if found.judged is None:
            return GAPS, []
        return GAPS, [
            ("KL of the groups shown, to even ones", f"{found.judged.balance.kl.value:.5f}"),
            ("  by a classifier whose accuracy is", f"{found.judged.accuracy:.3f}"),
        ]

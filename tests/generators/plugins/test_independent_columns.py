"""A generator of tables of one's own keeps the contract, and nothing else had to be touched."""

from __future__ import annotations

import pytest

from evenhand.generators.registry import REGISTERED, generators, names_of, register
from evenhand.generators.synthesizer import arguments_of
from evenhand.generators.tables.synthesizer import TableSynthesizer
from evenhand.privacy import SeededNoise
from evenhand.testing.generators import SynthesizerContract

from .independent_columns import COUNTS, IndependentColumns

KEY = (IndependentColumns.payload, IndependentColumns.method)
del REGISTERED[KEY]


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register it for these tests alone."""
    monkeypatch.setitem(REGISTERED, KEY, IndependentColumns)
    register(IndependentColumns)  # twice the same is no error


class TestIndependentColumns(SynthesizerContract):
    def new(self) -> TableSynthesizer:
        return IndependentColumns(noise=SeededNoise(0), random_state=0)

    def test_columns_follow_label_and_group(self) -> None:
        rows = self.fitted().sample(20_000, random_state=1)
        # Scores are .7 and .2; noise and bins of a fit move the difference by about .02.
        assert rows.groupby("old")["score"].mean().diff().iloc[-1] == pytest.approx(0.5, abs=0.15)

    def test_the_registry_knows_what_it_is_and_what_it_takes(self) -> None:
        assert "independent-columns" in names_of("tables", offered=True)
        assert generators("tables")["independent-columns"] is IndependentColumns
        assert set(arguments_of(IndependentColumns)) == {
            *("neighbors", "n_bins", "noise", "random_state")
        }
        assert COUNTS in {entry.purpose for entry in self.fitted().ledger_.entries}


def test_a_name_that_is_taken_is_refused() -> None:
    with pytest.raises(ValueError, match="named 'marginal' already"):
        register(type("Mine", (IndependentColumns,), {"method": "marginal"}))

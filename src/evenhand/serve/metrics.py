"""What Prometheus reads: requests of this process, and the counts of the store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from evenhand.serve.desk import Desk

_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)


class Metrics:
    """Counters of one server; names of groups, classes and columns are labels, no value is."""

    def __init__(self, desk: Desk) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "evenhand_requests",
            "Requests by route and status.",
            ["method", "route", "status"],
            registry=self.registry,
        )
        self.seconds = Histogram(
            "evenhand_request_seconds",
            "Time to the answer.",
            ["method", "route"],
            buckets=_BOUNDS,
            registry=self.registry,
        )
        self.registry.register(_OfStore(desk))

    def text(self) -> bytes:
        """Return the page that Prometheus scrapes."""
        return generate_latest(self.registry)


class _OfStore:
    """The counts, read from the store when they are asked for."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def describe(self) -> list[Any]:
        return []  # so that registering reads no store

    def collect(self) -> Iterator[Any]:
        counts, option = self._desk.view()
        gauge, counter = GaugeMetricFamily, CounterMetricFamily
        words = "Largest difference of rates now, of several margins the nearest."
        yield gauge("evenhand_gap", words, value=option.gap)
        yield gauge("evenhand_margin", "The margin.", value=option.margin)
        for name, words, values in (
            ("evenhand_notion_gap", "The gap by each notion.", [k.gap for k in option.kept]),
            ("evenhand_notion_margin", "Its margin.", [k.notion.margin for k in option.kept]),
        ):
            of_each = gauge(name, words, labels=["notion", "reference"])
            for kept, value in zip(option.kept, values, strict=True):
                of_each.add_metric([kept.notion.name, kept.notion.reference], value)
            yield of_each
        yield gauge("evenhand_within_margin", "1 if within it.", value=float(option.within))
        for name, words, withheld in (
            ("evenhand_queue", "Decisions that wait for a person.", False),
            ("evenhand_withheld", "Labels that wait for the first block of their group.", True),
        ):
            n_open = self._desk.store.n_open(**self._desk.waiting(withheld=withheld))
            yield gauge(name, words, value=n_open)
        for name, words, table in (
            ("evenhand_said", "Labels that the model said.", option.coverage.offered),
            ("evenhand_given_by_model", "Labels given without a person.", option.coverage.given),
            ("evenhand_given_by_people", "Labels that people gave.", option.given_by_hand),
            ("evenhand_taken_back", "Labels that people withdrew.", option.taken_back),
        ):
            family = counter(name, words, labels=["group", "class"])
            for group, row in zip(option.groups, table.tolist(), strict=True):
                for label, n in zip(option.classes, row, strict=True):
                    family.add_metric([group, label], n)
            yield family
        yield counter(
            "evenhand_unknown_group", "Rows of an unknown group.", value=int(option.unknown.sum())
        )
        strange = counter(
            "evenhand_unknown_values",
            "Values that the model does not know, by column, of this server.",
            labels=["column"],
        )
        for column in self._desk.reader.categories:
            strange.add_metric([column], self._desk.unknown[column])
        yield strange
        yield counter(
            "evenhand_forced_reviews", "Reviews beyond the margin.", value=counts.n_forced
        )

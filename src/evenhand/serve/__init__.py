"""Decisions as a service: labels or REJECTED within a margin, durable counts, people behind them.

``evenhand serve model/`` starts it; see ``docs/serve.md``. It needs the extra ``serve``.
"""

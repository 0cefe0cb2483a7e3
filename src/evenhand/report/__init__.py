"""Pages: what was claimed, spent, answered and measured, for a reader."""

from evenhand.report.content import ModelReport
from evenhand.report.summary import summary_lines
from evenhand.report.writing import write_report

__all__ = ["ModelReport", "summary_lines", "write_report"]

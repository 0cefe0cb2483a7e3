"""Pages: what was claimed, spent, answered and measured, for a reader."""

from evenhand.report.content import ModelReport
from evenhand.report.page import write_model_report
from evenhand.report.summary import summary_lines

__all__ = ["ModelReport", "summary_lines", "write_model_report"]

"""Pages: what was claimed, spent, answered and measured, for a reader."""

from evenhand.report.content import ModelReport
from evenhand.report.page import write_model_report
from evenhand.report.summary import summary_lines
from evenhand.report.synthetic import SyntheticReport, write_synthetic_report

__all__ = [
    "ModelReport",
    "SyntheticReport",
    "summary_lines",
    "write_model_report",
    "write_synthetic_report",
]

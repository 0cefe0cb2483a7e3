"""Pages: what was claimed, spent, answered and measured, for a reader."""

from evenhand.report.content import ModelReport, write_model_report
from evenhand.report.images import write_image_report
from evenhand.report.summary import summary_lines
from evenhand.report.synthetic import write_synthetic_report

__all__ = [
    "ModelReport",
    "summary_lines",
    "write_image_report",
    "write_model_report",
    "write_synthetic_report",
]

"""Pages: what was claimed, spent, answered and measured, for a reader."""

from evenhand.report.content import ModelReport
from evenhand.report.images import ImageReport, write_image_report
from evenhand.report.page import write_model_report
from evenhand.report.summary import summary_lines
from evenhand.report.synthetic import SyntheticReport, write_synthetic_report

__all__ = [
    "ImageReport",
    "ModelReport",
    "SyntheticReport",
    "summary_lines",
    "write_image_report",
    "write_model_report",
    "write_synthetic_report",
]

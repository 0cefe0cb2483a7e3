"""The page on which a run is chosen: limits, linked views, the claim of the chosen one."""

from evenhand.frontier.page.data import page_data
from evenhand.frontier.page.write import write_page

__all__ = ["page_data", "write_page"]

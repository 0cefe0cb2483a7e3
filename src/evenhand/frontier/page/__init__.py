"""The page on which a run is chosen: limits, linked views, the claim of the chosen one."""

__all__ = []

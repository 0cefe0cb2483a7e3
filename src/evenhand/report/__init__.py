"""Pages: what was claimed, spent, answered and measured, for a reader."""

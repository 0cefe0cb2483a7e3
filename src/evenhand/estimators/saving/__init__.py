"""A fitted model as a folder of plain files."""

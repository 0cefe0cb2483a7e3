"""Contract tests and tiny data, published for authors of plug-ins."""

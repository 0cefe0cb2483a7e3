"""Models behind one small protocol."""

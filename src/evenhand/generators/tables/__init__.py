"""Synthetic tables: columns as whole numbers, and the methods that learn them."""

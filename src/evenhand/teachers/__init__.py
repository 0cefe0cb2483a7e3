"""From private records to votes."""

"""Whether an answer may be given, and how far apart groups are treated."""

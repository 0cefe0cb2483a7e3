"""Tables: loaders, splits, and encoders that read public rows only."""

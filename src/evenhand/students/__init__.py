"""From answers to a model that may leave the house."""

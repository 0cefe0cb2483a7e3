"""The card of a model: its record in the words of registries, guidelines and rules."""

"""The scikit-learn face: one module per method."""

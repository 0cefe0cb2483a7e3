"""The words that arguments may be, for the command line and for whoever checks them; light."""

from __future__ import annotations

from typing import Final

REFERENCES: Final = ("rest", "pairwise", "overall")
"""What a group's rate is compared with: all other groups pooled, each other group, everybody."""

ANSWERS: Final = ("labels", "shares")
"""What is released about a public row: a noisy winner, or the noisy histogram."""

ADMIT_BY: Final = ("limit", "estimate")
"""What of a gap about true classes a gate holds within the margin: its upper limit, or the estimate
of it."""

POINTS: Final = ("T_pre", "T_in", "T_post", "aggregator", "S_pre", "S_in", "S_post")
"""Where fairness can be put into PATE, along the data's way."""

NEIGHBORS: Final = ("replace one", "add or remove one")
"""Changes of the private data that a claim about whole records, or units, can be about."""

SYNTHETIC_SHARE: Final = 0.9
"""Share of the budget for the noisy counts from which rows are drawn, where none are public, and
whose labels the student learns (``reproductions/rows_and_counts.py``)."""

SHARE_FOR_ROWS: Final = 0.2
"""The same where counts are there for rows alone."""

DRIFT_SHARE: Final = 0.05
"""Share of the budget for the noisy counts by which public rows are compared with private ones."""

PIXEL_NETWORKS: Final = ("convolutional", "small-resnet", "color-mnist-network", "celeba-network")
"""Networks that read the pixels of pictures, as they are typed."""

AUTO: Final = "auto"
"""The word for a method that is chosen by public numbers and wishes alone."""

ARRAYS: Final = ".npz"
"""The ending of a file of arrays, in which pictures are."""

"""Owners of data that will not pool it: each votes on the same public rows, and votes alone leave.

1. ``models`` turns a model of any kind into votes; ``training`` makes one for who has none.
2. ``vote_file`` is what leaves an owner: votes, whose, about which rows (``digests``), signed.
3. ``collection`` checks the files of all owners together, and counts.
4. ``FairSharesClassifier.from_votes`` asks the counts, as it asks its own teachers.
"""

__all__: list[str] = []

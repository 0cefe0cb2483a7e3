"""SF-PATE: teachers that read groups or are fair themselves, and a student under a constraint."""

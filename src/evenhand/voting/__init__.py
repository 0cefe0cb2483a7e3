"""From votes to answers: counts in, labels or refusals out."""

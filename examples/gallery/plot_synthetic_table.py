"""
A synthetic table beside the real one
=====================================

Rows drawn from noisy marginals of Adult, at epsilon 1: each column as it was, and as it comes
out.
"""

from evenhand import Budget
from evenhand.datasets import load_adult
from evenhand.displays import SyntheticDisplay
from evenhand.generators import MarginalSynthesizer

adult = load_adult().split(public=0.2, test=0.25, random_state=0)
real = adult.private.X.assign(income=adult.private.y, sex=adult.private.groups)
columns = ["age", "workclass", "education", "marital-status", "hours-per-week", "sex", "income"]
real = real[columns]

generator = MarginalSynthesizer(random_state=0).fit(
    real, label="income", sensitive="sex", budget=Budget(epsilon=1.0, delta=1e-6)
)
print(generator.guarantee_)
rows = generator.sample(5000, balance=(), random_state=0)
SyntheticDisplay.from_tables(rows, real)

# %%
# The real columns are exact counts and private: such a figure is for the curator.

"""The published sizes of three generators of pictures: days on a processor.

Noise follows from the budget here. The published sigma of 800 of DataLens allows about 2,130
pictures at epsilon 10 and delta 1e-5, the published 100 on the votes of G-PATE about 2,000; and the
noise that the schedule of GS-WGAN needs drowns what is released, as its predicted signal to noise
says.
"""

from __future__ import annotations

from evenhand.baselines.gs_wgan import PublishedGSWGANImages
from evenhand.generators.images import DataLensImages, GPATEImages

GS_WGAN = PublishedGSWGANImages(
    schedule="in turn",
    network="convolutional",
    filters=(64, 128, 256),
    spectral=True,
    warm_steps=2000,
    n_teachers=1000,
    n_steps=20_000,
    n_rows=32,
    critic_rows=32,
    critic_rate=1e-4,
    rates=(1e-4, 1e-4),
    n_noise=10,
    latent="bernoulli",
    width=256,
)
G_PATE = GPATEImages(n_teachers=2000, n_noise=100, n_rows=32, n_steps=62)
DATALENS = DataLensImages(n_teachers=4000, k=300, threshold=0.2, n_noise=50, n_rows=32, n_steps=66)

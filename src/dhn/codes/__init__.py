"""Latent codes: codebook, prior, autodecoding and the probe."""

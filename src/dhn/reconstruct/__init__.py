"""Answering questions about trajectories with a trained model."""

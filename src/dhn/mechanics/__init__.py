"""Mechanics fitted from measured positions by the marginal likelihood of whole runs."""

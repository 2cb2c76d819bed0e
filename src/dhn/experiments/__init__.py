"""The paper's experiments and the stress suite: one table of cells, and what runs it."""

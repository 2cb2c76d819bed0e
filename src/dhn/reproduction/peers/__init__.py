"""The settings of other packages' papers, their published numbers, and rivals in one harness."""

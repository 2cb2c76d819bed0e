"""One small file a format: `load` and `save` of a dict of arrays or of a table."""

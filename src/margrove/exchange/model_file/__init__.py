"""Models in files: an archive of plain values, and a table of what may be in it."""

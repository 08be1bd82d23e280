"""What a fit will cost, from a few small fits."""

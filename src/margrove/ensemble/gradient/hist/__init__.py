"""Trees of histogram gradient boosting: bins, histograms, splits, rounds."""

"""Steps of growing and pruning a decision tree."""

"""What can be wrong with columns, labels, rows and targets."""

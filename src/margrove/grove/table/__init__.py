"""What trees are grown from: rank codes of columns, targets as whole numbers, constraints."""

"""What describe tells of each family of models."""

"""How `describe` reads each family of models."""

"""Pictures of what models say of rows, and of how good that is."""

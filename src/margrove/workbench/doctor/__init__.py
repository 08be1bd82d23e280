"""The doctor: what is wrong with a table, and what fits to it will cost."""

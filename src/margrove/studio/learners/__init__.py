"""The learners that the page offers, and their parameters."""

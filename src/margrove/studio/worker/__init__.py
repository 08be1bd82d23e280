"""The process that computes what the page asks for, and how it is asked."""

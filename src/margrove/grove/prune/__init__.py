"""Pruning: which nodes of a grown tree become leaves."""

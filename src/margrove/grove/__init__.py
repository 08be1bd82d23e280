"""Groves: decision trees on one compiled engine, from binning to pruning and reading."""

"""Columns of any table as numbers that models take, learnt from one table and applied to others."""

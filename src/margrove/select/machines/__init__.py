"""Searches over C and gamma that share their work: SVCCV, SVRCV, LinearSVCCV, GridSearchCV."""

"""autotune: for every family of estimators the search that is cheap and right."""

"""scikit-learn's own tests of these families, run against our classes.

`python -m pytest -c tests/sklearn_suite/pytest.ini` runs them; see `plugin` for how, and
`differences` for the tests that we do not intend to pass.
"""

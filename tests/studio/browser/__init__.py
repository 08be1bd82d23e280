"""The studio in a real browser: one server and one Chromium for all tests of this folder.

It is a package so that both are gone before other tests begin: while Playwright runs, no test of
the same process could run an event loop of its own.
"""

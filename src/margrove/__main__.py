"""`python -m margrove`."""

from margrove.cli import main

main()

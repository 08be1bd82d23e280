"""The sections of a report, a file each, in the order in which they are read."""

"""From a raw table to a model that can be trusted: tables, doctor, report."""

"""Tables from files: CSV, TSV, JSON lines, Parquet, compressed or not."""

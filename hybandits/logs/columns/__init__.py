"""Logs of one's own: CSV or Parquet files, and a mapping that says what their columns mean."""

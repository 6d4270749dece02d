"""Your own logs: CSV or Parquet files, and a mapping that says what their columns mean."""

from hybandits.logs.columns.mapping import Mapping
from hybandits.logs.columns.reader import ColumnsReader

__all__ = ["ColumnsReader", "Mapping"]

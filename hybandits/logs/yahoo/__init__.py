"""The click logs Yahoo! R6A and R6B."""

from hybandits.logs.yahoo.reader import YahooReader

__all__ = ["YahooReader"]

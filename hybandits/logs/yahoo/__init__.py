"""The click logs Yahoo! R6A and R6B."""

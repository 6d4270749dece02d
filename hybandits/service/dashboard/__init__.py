"""Looking at the service: estimates, the page, what keeps it up to date, and metrics."""

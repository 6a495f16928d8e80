"""Check a jitted function for avoidable costs: `check`."""

"""Time functions against each other: `compare`, `phases` and `scaling`."""

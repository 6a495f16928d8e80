"""Show what JAX and XLA make of a function, linked line by line: `stages`."""

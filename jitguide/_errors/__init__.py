"""Explain JAX's errors: `explain`, `expect_error` and the catalogue behind them."""

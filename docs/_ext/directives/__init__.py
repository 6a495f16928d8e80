"""Directives that pages use."""

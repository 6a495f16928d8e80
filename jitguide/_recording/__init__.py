"""The guide's measured experiments in one run, so that machines can stand side by side."""

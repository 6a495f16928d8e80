"""Record what each call of a jitted function makes JAX do, and why: `watch` and its asserts."""

"""The site's own Sphinx extensions: one small file, one job."""

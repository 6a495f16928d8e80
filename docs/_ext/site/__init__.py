"""What concerns the site as a whole."""

"""Where runs and replies are kept."""

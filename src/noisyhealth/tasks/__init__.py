"""What is asked: one file a kind of task."""

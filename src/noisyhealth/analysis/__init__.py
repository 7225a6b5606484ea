"""Statistics over scores: pure, from frames to results."""

"""Scores of answers: one file a kind of score."""

"""Weights in this process: `local.py` is the model, `causal.py` what it computes."""

"""Runs checked again from what they kept, packed to be checked elsewhere, and compared with each other."""

"""The sections of a report, one a question of the study; every function makes them for one set of weights."""

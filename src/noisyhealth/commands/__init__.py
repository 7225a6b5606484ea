"""`python -m noisyhealth`: its command line, and what each command does."""

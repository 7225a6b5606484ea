"""noisyhealth measures how language models for health cope with the way people really write."""

"""Models behind a server: `chat.py` is the model, `endpoint.py` where it is, `batch.py` the provider's batches."""

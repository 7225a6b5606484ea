"""BlueBERT and its kin: fine-tuned once on clean text, then asked; `encoder.py` is the model, `fit.py` Lightning."""

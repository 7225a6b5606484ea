"""The disturbed dataset: examples with all their variants, who is kept, and how they are split."""

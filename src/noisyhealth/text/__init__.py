"""Reading and laying out text: words, tags, terms, prompts, replies."""

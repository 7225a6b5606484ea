"""The sample texts and the vendored tables, each with its notice."""

"""How a text is disturbed: pure functions of text, words and a counted random source."""

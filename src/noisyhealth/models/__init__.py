"""Who answers: every file is a way to get replies."""

"""What can be done about disturbed input, one file a mitigation."""

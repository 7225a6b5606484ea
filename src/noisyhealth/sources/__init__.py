"""Where texts come from: the samples of this package, the user's files, or the hub; one file a source."""

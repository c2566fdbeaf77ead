"""One file per format: from bytes to arrays in memory."""

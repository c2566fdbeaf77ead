"""The built-in experiments: one file each."""

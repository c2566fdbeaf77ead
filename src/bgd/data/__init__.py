"""Data sets in memory, and where their bytes come from."""

"""Each table and figure of the paper as a declared comparison, and users' own from TOML files."""

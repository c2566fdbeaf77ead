"""Tasks: which images, transformed how, with which outputs as labels."""

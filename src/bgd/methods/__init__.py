"""Learners: one method per file, named as the paper names it."""

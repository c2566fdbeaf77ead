"""Figures: one file for each kind, ``catalog.py`` for which of them a comparison has, ``style.py`` for their look."""

"""Figures: what a comparison shows as pictures, and how each is drawn."""

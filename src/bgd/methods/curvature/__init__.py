"""Importance and curvature of weights: Fisher information, Kronecker factors, natural gradients."""

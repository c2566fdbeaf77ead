"""The optimizer: a Gaussian posterior over the weights, learned online."""

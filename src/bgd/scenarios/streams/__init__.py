"""Streams: the order in which batches of the tasks arrive."""

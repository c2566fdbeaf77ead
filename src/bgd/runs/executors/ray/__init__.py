"""Runs on a Ray cluster: an existing one, or a small one on this machine for as long as it is needed.

A job is done by the same function as everywhere else, so it gives the same result file. Whatever happens to a worker or
its node, the run's folder holds the last checkpoint and the system releases the folder's lock: doing the job again
continues from there. Hence the folder must be on a file system that all nodes share.
"""

"""Processes for tests that kill them: forks of one that has imported everything, torch.optim's own late imports too."""

import multiprocessing

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["bgd.runs.executors", "sklearn.datasets", "torch._dynamo"])

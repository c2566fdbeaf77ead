"""How the expectations E[g] and E[g eps] of a step are estimated: one file for each estimator.

An estimator is a function from a :class:`~bgd.optim.estimators.base.Step` to
:class:`~bgd.optim.estimators.base.Expectations`; it knows nothing else of the optimizer.
"""

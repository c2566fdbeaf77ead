"""How the expectations E[g] and E[g eps] of a step are estimated: one file for each way."""

"""Run one or many, measure, save and resume."""

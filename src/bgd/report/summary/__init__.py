"""The results of a comparison's runs as numbers: what every table, figure and page is made from."""

from bgd.report.summary.build import compare
from bgd.report.summary.types import Comparison, Entry, Unfinished

__all__ = ["Comparison", "Entry", "Unfinished", "compare"]

"""From the results of runs to tables, figures and one page to look at."""

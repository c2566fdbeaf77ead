"""Tables in time order: rows of features with a label, from files, data frames, river and the embedded digits.

``load_table`` finds one by its name; ``from_frame`` makes one of a data frame of the user's own.
"""

from bgd.data.tables.files import NAMED_TABLES, load_table
from bgd.data.tables.river import RIVER_TABLES
from bgd.data.tables.types import Table, from_frame

__all__ = ["NAMED_TABLES", "RIVER_TABLES", "Table", "from_frame", "load_table"]

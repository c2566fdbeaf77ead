"""Where the bytes of published data sets come from: folders, the cache, mirrors and packages."""

from bgd.data.sources.locate import cache_folder, data_folder, obtain
from bgd.data.sources.published import Edition, File, Package, Published

__all__ = ["Edition", "File", "Package", "Published", "cache_folder", "data_folder", "obtain"]

"""Where the files of a data set come from: a folder, the cache, mirrors, packages."""

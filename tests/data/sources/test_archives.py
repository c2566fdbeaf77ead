"""Archives are read in memory, and only the members that are named."""

from tiny_set import tar_of

from bgd.data.sources.archives import read_members


def test_read_members_reads_only_what_is_named():
    archive = tar_of({"a": b"1", "./b": b"2", "c": b"3"}, mode="w")
    assert read_members(archive, ("a", "./b")) == {"a": b"1", "./b": b"2"}

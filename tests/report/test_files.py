from bgd.report.files import LIST, ReportFolder


def write(path, *names):
    folder = ReportFolder(path)
    for name in names:
        folder.write(name, name.encode())
    folder.finish()


def everything(path):
    return {one.relative_to(path).as_posix() for one in path.rglob("*") if one.is_file()} - {LIST}


def test_files_that_are_no_longer_made_are_removed_with_their_folders(tmp_path):
    write(tmp_path, "index.html", "figures/a/one.svg", "figures/a/two.svg", "figures/b/one.svg")
    write(tmp_path, "index.html", "figures/a/two.svg")
    assert everything(tmp_path) == {"index.html", "figures/a/two.svg"}
    assert not (tmp_path / "figures" / "b").exists()


def test_files_of_others_stay(tmp_path):
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "notes.md").write_text("mine")
    write(tmp_path, "results/one.svg")
    write(tmp_path, "index.html")
    assert everything(tmp_path) == {"results/notes.md", "index.html"}


def test_a_list_of_somebody_else_removes_nothing_outside(tmp_path):
    inside = tmp_path / "report"
    inside.mkdir()
    outside = tmp_path / "precious.md"
    code = inside / "code.py"
    for path in (outside, code):
        path.write_text("precious")
    (inside / "away").symlink_to(tmp_path)
    (inside / LIST).write_text(f"../precious.md\n{outside}\naway/precious.md\ncode.py\n./../precious.md\n\n.\n..\n")
    write(inside, "index.html")
    assert outside.read_text() == code.read_text() == "precious"
    (inside / LIST).write_bytes(b"\xff\xfe")
    write(inside, "index.html")
    assert (inside / LIST).read_text() == "index.html\n"


def test_an_equal_file_is_left_as_it_is(tmp_path):
    write(tmp_path, "a.md")
    before = (tmp_path / "a.md").stat()
    write(tmp_path, "a.md")
    assert (tmp_path / "a.md").stat().st_ino == before.st_ino

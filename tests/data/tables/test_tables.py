"""Tables: what a data frame, a file or one of river's streams becomes, and what is refused."""

import numpy as np
import pandas as pd
import pytest

from bgd.data.tables import RIVER_TABLES, Table, from_frame, load_table
from bgd.data.types import DataError

FRAME = pd.DataFrame(
    {
        "number": [1.0, 2.5, None, 4.0],
        "flag": [True, False, True, True],
        "when": pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-03", "2020-01-04"]),
        "kind": ["b", "a", None, "b"],
        "label": [3, 1, 3, 1],
    }
)


def test_columns_become_numbers_in_the_order_of_the_frame():
    table = from_frame(FRAME, "label")
    assert table.features == ("number", "flag", "when", "kind=b", "kind=a")
    assert table.classes == ("1", "3")
    assert table.y.tolist() == [1, 0, 1, 0]
    np.testing.assert_array_equal(
        table.x,
        [[1, 1, 0, 1, 0], [2.5, 0, 86400, 0, 1], [np.nan, 1, 172800, 0, 0], [4, 1, 259200, 1, 0]],
    )


def test_a_row_does_not_depend_on_later_ones():
    texts = [f"t{i % 60}" for i in range(120)]
    frame = pd.DataFrame({"text": texts, "label": [0, 1] * 60})
    whole, half = from_frame(frame, "label"), from_frame(frame[:55], "label")
    assert whole.features == half.features
    assert whole.features[-1] == "text=(others)"
    np.testing.assert_array_equal(whole.x[:55], half.x)
    assert whole.x.sum(1).tolist() == [1] * 120


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_file_is_its_frame(tmp_path, ending):
    path = tmp_path / f"own.{ending}"
    frame = FRAME.drop(columns="when")
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    table, direct = load_table(str(path), "label"), from_frame(frame, "label")
    assert table.features == direct.features
    np.testing.assert_array_equal(table.x, direct.x)
    np.testing.assert_array_equal(table.y, direct.y)


@pytest.mark.parametrize(
    ("change", "target", "message"),
    [
        ({}, "labl", "no column of labels 'labl'.*did you mean 'label'"),
        ({}, None, "choose one of number, flag"),
        ({"label": [1, None, 3, None]}, "label", "2 rows have no label, the first is row 1"),
        ({"label": [1, 1, 1, 1]}, "label", "all labels are '1'"),
        ({"number": [1.0, np.inf, 2.0, 3.0]}, "label", "row 1, column 'number' is infinite"),
    ],
)
def test_what_cannot_be_learnt_from_is_named(change, target, message):
    with pytest.raises(DataError, match=message):
        from_frame(FRAME.assign(**change), target)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no-such.csv", "no such file"),
        ("river-se", "did you mean 'river-sea'"),
        ("math:sqrt", "its function failed with TypeError"),
        ("collections:OrderedDict", "returned a OrderedDict: return a pandas.DataFrame"),
        ("collections:nothing", "collections has no 'nothing'"),
    ],
)
def test_names_that_lead_nowhere(name, message):
    with pytest.raises(DataError, match=message):
        load_table(name, "label")


def test_a_file_that_is_no_table_is_named(tmp_path):
    (tmp_path / "bad.parquet").write_bytes(b"nothing")
    with pytest.raises(DataError, match=r"bad.parquet: cannot be read"):
        load_table(str(tmp_path / "bad.parquet"), "label")


@pytest.mark.parametrize("name", ["river-phishing", "river-sea"])
def test_streams_of_river_are_functions_of_the_seed(name):
    assert name in RIVER_TABLES
    one, same, other = (load_table(name, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.x, same.x)
    assert not np.array_equal(one.x, other.x)


def test_a_table_has_a_shape():
    with pytest.raises(DataError, match="at least one row and column"):
        Table("empty", np.zeros((0, 2)), np.zeros(0, dtype=np.int64), ("a", "b"), ("0", "1"))

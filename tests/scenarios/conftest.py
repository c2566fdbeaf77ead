import pytest
from small_data import make_data


@pytest.fixture
def data():
    return make_data()

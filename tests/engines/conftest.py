"""What tests of several engines share: a small random Llama, and a sky for each test module."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from skymemory.sky.constellation import Constellation
from skymemory.testbed.local import LocalConstellation, free_port
from support.engine_models import save_model

TEST_S = 3600
"""of a test and what it starts; each wait in it has a bound of its own (`support.progress`)"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give tests of engines more time than others have."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(TEST_S))


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama of three layers."""
    return save_model(tmp_path_factory.mktemp("model") / "small-llama", "Llama", num_key_value_heads=2, head_dim=32)


@pytest.fixture(scope="module")
def deadline_ms() -> int:
    """Of the sky; for a folder of tests to change."""
    return Constellation().cache.deadline_ms


@pytest.fixture(scope="module")
def sky(deadline_ms: int) -> Iterator[LocalConstellation]:
    """Three planes of five satellites, nine of them servers."""
    sections = {"constellation": {"planes": 3, "slots": 5}, "cache": {"servers": 9, "centre": [2, 3], "deadline_ms": deadline_ms}}
    base = Constellation.model_validate(sections, strict=False)
    with LocalConstellation(base.replace(network={"port": free_port(base)})) as local:
        yield local

"""The spread of blocks over servers, as the ground sees it."""

from hashlib import sha256

import pytest

from skymemory.sky.placement.spread import by_share, offset_of


def test_a_block_of_eight_rows_begins_at_server_0() -> None:
    key = bytes([255]) * 32
    assert offset_of(key, 1, 12) == offset_of(key, 7 * 12, 12) == 11
    assert offset_of(key, 7 * 12 + 1, 12) == 0


@pytest.mark.parametrize("servers", [1, 3, 12])
def test_share_s_is_at_server_s_and_the_offset(servers: int) -> None:
    for number in range(50):
        offset = offset_of(sha256(bytes([number])).digest(), 1, servers)
        assert 0 <= offset < servers
        assert [*by_share(range(servers), offset)] == [(share + offset) % servers for share in range(servers)]

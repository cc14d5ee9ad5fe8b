"""Memory for blocks on their way: enough for what a step fills, and no more than a share of the machine's."""

import pytest

from skymemory.engines.vllm.transfer_room import TransferRoom, room_for

MIB = 1 << 20
BLOCK = 16_777_344
"""an 8B model's block of 128 tokens in bfloat16, with its header"""


def sized(block_bytes: int = BLOCK, step_tokens: int = 2048, **changes: int | None) -> TransferRoom:
    given = {"workers": 1, "arena_mib": None, "memory_bytes": 64 << 30, **changes}
    return room_for(block_bytes, 128, step_tokens, **given)  # type: ignore[arg-type]  # the tests' own short way


@pytest.mark.parametrize("step_tokens", [2048, 8192])
def test_what_two_steps_fill_has_room(step_tokens: int) -> None:
    room = sized(step_tokens=step_tokens)
    assert room.step_blocks == step_tokens // 128
    assert room.saves >= 2 * room.step_blocks
    assert room.lack == ""


def test_a_short_request_of_large_blocks_is_saved_whole() -> None:
    assert sized().saves >= 14  # 7 of them, where the memory did not depend on the block


def test_small_blocks_have_as_much_memory_as_ever() -> None:
    assert sized(block_bytes=60_000).arena_bytes == 256 * MIB


def test_a_small_machine_is_not_filled() -> None:
    room = sized(step_tokens=16_384, memory_bytes=8 << 30)
    assert room.arena_bytes == 1 << 30
    assert room.saves == 63 - 16  # the rest is for loads
    assert "a step fills up to 128 blocks of 16.8 MB" in room.lack
    assert f"arena_mib {room.mib_for(256)}" in room.lack


def test_the_workers_of_a_machine_share_it() -> None:
    assert sized(step_tokens=16_384, memory_bytes=32 << 30, workers=4).arena_bytes == 1 << 30


def test_what_a_person_sets_counts() -> None:
    room = sized(arena_mib=256)
    assert (room.arena_bytes, room.saves) == (256 * MIB, 8)
    assert f"arena_mib {room.mib_for(32)}" in room.lack
    assert sized(arena_mib=room.mib_for(32)).saves >= 32
    assert sized(arena_mib=room.mib_for(32)).lack == ""

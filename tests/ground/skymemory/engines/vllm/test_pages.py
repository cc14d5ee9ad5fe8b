"""The paged cache as bytes: what copying costs."""

import time

import torch

from skymemory.engines.vllm.pages import Pages

BLOCKS = 4


def test_a_block_is_copied_by_one_thread() -> None:
    """More of them would wait for each other in a loop, on the processors that the engine computes on."""
    pages = Pages({"layer": torch.randn(BLOCKS, 8, 128, 256)}, BLOCKS)
    payload = torch.empty(pages.payload_bytes, dtype=torch.uint8)
    threads = torch.get_num_threads()
    torch.set_num_threads(4)
    try:
        all_s, own_s = time.process_time(), time.thread_time()
        for turn in range(300):
            pages.read(0, turn % BLOCKS, payload)
            pages.write((turn + 1) % BLOCKS, payload)
        all_s, own_s = time.process_time() - all_s, time.thread_time() - own_s
    finally:
        torch.set_num_threads(threads)
    assert all_s < 1.3 * own_s

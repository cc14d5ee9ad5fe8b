"""KV events where vLLM makes them otherwise than we know."""

import sys

import pytest

from skymemory.engines.vllm.events import BlockEvents, Went


def test_events_that_cannot_be_made_are_left_out_and_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "vllm", None)  # nothing can be imported from it, also where it is installed
    monkeypatch.setitem(sys.modules, "vllm.distributed.kv_events", None)
    events = BlockEvents()
    assert [list(events.for_vllm([Went((bytes(32),))], 16)) for _ in range(2)] == [[], []]
    assert len(caplog.records) == 1
    assert "KV events do not go with this vLLM" in caplog.text

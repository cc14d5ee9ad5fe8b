"""Blocks of the sky as vLLM's KV events: made with its classes, sent by its publisher, read by its decoder."""

import time
from types import SimpleNamespace
from typing import Any

import pytest

from skymemory.engines.vllm.events import BlockEvents, as_vllm
from support.ports import free_ports
from support.waiting import wait_until

pytestmark = pytest.mark.engines

BLOCK = 4


@pytest.fixture
def request_of_vllm() -> Any:
    """A request of three full blocks with a salt, hashed by vLLM."""
    from vllm import SamplingParams
    from vllm.utils.hashing import sha256
    from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
    from vllm.v1.request import Request

    init_none_hash(sha256)
    return Request(
        "a",
        prompt_token_ids=list(range(3 * BLOCK + 1)),
        sampling_params=SamplingParams(max_tokens=1),
        pooling_params=None,
        cache_salt="salt",
        block_hasher=get_request_block_hasher(BLOCK, sha256),
    )


def published(events: list[Any]) -> list[Any]:
    """What a subscriber reads of events."""
    import msgspec
    import zmq
    from vllm.distributed.kv_events import KVEventBatch, ZmqEventPublisher

    (port,) = free_ports(1)
    publisher = ZmqEventPublisher(0, f"tcp://*:{port}", topic="kv")
    try:
        with zmq.Context() as context, context.socket(zmq.SUB) as subscriber:
            subscriber.connect(f"tcp://127.0.0.1:{port}")
            subscriber.setsockopt(zmq.SUBSCRIBE, b"kv")
            decoder = msgspec.msgpack.Decoder(type=KVEventBatch)

            def is_read() -> bool:  # what is published before the subscriber is there is lost
                publisher.publish(KVEventBatch(ts=time.time(), events=events))
                return bool(subscriber.poll(200))

            wait_until(is_read)
            _, _, payload = subscriber.recv_multipart()
            return list(decoder.decode(payload).events)
    finally:
        publisher.shutdown()


def test_what_routers_read(request_of_vllm: Any) -> None:
    from vllm.distributed.kv_events import BlockRemoved, BlockStored
    from vllm.v1.core.kv_cache_utils import maybe_convert_block_hash

    request, events = request_of_vllm, BlockEvents()
    hashes = [maybe_convert_block_hash(one) for one in request.block_hashes]
    for index in range(3):
        events.came(bytes([index]), request, index)
    events.went(bytes([2]))
    events.came(bytes([2]), request, 2)
    first, gone, again = published(list(as_vllm(events.take(), BLOCK)))
    assert isinstance(first, BlockStored)
    assert (first.block_hashes, first.parent_block_hash) == (hashes, None)
    assert (first.token_ids, first.block_size) == (list(range(12)), BLOCK)
    assert (first.medium, first.locality, first.ownership) == ("STORAGE", "REMOTE", "skymemory")
    assert first.extra_keys is not None
    assert "salt" in str(first.extra_keys[0])
    assert isinstance(gone, BlockRemoved)
    assert (gone.block_hashes, gone.medium) == ([hashes[2]], "STORAGE")
    assert isinstance(again, BlockStored)
    assert (again.block_hashes, again.parent_block_hash, again.token_ids) == ([hashes[2]], hashes[1], [8, 9, 10, 11])


@pytest.mark.parametrize(("told", "publishes"), [(None, False), (False, False), (True, True)])
def test_the_connector_hands_them_on_if_somebody_wants_them(request_of_vllm: Any, told: bool | None, publishes: bool) -> None:
    from skymemory.engines.vllm.connector import SkyMemoryConnector

    connector = object.__new__(SkyMemoryConnector)
    connector._events = BlockEvents()
    connector._vllm_config = SimpleNamespace(cache_config=SimpleNamespace(block_size=BLOCK))
    connector._publishes = bool(told)
    connector._events.came(bytes(1), request_of_vllm, 0)
    assert len(list(connector.take_events())) == int(publishes)
    assert list(connector.take_events()) == []

"""Records of formats, over real satellites."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from hashlib import sha256
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from skymemory.agent import formats
from skymemory.agent.constellation_source import ConstellationSource, FixedSource, RunningSource
from skymemory.agent.formats import Formats
from skymemory.agent.protocol import VERSION, Hello
from skymemory.agent.shared_sky import SharedSky
from skymemory.testbed.local import LocalConstellation
from skymemory.testbed.run_record import RunRecord
from support.waiting import wait_until_async


def with_sky(source: ConstellationSource, work: Callable[[SharedSky], Awaitable[None]], *, reachable: bool = True) -> None:
    async def run() -> None:
        sky = SharedSky(source, CollectorRegistry())
        await sky.start()
        try:
            await wait_until_async(lambda: sky.reachable or not reachable)
            await work(sky)
        finally:
            await sky.close()

    asyncio.run(run())


def hello(model: str, number: int) -> Hello:
    root = sha256(bytes([number])).digest()
    return Hello(VERSION, "vllm", model, root, 16 * number, 1000, "bfloat16", 1 << 20)


async def recorded(records: Formats, *engines: Hello) -> None:
    for engine in engines:
        records.stored(engine)
    await asyncio.gather(*(task for task in asyncio.all_tasks() if task.get_name() == formats.SAVING))


async def known(records: Formats, model: str) -> list[int]:
    return [one.block_tokens for one in await records.load(model)]


def test_each_format_of_a_model_is_recorded_the_last_one_first(full_sky: LocalConstellation) -> None:
    model = "formats: a model of three"

    async def work(sky: SharedSky) -> None:
        records = Formats(sky)
        await recorded(records, hello(model, 1))
        assert await known(records, model) == [16]
        await recorded(records, hello(model, 2), hello(model, 3))
        assert await known(records, model) == [48, 32, 16]
        await recorded(Formats(sky), hello(model, 1))  # an agent that was started again: as long as what is there
        assert await known(records, model) == [16, 48, 32]
        assert "stored as blocks of 16 tokens" in (await records.notes(hello(model, 4)))[0]
        assert await records.notes(hello(model, 3)) == []

    with_sky(FixedSource(full_sky.constellation), work)


def test_there_are_so_many_at_most(full_sky: LocalConstellation) -> None:
    model = "formats: a model of many"

    async def work(sky: SharedSky) -> None:
        records = Formats(sky)
        await recorded(records, *(hello(model, number) for number in range(1, 11)))
        assert await known(records, model) == [16 * number for number in range(10, 2, -1)]

    with_sky(FixedSource(full_sky.constellation), work)


def test_a_record_that_was_lost_is_written_again_with_a_later_block(full_sky: LocalConstellation) -> None:
    engine = hello("formats: a model whose record is lost", 1)

    async def work(sky: SharedSky) -> None:
        records = Formats(sky)
        await recorded(records, engine)
        assert sky.tenant_secret is not None
        key, _ = formats.record_keys(engine.model, sky.tenant_secret)
        assert (await sky.purge([key])).confirmed
        await recorded(records, engine)
        assert await known(records, engine.model) == []  # not with every block
        again = Formats(sky, refresh_s=0.0)
        for _ in range(2):
            assert (await sky.purge([key])).confirmed
            await recorded(again, engine)
            assert await known(again, engine.model) == [16]

    with_sky(FixedSource(full_sky.constellation), work)


def test_what_cannot_be_recorded_is_not_tried_with_every_block(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger=formats.__name__)

    async def work(sky: SharedSky) -> None:
        records, engine = Formats(sky), hello("formats: a model without a sky", 1)
        for _ in range(3):
            await recorded(records, engine)
        assert caplog.text.count("was not recorded: unanswered") == 1
        records = Formats(sky, again_s=0.0)
        for number in range(2, 5):
            await recorded(records, hello(engine.model, 2))
            assert caplog.text.count("was not recorded: unanswered") == number

    with_sky(RunningSource(RunRecord(tmp_path)), work, reachable=False)

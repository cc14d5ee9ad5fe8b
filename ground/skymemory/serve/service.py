"""The server as a whole: a model is loaded, served and put away."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from aiohttp import web

from skymemory.agent.constellation_source import ConstellationSource
from skymemory.common.addresses import address_text
from skymemory.demo.model import load
from skymemory.serve.api_keys import ApiKeys
from skymemory.serve.connections import CLIENT_LOG
from skymemory.serve.generation import Generator
from skymemory.serve.job_queue import JobQueue
from skymemory.serve.metrics import ServeMetrics
from skymemory.serve.prompt_cache import PromptCache
from skymemory.serve.proxies import Network, TrustedProxies
from skymemory.serve.routes import Api, ServedModel
from skymemory.serve.segments import ServedSegments
from skymemory.serve.tokens import RequestTokens, context_tokens

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_log = logging.getLogger(__name__)

_LAST_BYTES_S = 5.0
"""Seconds to send the end of answers when the server ends."""


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """The options of the command."""

    model: str
    """Folder, or name on the hub."""
    served_name: str | None = None
    """Name of the model for clients; None: `model`."""
    api_key: str | None = None
    """The one key of all clients; None: none, or those of `api_keys`."""
    api_keys: Path | None = None
    """File of keys; None: none."""
    queue_max: int = 32
    """Most requests that wait."""
    answers_max: int = 8
    """Most answers that are generated together."""
    dtype: str = "auto"
    device: str | None = None
    """Torch device; None: a GPU if there is one."""
    context_tokens: int | None = None
    """Most tokens of prompt and answer; None: as many as the model was made for."""
    link_strategy: str = "auto"
    """Strategy by which segments are linked."""
    segment_separator: str | None = None
    """Text around the segments of a completion's prompt; None: there are none."""
    trusted_proxies: tuple[Network, ...] = ()
    """Networks of proxies whose X-Forwarded-For counts."""


def serve(
    options: ServeOptions,
    source: ConstellationSource,
    listeners: Sequence[socket.socket],
    stage: Callable[[str], None],
    ready: Callable[[str], None],
) -> None:
    """Serve until SIGTERM or Ctrl-C, and end in order.

    Args:
        source: Tells which constellation to use.
        listeners: Sockets that have the address (`skymemory.common.listening.bind`).
        stage: Called with the name of each step before the server is ready.
        ready: Called with the address when clients can come.

    Raises:
        OSError: The model cannot be read.
        UnsupportedModelError: The model's cache cannot be cut into blocks.
        ValueError, RuntimeError: There is no such device or dtype.
        SecretFileError: The file of keys is wrong, or others may read it.
        KeyboardInterrupt: It was Ctrl-C.
    """
    keys = None
    if options.api_key is not None or options.api_keys is not None:
        keys = ApiKeys(options.api_key, options.api_keys)
    stage("loading the model")
    model, tokenizer = load(options.model, dtype=options.dtype, device=options.device)
    stage("reading all weights, for the keys of blocks")
    cache = PromptCache(model, tokenizer, source, waiting_max=max(2, options.answers_max))
    try:
        asyncio.run(_serve(options, keys, listeners, model, tokenizer, cache, ready))
    finally:
        cache.close()


async def _serve(
    options: ServeOptions,
    keys: ApiKeys | None,
    listeners: Sequence[socket.socket],
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    cache: PromptCache,
    ready: Callable[[str], None],
) -> None:
    tokens = context_tokens(model, tokenizer)
    served = ServedModel(
        name=options.served_name or options.model,
        context_tokens=tokens if options.context_tokens is None else min(tokens, options.context_tokens),
        api_keys=keys,
        **_sampling_defaults(model),
    )
    generator = Generator(model, tokenizer, cache, options.answers_max)
    if generator.answers_max < options.answers_max:
        _log.warning("this model cannot run several answers together: they are generated one after the other")
    queue = JobQueue(generator, options.queue_max)
    metrics = ServeMetrics()
    metrics.watch(queue, cache)
    request_tokens = RequestTokens(tokenizer, cache.engine.vocabulary, served.context_tokens, options.segment_separator)
    api = Api(
        served,
        queue,
        request_tokens,
        ServedSegments(cache, options.link_strategy),
        metrics,
        proxies=TrustedProxies(options.trusted_proxies),
    )
    runner = web.AppRunner(api.application(), handler_cancellation=True, shutdown_timeout=_LAST_BYTES_S, access_log=None)
    await runner.setup()
    try:
        ended = _signalled(api)
        assert runner.server is not None
        # The sites of aiohttp are not used, because they take any number of connections.
        # A body that is small on the way, and large when it is unpacked, would hold up the event loop.
        api.connections.start(runner.server, listeners, access_log=None, logger=CLIENT_LOG, auto_decompress=False)
        gc.collect()
        gc.freeze()  # what a model and its libraries made stays; to look through it takes all threads a tenth of a second
        ready(f"http://{address_text(*listeners[0].getsockname()[:2])}")
        number = await ended
        await api.drain()
    finally:
        api.cancel_all()
        await api.connections.close()
        await runner.cleanup()
        queue.close()
        api.close()
    if number == signal.SIGINT:
        raise KeyboardInterrupt


def _signalled(api: Api) -> asyncio.Future[int]:
    """Return a future of the first signal's number. The second signal cancels what still runs."""
    ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def end(number: int) -> None:
        if ended.done():
            _log.warning("the server ends at once and cancels the requests that are not answered")
            api.cancel_all()
        else:
            _log.info("the server ends: it answers accepted requests and refuses new ones; a second signal ends it at once")
            ended.set_result(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, end, number)
    return ended


def _sampling_defaults(model: PreTrainedModel) -> dict[str, float]:
    given = {name: getattr(model.generation_config, name, None) for name in ("temperature", "top_p")}
    return {name: float(value) for name, value in given.items() if value is not None}

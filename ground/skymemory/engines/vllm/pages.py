"""The paged key-value cache of a worker, block by block as bytes.

vLLM gives each layer's cache as a view [blocks, heads, tokens, content], strided as its backend likes. A backend with smaller
blocks than the scheduler's splits each into several rows. The bytes of a block are those of its layers, in the order in which
vLLM names them, each as its view is read in logical order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch


class Pages:
    """Reads and writes blocks. Threads may work on different blocks at once."""

    def __init__(self, caches: dict[str, torch.Tensor], blocks: int) -> None:
        """Take the caches of all layers.

        Args:
            caches: Cache of each layer, by its name. Layers that share their cache with another count once.
            blocks: Number of blocks of the scheduler's size.

        Raises:
            ValueError: A cache cannot be cut into so many blocks.
        """
        self._layers: list[torch.Tensor] = []
        """Layers, each [blocks, ..., bytes]."""
        self._index: dict[str, int] = {}
        places: dict[tuple[Any, ...], int] = {}
        for name, cache in caches.items():
            place = (cache.data_ptr(), cache.shape, cache.stride())
            if place not in places:
                places[place] = len(self._layers)
                self._layers.append(_rows(name, cache, blocks))
            self._index[name] = places[place]
        self._bytes = [layer[0].numel() for layer in self._layers]
        self._starts = [sum(self._bytes[:index]) for index in range(len(self._bytes))]
        self.device = self._layers[0].device
        self._stream: Any = None
        self.payload_bytes = sum(self._bytes)
        """Bytes of a block, of all layers."""
        self.facts: list[Any] = [
            [name, str(caches[name].dtype), list(self._layers[index].shape[1:])] for name, index in self._index.items()
        ]
        """Layout of blocks, as JSON takes it."""
        self.layer_bytes = self._bytes[0] if len(set(self._bytes)) == 1 else None
        """Bytes of a block in each layer; None if they differ."""
        self.element = next(iter(caches.values())).dtype
        self.shapes = [(*layer.shape[1:-1], layer.shape[-1] // self.element.itemsize) for layer in self._layers]
        """Shape of a block in each layer, in values: [heads, tokens, values of a token]."""
        self.dtype = str(next(iter(caches.values())).dtype).removeprefix("torch.")

    def __len__(self) -> int:
        """Return the number of layers."""
        return len(self._layers)

    def layer(self, name: str) -> int | None:
        """Return the index of a layer; None if it has no cache here."""
        return self._index.get(name)

    def read(self, layer: int, block: int, payload: torch.Tensor) -> None:
        """Copy one layer of a block out.

        Args:
            payload: Bytes of the whole block, on the CPU.
        """
        if self.device.type == "cpu":
            _copy(self._slice(layer, payload), self._layers[layer][block])
        else:
            self._slice(layer, payload).copy_(self._layers[layer][block])

    def gather(self, layer: int, blocks: Sequence[int]) -> torch.Tensor:
        """Return one layer of some blocks, [blocks, ..., bytes], copied to pinned memory once the stream has come so far."""
        rows = self._layers[layer].index_select(0, torch.tensor(blocks, device=self.device))
        host = torch.empty(rows.shape, dtype=rows.dtype, pin_memory=True)
        return host.copy_(rows, non_blocking=True)

    def put(self, layer: int, rows: torch.Tensor, payload: torch.Tensor) -> None:
        """Copy one block's row from `gather` to where `read` puts it."""
        self._slice(layer, payload).copy_(rows)

    def write(self, block: int, payload: torch.Tensor) -> None:
        """Copy a block in, layer by layer, and return when it is there. One thread writes, beside what a GPU computes."""
        if self.device.type == "cpu":
            for layer, cache in enumerate(self._layers):
                _copy(cache[block], self._slice(layer, payload))
            return
        if self._stream is None:
            self._stream = torch.cuda.Stream(self.device)  # type: ignore[no-untyped-call]  # torch leaves it untyped
        with torch.cuda.stream(self._stream):
            self._write(block, payload)
        self._stream.synchronize()

    def _write(self, block: int, payload: torch.Tensor) -> None:
        for layer, rows in enumerate(self._layers):
            rows[block].copy_(self._slice(layer, payload))

    def _slice(self, layer: int, payload: torch.Tensor) -> torch.Tensor:
        start = self._starts[layer]
        return payload[start : start + self._bytes[layer]].view(self._layers[layer].shape[1:])


def _copy(to: torch.Tensor, source: torch.Tensor) -> None:
    """Copy within host memory by one thread.

    torch copies more than 32,768 elements with all of its threads, which wait for each other in a loop. If other work has the
    processors, that takes several times the CPU time of the copy.
    """
    np.copyto(to.numpy(), source.numpy())


def _rows(name: str, cache: torch.Tensor, blocks: int) -> torch.Tensor:
    if cache.shape[0] % blocks:
        raise ValueError(f"layer {name}: its cache has {cache.shape[0]} rows, which are not {blocks} blocks")
    rows = cache.view(torch.uint8)
    return rows if rows.shape[0] == blocks else rows.unflatten(0, (blocks, -1))  # type: ignore[no-untyped-call]  # torch leaves it untyped

"""The local radix index of blocks that are believed to be in the sky (paper, section 3.10 and figure 11).

A prompt is a chain of block keys. The index is a prefix tree of such chains: it finds the longest cached prefix of a prompt
without asking a satellite. A key is a hash of all tokens up to the end of its block, so it has only one place in the tree, and a
block can be found and forgotten by its key alone. Each edge is a single key. Runs of keys are not merged into one edge: that
would save nothing, as every block needs an entry of its own.
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from threading import Lock

from skymemory.link.block_entry import BlockEntry


@dataclass(slots=True, eq=False)
class _Node:
    entry: BlockEntry
    parent: "_Node | None"
    """The node of the block before; None for a prompt's first block and for a block whose place is not known yet."""
    children: set["_Node"] = field(default_factory=set)
    moved: int = 0
    """Number of this host's last move of the block: a larger number is later, 0 means never."""


class RadixIndex:
    """Bounded prefix tree of chains of block keys. Thread-safe; each call takes time linear in the length of its chain.

    A full index forgets the least recently used block. To use a block is to use the blocks before it as well, and they count as
    used later than the block itself. So the least recently used block is always the end of a chain, and no chain gets a hole.
    """

    def __init__(self, entries_max: int = 1 << 18) -> None:
        """Make an empty index.

        Args:
            entries_max: Most blocks that are remembered, at least 1. Each takes about 0.7 kB.

        Raises:
            ValueError: `entries_max` is less than 1.
        """
        if entries_max < 1:
            raise ValueError(f"entries_max is {entries_max}; allowed are 1 and more")
        self._entries_max = entries_max
        self._nodes: OrderedDict[bytes, _Node] = OrderedDict()  # least recently used first
        self._moves = 0
        self._lock = Lock()

    def __len__(self) -> int:
        with self._lock:
            return len(self._nodes)

    def get(self, key: bytes) -> BlockEntry | None:
        """Return the entry of a block, or None if it is unknown. This does not count as a use."""
        with self._lock:
            node = self._nodes.get(key)
            return None if node is None else node.entry

    def current(self, entry: BlockEntry) -> BlockEntry:
        """Return an entry with the row of the schedule for which this host has prefetched its block in the meantime."""
        known = self.get(entry.key)
        return entry if known is None or known.epoch in (0, entry.epoch) else replace(entry, epoch=known.epoch)

    def longest_prefix(self, keys: Sequence[bytes]) -> list[BlockEntry]:
        """Return the entries of the longest known prefix of the chain `keys`, the first block first."""
        with self._lock:
            path: list[_Node] = []
            for key in keys:
                node = self._nodes.get(key)
                if node is None or not _belongs(node, path):
                    break
                path.append(node)
            self._use(path)
            return [node.entry for node in path]

    def insert(self, entries: Sequence[BlockEntry]) -> None:
        """Remember a chain of blocks, the prompt's first block first. Known blocks get the new entries.

        If the chain is longer than `entries_max`, only its first `entries_max` blocks are remembered.
        """
        with self._lock:
            path: list[_Node] = []
            seen: set[bytes] = set()
            for entry in entries[: self._entries_max]:
                if entry.key in seen:
                    break  # no chain of hashes repeats a key
                node = self._nodes.get(entry.key)
                if node is not None and not _belongs(node, path):
                    self._drop(node)  # no key has two places; if one had, the newest chain would get it
                    node = None
                if node is None:
                    node = self._nodes[entry.key] = _Node(entry, None)
                    _belongs(node, path)
                node.entry = entry
                path.append(node)
                seen.add(entry.key)
            self._use(path)
            self._make_room()

    def add(self, entries: Iterable[BlockEntry]) -> None:
        """Remember blocks whose chains are unknown. A block gets its place when a chain with its key is looked up."""
        with self._lock:
            for entry in entries:
                node = self._nodes.get(entry.key)
                if node is None:
                    self._nodes[entry.key] = _Node(entry, None)
                else:
                    node.entry = entry
            self._make_room()

    def moved(self, keys: Iterable[bytes]) -> None:
        """Note that blocks were stored or fetched, in this order. Satellites evict first what was not moved for longest."""
        with self._lock:
            for key in keys:
                node = self._nodes.get(key)
                if node is not None:
                    self._moves += 1
                    node.moved = self._moves

    def stalest(self, entries: Sequence[BlockEntry]) -> BlockEntry | None:
        """Return the block that was not moved for the longest time, or None if there are no blocks."""
        with self._lock:
            nodes = self._nodes
            return min(entries, key=lambda entry: node.moved if (node := nodes.get(entry.key)) else 0, default=None)

    def is_tail_oldest(self, keys: Sequence[bytes], moves_max: int) -> bool:
        """Return True if satellites would evict a chain from its end on, and not too soon.

        Args:
            keys: The chain, the first block first.
            moves_max: Most moves of other blocks since the chain's last block was moved.
        """
        with self._lock:
            moves = [node.moved if (node := self._nodes.get(key)) else 0 for key in keys]
            falls = all(before > after for before, after in pairwise(moves))
            return falls and (not moves or self._moves - moves[-1] - (len(moves) - 1) <= moves_max)

    def remove(self, key: bytes) -> int:
        """Forget a block and all blocks behind it in its chains, which are of no use without it.

        Returns:
            The number of blocks that were forgotten.
        """
        with self._lock:
            node = self._nodes.get(key)
            return 0 if node is None else self._drop(node)

    def _use(self, path: list[_Node]) -> None:
        for node in reversed(path):
            self._nodes.move_to_end(node.entry.key)

    def _make_room(self) -> None:
        while len(self._nodes) > self._entries_max:
            self._drop(next(iter(self._nodes.values())))

    def _drop(self, node: _Node) -> int:
        if node.parent is not None:
            node.parent.children.discard(node)
        gone = [node]
        for one in gone:  # the list grows while it is walked
            gone.extend(one.children)
            del self._nodes[one.entry.key]
        return len(gone)


def _belongs(node: _Node, path: list[_Node]) -> bool:
    """Return True if a node is behind the last node of `path`. A node whose place is not known yet is put there."""
    if not path:
        return node.parent is None
    if node.parent is None and node is not path[0]:
        node.parent = path[-1]
        path[-1].children.add(node)
    return node.parent is path[-1]

"""The local radix index: which blocks are believed to be in the sky (paper, section 3.10 and figure 11).

A prompt is a chain of block keys. The index is a prefix tree over such chains, so that the longest cached prefix of a
prompt is found without asking a satellite. A key is a hash of all tokens up to its block, so it has one place in the
tree: the tree is walked key by key, and a block can also be found and forgotten by its key alone. Edges are single keys:
every block needs an entry of its own, so merging runs of keys into one edge would save nothing.
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from threading import Lock

from skymemory.block_entry import BlockEntry


@dataclass(slots=True, eq=False)
class _Node:
    entry: BlockEntry
    parent: "_Node | None"
    """None: a prompt's first block, or one whose place is not known yet"""
    children: set["_Node"] = field(default_factory=set)
    moved: int = 0
    """when its block was moved last: larger is later; 0: never by this host"""


class RadixIndex:
    """Prefix tree over chains of block keys, bounded, thread-safe. Time is linear in the length of the chain.

    When full, the least recently used block goes. Using a block uses all blocks before it, and they count as used after
    it: so the least recently used one is always the end of a chain, and no chain ever has a hole.
    """

    def __init__(self, entries_max: int = 1 << 18) -> None:
        """`entries_max`: blocks that are remembered, at least 1 (each takes about 0.7 kB)."""
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
        """The entry of a block, wherever it is in a chain; its use is not recorded."""
        with self._lock:
            node = self._nodes.get(key)
            return None if node is None else node.entry

    def longest_prefix(self, keys: Sequence[bytes]) -> list[BlockEntry]:
        """Entries of the longest known prefix of the chain `keys`, first block first; empty if that is unknown."""
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
        """Remember a chain of blocks, from the prompt's first block on. Known ones get the new entry.

        Of a chain longer than the bound its first `entries_max` blocks are remembered.
        """
        with self._lock:
            path: list[_Node] = []
            seen: set[bytes] = set()
            for entry in entries[: self._entries_max]:
                if entry.key in seen:
                    break  # no chain of hashes repeats a key
                node = self._nodes.get(entry.key)
                if node is not None and not _belongs(node, path):
                    self._drop(node)  # nor has a key two places; if one does, the newest chain has it
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
        """Remember blocks whose chains are not at hand; each finds its place when a chain with its key is looked up."""
        with self._lock:
            for entry in entries:
                node = self._nodes.get(entry.key)
                if node is None:
                    self._nodes[entry.key] = _Node(entry, None)
                else:
                    node.entry = entry
            self._make_room()

    def moved(self, keys: Iterable[bytes]) -> None:
        """These blocks were stored or fetched, in this order: satellites evict first what was not for the longest time."""
        with self._lock:
            for key in keys:
                node = self._nodes.get(key)
                if node is not None:
                    self._moves += 1
                    node.moved = self._moves

    def stalest(self, entries: Sequence[BlockEntry]) -> BlockEntry | None:
        """Of these blocks the one that was not moved for the longest time; None: there are none."""
        with self._lock:
            nodes = self._nodes
            return min(entries, key=lambda entry: node.moved if (node := nodes.get(entry.key)) else 0, default=None)

    def is_tail_oldest(self, keys: Sequence[bytes], moves_max: int) -> bool:
        """Say whether satellites would evict a chain from its end on, and not too soon.

        Args:
            moves_max: blocks that may have been moved since the last block of the chain was.
        """
        with self._lock:
            moves = [node.moved if (node := self._nodes.get(key)) else 0 for key in keys]
            falls = all(before > after for before, after in pairwise(moves))
            return falls and (not moves or self._moves - moves[-1] <= moves_max)

    def remove(self, key: bytes) -> int:
        """Forget a block and all that follow it in its chains: without it they are of no use.

        Returns:
            Blocks forgotten.
        """
        with self._lock:
            node = self._nodes.get(key)
            return 0 if node is None else self._drop(node)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._nodes.clear()

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
        for one in gone:  # grows while it is walked
            gone.extend(one.children)
            del self._nodes[one.entry.key]
        return len(gone)


def _belongs(node: _Node, path: list[_Node]) -> bool:
    """True if a node stands behind the last of `path`; one whose place is not known yet gets it there."""
    if not path:
        return node.parent is None
    if node.parent is None and node is not path[0]:
        node.parent = path[-1]
        path[-1].children.add(node)
    return node.parent is path[-1]

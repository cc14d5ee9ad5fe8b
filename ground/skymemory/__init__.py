"""SkyMemory: a cache for the key-value tensors of transformers on a constellation of low-earth-orbit satellites.

    prompt -> blocks -> keys -> chunks -> satellites, and back

Public names are loaded when they are first used: `KVCManager` needs torch and transformers, the rest does not.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skymemory.agent.agent_store import AgentStore
    from skymemory.link.block_entry import BlockEntry
    from skymemory.prompt.manager import KVCManager
    from skymemory.segments.manager import SegmentManager
    from skymemory.segments.passages import Passage
    from skymemory.sky.constellation import ConfigError, Constellation
    from skymemory.store.block_store import BlockStore
    from skymemory.store.keyvalue import KeyValue
    from skymemory.store.results import ChainResult, FindResult, GetResult, PrefetchResult, PutResult, StoreStatistics
    from skymemory.store.sky_store import SkyStore
    from skymemory.testbed.running_store import running_store
    from skymemory.wire.address import Satellite

__all__ = [
    "AgentStore",
    "BlockEntry",
    "BlockStore",
    "ChainResult",
    "ConfigError",
    "Constellation",
    "FindResult",
    "GetResult",
    "KVCManager",
    "KeyValue",
    "Passage",
    "PrefetchResult",
    "PutResult",
    "Satellite",
    "SegmentManager",
    "SkyStore",
    "StoreStatistics",
    "running_store",
]

_MODULES = {
    "AgentStore": "agent.agent_store",
    "BlockEntry": "link.block_entry",
    "BlockStore": "store.block_store",
    "ChainResult": "store.results",
    "ConfigError": "sky.constellation",
    "Constellation": "sky.constellation",
    "FindResult": "store.results",
    "GetResult": "store.results",
    "KVCManager": "prompt.manager",
    "KeyValue": "store.keyvalue",
    "Passage": "segments.passages",
    "PrefetchResult": "store.results",
    "PutResult": "store.results",
    "Satellite": "wire.address",
    "SegmentManager": "segments.manager",
    "SkyStore": "store.sky_store",
    "StoreStatistics": "store.results",
    "running_store": "testbed.running_store",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"skymemory.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""SkyMemory: a cache for the key-value tensors of transformers on a constellation of low-earth-orbit satellites.

    prompt -> blocks -> keys -> chunks -> satellites, and back

Public names are loaded when they are first used: `KVCManager` needs torch and transformers, the rest does not.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skymemory.block_entry import BlockEntry
    from skymemory.config import ConfigError, Constellation
    from skymemory.keyvalue import KeyValue
    from skymemory.manager import KVCManager
    from skymemory.placement.torus import Satellite
    from skymemory.store import GetResult, PrefetchResult, PutResult, SkyStore, StoreStatistics

__all__ = [
    "BlockEntry",
    "ConfigError",
    "Constellation",
    "GetResult",
    "KVCManager",
    "KeyValue",
    "PrefetchResult",
    "PutResult",
    "Satellite",
    "SkyStore",
    "StoreStatistics",
]

_MODULES = {
    "BlockEntry": "block_entry",
    "ConfigError": "config",
    "Constellation": "config",
    "GetResult": "store",
    "KVCManager": "manager",
    "KeyValue": "keyvalue",
    "PrefetchResult": "store",
    "PutResult": "store",
    "Satellite": "placement.torus",
    "SkyStore": "store",
    "StoreStatistics": "store",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"skymemory.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

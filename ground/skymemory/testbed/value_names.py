"""Names of the values that `skymem put` stored from this host: satellites know no names, so only a list can tell them."""

from typing import Final

from msgspec import Struct

from skymemory.common.kept_list import KeptList
from skymemory.store.keyvalue import now_unix_ms
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.run_record import RunRecord
from skymemory.wire.key_derivation import public_name, root_key

NAMES_MAX: Final = 4096
"""Most names of the list. If there are more, those that were put first are left out."""


class NamedValue(Struct, frozen=True, kw_only=True):
    """Entry of the list."""

    raw_name: bytes
    """The name as bytes, which need not be UTF-8."""
    size_bytes: int
    put_unix_ms: int

    @property
    def name(self) -> str:
        """The name as `KeyValue` takes it."""
        return self.raw_name.decode(errors="surrogateescape")


class ValueNames(KeptList[NamedValue]):
    """The list of one sky and one tenant secret."""

    def __init__(self, store: SkyStore) -> None:
        """Use the list of a store's sky, in the state folder."""
        record = RunRecord()
        whose = public_name(root_key("values", store.tenant_secret))[:8].hex()
        path = record.folder / f"values-{record.sky(store.constellation).name}-{whose}.json"
        super().__init__(path, NamedValue, lambda value: value.raw_name, NAMES_MAX, "list of values")

    def stored(self, name: str, size_bytes: int) -> None:
        """Note that a value was stored."""
        self.add(NamedValue(raw_name=_raw(name), size_bytes=size_bytes, put_unix_ms=now_unix_ms()))

    def gone(self, *names: str) -> None:
        """Note that there are no such values any more."""
        self.remove(*map(_raw, names))


def _raw(name: str) -> bytes:
    return name.encode(errors="surrogateescape")

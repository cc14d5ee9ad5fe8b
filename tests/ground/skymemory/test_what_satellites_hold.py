"""Who dumps all satellites sees neither what was stored nor under which names."""

from collections.abc import Callable

from skymemory.agent.formats import record_keys
from skymemory.engines.framing import BlockFormat, Framing
from skymemory.store.keyvalue import KeyValue, ValueKeys, now_unix_ms
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from skymemory.wire.envelope import Kind, seal
from skymemory.wire.key_derivation import block_key, name_key, public_name
from support.dumps import shown

NAME, VALUE = "a name of a value that somebody looks for", b"a value that somebody looks for, " * 700
PAGE, MODEL = b"a page of keys and values, " * 1000, "an organisation/a model that somebody looks for"


def test_a_dump_shows_neither_plaintext_nor_names(start_sky: Callable[..., LocalConstellation]) -> None:
    local = start_sky(satellite={"store_mib": 1})
    pages = BlockFormat(block_tokens=16, layers=1, layer_bytes=len(PAGE), dtype="bfloat16", layout="k|v,token,kv_head,head_dim")
    with SkyStore(local.constellation) as store:
        secret = store.tenant_secret
        values = KeyValue(store)
        assert values.put(NAME, VALUE, expires_unix_ms=now_unix_ms() + 600_000).ok
        root = pages.root(secret, MODEL)
        framing, key = Framing(pages, root), block_key(name_key(root), b"first")
        block = memoryview(bytearray(framing.block_bytes))
        framing.layers(block)[0][:] = PAGE
        framing.seal(block, key)
        record, keys = record_keys(MODEL, secret)
        formats = seal(Kind.FORMATS, record, b"", MODEL.encode() * 10 + public_name(root), keys=keys)
        plain = b"bytes that nobody sealed, " * 10
        assert all(result.ok for result in store.put([(key, block), (record, formats), (bytes(32), plain)]))
        there = [result.data for result in store.get([values.key_of(NAME), key])]
    assert all(data is not None for data in there)
    sealed = [bytes(data[100:140]) for data in there if data is not None]
    names = [NAME.encode(), MODEL.encode(), ValueKeys(b"").key_of(NAME)]
    secrets = [secret, root, name_key(root), public_name(root)]
    texts = [VALUE[:33], PAGE[:27], b"somebody looks for", b"bfloat16", b"kv_head", *names, *secrets]
    assert shown(local, [*texts, *sealed, plain[:26]]) == {*sealed, plain[:26]}  # the dump shows what is not sealed

"""Strategy of hypothesis for any packet that the wire can carry."""

from dataclasses import replace

from hypothesis import strategies as st

from skymemory.wire import icd
from skymemory.wire.address import Satellite
from skymemory.wire.packets import KEY_BYTES, NOWHERE, Packet

U8, U16, U32, U64 = (st.integers(0, 2**bits - 1) for bits in (8, 16, 32, 64))
addresses = st.builds(Satellite, U16, U16)
homes = st.builds(Satellite, st.integers(1, 0xFFFF), st.integers(1, 0xFFFF))


def carries_chunk(packet: Packet) -> bool:
    """Return True if the payload is a chunk or a part of one: that of a PUT, or of the answer to a GET."""
    return packet.op == icd.OP_PUT if packet.is_request else packet.op == icd.OP_GET and packet.status == 0


@st.composite
def packets(draw: st.DrawFn) -> Packet:
    """Draw a packet: every field takes every value; only a chunk's lengths, home and word are as encoders write them."""
    is_request = draw(st.booleans())
    payload = draw(st.binary(max_size=400) | st.binary(min_size=6000, max_size=6000))
    op = draw(st.sampled_from((icd.OP_PUT, icd.OP_GET)) | U8)
    packet = Packet(
        is_request=is_request,
        apid=draw(st.integers(0, 0x7FF)),
        op=op,
        src=draw(addresses),
        dst=draw(addresses),
        request_id=draw(U64),
        status=draw(st.just(icd.STATUS_OK) | U8),
        flags=draw(U8),
        hop_limit=draw(U8),
        credit=draw(U16),
        gateway=draw(addresses),
        tenant=draw(U32),
        epoch=draw(U32),
        deadline_ms=draw(U32),
        key=draw(st.binary(min_size=KEY_BYTES, max_size=KEY_BYTES)),
        chunk_id=draw(U32),
        chunk_total=draw(U32),
        block_len=draw(U32),
        chunk_len=draw(U32),
        offset=draw(U32),
        chunk_crc=draw(U32),
        security=(security := draw(st.just(icd.SUITE_NONE) | st.integers(0, icd.SUITE_HANDSHAKE))),
        spi=draw(U32),
        sequence=draw(U64),
        code_k=draw(U8),
        code_m=draw(U8),
        code_scheme=draw(U8),
        track=draw(U8),
        content=draw(U32),
        block_version=draw(U64),
        cookie=draw(U64),
        home=draw(st.just(NOWHERE) | homes) if is_request and op == icd.OP_PUT else NOWHERE,
        word=0 if is_request else draw(st.integers(0, icd.WORD_SETTLED | icd.WORD_CAUGHT_UP)),
        tag=draw(st.binary(min_size=icd.TAG_BYTES, max_size=icd.TAG_BYTES)) if security else b"",
        payload=payload,
        seq_flags=draw(st.integers(0, 3)),
        seq_count=draw(st.integers(0, 0x3FFF)),
        time_s=0 if is_request else draw(U32),
        time_subs=0 if is_request else draw(U16),
    )
    return replace(packet, offset=9, chunk_len=9 + len(payload)) if carries_chunk(packet) else packet

"""The file of a satellite's keys: what is written is read, and nothing else is."""

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skymemory.common.secret_files import SecretFileError, write_secret
from skymemory.security.satellite_file import HEAD_BYTES, SatelliteKeys, parse_satellite_keys, read_satellite_keys
from skymemory.wire.address import Satellite


@st.composite
def all_keys(draw: st.DrawFn) -> SatelliteKeys:
    planes, slots = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    place = Satellite(draw(st.integers(1, planes)), draw(st.integers(1, slots)))
    own = ((place.plane - 1) * slots + place.slot - 1) * 32
    peers = bytearray(draw(st.binary(min_size=32, max_size=32)) * (planes * slots))
    peers[own : own + 32] = bytes(32)
    master = draw(st.binary(min_size=32, max_size=32))
    return SatelliteKeys(draw(st.integers(0, 255)), planes, slots, place, master, bytes(peers))


@given(all_keys())
def test_what_is_packed_is_read(keys: SatelliteKeys) -> None:
    packed = keys.pack()
    assert packed[:16] == b"SKYK\x01" + struct.pack(">BHHHHH", keys.generation, keys.planes, keys.slots, *keys.place, 0)
    assert packed[16:48] == keys.master_key
    assert len(packed) == HEAD_BYTES + 32 * keys.planes * keys.slots
    assert parse_satellite_keys(packed) == keys


@given(all_keys(), st.data())
def test_what_ends_early_or_late_is_refused(keys: SatelliteKeys, data: st.DataObject) -> None:
    packed = keys.pack()
    cut = data.draw(st.integers(0, len(packed) - 1))
    for wrong in (packed[:cut], packed + b"\0"):
        with pytest.raises(ValueError, match=r"bytes"):
            parse_satellite_keys(wrong)


@given(st.binary(max_size=200))
def test_other_bytes_are_refused_or_read_back(content: bytes) -> None:
    try:
        keys = parse_satellite_keys(content)
    except ValueError:
        return
    assert keys.pack() == content


@pytest.mark.parametrize(("at", "value"), [(0, 0), (4, 2), (7, 0), (9, 0), (11, 3), (13, 4), (11, 0), (15, 1), (6, 255), (48, 1)])
def test_heads_that_cannot_be(at: int, value: int) -> None:
    packed = bytearray(SatelliteKeys(1, 2, 3, Satellite(1, 1), bytes(32), bytes(6 * 32)).pack())
    parse_satellite_keys(bytes(packed))
    packed[at] = value
    with pytest.raises(ValueError, match=r"."):
        parse_satellite_keys(bytes(packed))


def test_keys_are_not_shown(tmp_path: Path) -> None:
    keys = SatelliteKeys(1, 1, 1, Satellite(1, 1), b"m" * 32, bytes(32))
    assert "mmm" not in repr(keys)
    write_secret(path := tmp_path / "1-1.key", keys.pack())
    assert read_satellite_keys(path) == keys
    path.chmod(0o640)
    with pytest.raises(SecretFileError, match=r"1-1\.key has mode 0640.*allowed are modes such as 0600: chmod 600 "):
        read_satellite_keys(path)

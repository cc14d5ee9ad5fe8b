"""Tables for a mission: they compile as cFS builds them, hold what the testbed gives its satellites, and the apps take them."""

import ctypes
import os
import struct
import subprocess
from pathlib import Path

import pytest

from skymemory.fsw import Executive, FswError
from skymemory.fsw.mission_tables import ROWS_MAX, Moves, TablesError, key_tables, tables
from skymemory.fsw.structures import (
    ISL_PEERS_OF_PAGE,
    KVC_SEGMENT_ROWS,
    EventPayload,
    IslKeysTable,
    IslLinksTable,
    IslNeighboursTable,
    IslPeersTable,
    KvcLimitsTable,
    KvcScheduleRow,
    KvcScheduleTable,
)
from skymemory.security.derivation import KEY_BYTES
from skymemory.security.satellite_file import SatelliteKeys
from skymemory.sky.constellation import Constellation
from skymemory.sky.orbit.schedule import Header, Schedule, WindowChange
from skymemory.sky.placement.core_library import crc32c
from skymemory.testbed import satellite_program as skysat
from skymemory.testbed.local import free_port
from skymemory.wire.address import Satellite
from support.core_structures import TableFile
from support.executive import load_table, read_table
from support.waiting import wait_until

ROOT = Path(__file__).parents[4]
APPS = ROOT / "fsw_apps"
CLOCK_EPOCH_MS = 315_964_800_000
STRICT = ("-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-Wstrict-prototypes", "-fPIC")
SKY = Constellation.model_validate(
    {
        "constellation": {"planes": 4, "slots": 5, "seam": "cut"},
        "network": {"port": 4977, "mtu": 9000},
        "satellite": {"store_mib": 3, "credit": 9, "hello_s": 7, "gossip": True, "scrub_s": 60},
        "links": {"model": "geometry", "jitter_us": 10, "rate_kbps": 5_000_000, "loss_ppm": 3},
        "cache": {"servers": 6, "centre": [2, 3], "chunk_bytes": 3000, "handover_s": 45.5},
    }
)


@pytest.fixture(scope="module")
def include(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Header folders as a mission's build makes them: each default header of the apps under its own name."""
    folder = tmp_path_factory.mktemp("inc")
    for app in ("isl", "kvc"):
        for path in (APPS / app / "config").glob(f"default_{app}_*.h"):
            (folder / path.name.removeprefix("default_")).write_text(f'#include "{path}"\n')
    places = [folder, ROOT / "testbed" / "exec" / "inc", *(APPS / app / "fsw" / "inc" for app in ("isl", "kvc"))]
    return [f"-I{place}" for place in places]


def compile_table(path: Path, include: list[str], *flags: str) -> tuple[str, str, bytes]:
    """Name of the table, its file, and the image."""
    library = path.with_name("".join((path.stem, *flags, ".so")))  # a loaded one is found again by its name
    compiler = os.environ.get("CC", "cc")
    flags = ("-DKVC_PLATFORM_STORE_BYTES=16777216", *flags)
    subprocess.run([compiler, *STRICT, *flags, *include, "-shared", "-o", library, path], check=True)
    found = TableFile.in_dll(ctypes.CDLL(str(library)), "CFE_TBL_FileDef")
    return found.TableName.decode(), found.TgtFilename.decode(), ctypes.string_at(found.Object, found.ObjectSize)


def schedule_of(constellation: Constellation, rows: int) -> Schedule:
    """The window moves a slot east every minute."""
    header = Header(
        source="test", epoch="2026-11-20T15:00:00.250Z", duration_ms=rows * 60_000 + 1, planes=constellation.planes,
        slots=constellation.slots, pattern=constellation.grid.geometry, altitude_km=550, inclination_deg=87.9, latitude_deg=0,
        longitude_deg=0, min_elevation_deg=10, isl_down=(),
    )  # fmt: skip
    changes = [
        WindowChange(row * 60_000, Satellite(2, (row + 2) % constellation.slots + 1), (), frozenset()) for row in range(rows)
    ]
    return Schedule(header, changes)


def moves_of(constellation: Constellation, rows: int) -> Moves:
    return Moves.of(constellation, schedule_of(constellation, rows), "test.csv", CLOCK_EPOCH_MS)


def write(folder: Path, constellation: Constellation, satellites: list[Satellite], moves: Moves | None = None) -> list[Path]:
    paths = []
    for name, text in tables(constellation, satellites, moves):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        paths.append(path)
    return paths


def take_over(satellite: Executive, name: str, image: bytes) -> None:
    """Load a table as the ground does, and wait until its app has validated it and holds it."""

    def is_loaded() -> bool:
        try:
            load_table(name, image)
        except FswError:  # the one before waits still
            return False
        return True

    wait_until(is_loaded, lambda: f"{name} is loaded: {events(satellite)}")
    wait_until(lambda: read_table(name, len(image)) == image, lambda: f"{name} is taken over: {events(satellite)}")


def events(satellite: Executive) -> list[str]:
    """Texts of the events so far."""
    found = []
    while (event := satellite.events.receive(0)) is not None:
        found.append(EventPayload.from_buffer_copy(event.payload).message.decode())
    return found


@pytest.mark.parametrize("place", [Satellite(1, 1), Satellite(2, 3), Satellite(4, 5)])
def test_tables_are_those_of_the_testbed_and_the_apps_take_them(place: Satellite, include: list[str], tmp_path: Path) -> None:
    sky = SKY.replace(network={"port": free_port(SKY)})
    paths = write(tmp_path, sky, [place], moves_of(sky, 12))
    images = {}
    for path in paths:
        if path.suffix == ".c":
            name, file, image = compile_table(path, include)
            assert file == path.with_suffix(".tbl").name
            assert name.lower().replace(".", "_") == path.stem
            images[name] = image
    assert set(images) == {"ISL.Neighbours", "ISL.Links", "KVC.Limits", *(f"KVC.Schedule{n}" for n in range(1, 5))}
    with Executive(skysat.arguments(sky, place)) as satellite:
        before = {name: read_table(name, len(image)) for name, image in images.items()}
        for name, image in images.items():
            take_over(satellite, name, image)
        said: list[str] = []
        taken = "KVC: schedule of 12 rows, 660000 ms, centre (2, 3) to (2, 14)"
        wait_until(lambda: said.extend(events(satellite)) or any(taken in text for text in said), lambda: f"{taken}: {said}")
    assert images["ISL.Links"] == before["ISL.Links"]
    assert images["KVC.Limits"] == before["KVC.Limits"]
    # The same but for what the testbed opens: commands from the ground, and telemetry of code of the user.
    ours, theirs = (IslNeighboursTable.from_buffer_copy(image["ISL.Neighbours"]) for image in (images, before))
    own = slice(IslNeighboursTable.uplink_first_mid.offset)
    assert bytes(ours)[own] == bytes(theirs)[own]
    assert bytes(ours.neighbour) == bytes(theirs.neighbour)
    assert (ours.uplink_first_mid, ours.uplink_last_mid) == (0, 0)
    assert ours.downlink_mid[:4] == [*theirs.downlink_mid[:3], 0]


def test_a_schedule_over_several_tables(include: list[str], tmp_path: Path) -> None:
    moves = moves_of(SKY, KVC_SEGMENT_ROWS + 5)
    paths = {path.stem: path for path in write(tmp_path, SKY, [], moves) if "schedule" in path.stem}
    found = [KvcScheduleTable.from_buffer_copy(compile_table(paths[f"kvc_schedule{n}"], include)[2]) for n in range(1, 5)]
    assert [table.row_count for table in found] == [KVC_SEGMENT_ROWS, 5, 0, 0]
    assert [table.first_row for table in found] == [1, KVC_SEGMENT_ROWS + 1, 0, 0]
    rows = [KvcScheduleRow(time_ms, *cell) for time_ms, cell in moves.track.rows]
    told = [bytes(row) for table in found for row in table.row[: table.row_count]]
    assert told == [bytes(row) for row in rows]
    for table in found[:2]:
        assert table.rows_crc == crc32c(b"".join(told))
        assert (table.epoch_s, table.epoch_ms, table.clock) == (1_479_222_000, 250, 0)
        assert (table.planes, table.slots, table.layout, table.servers, table.total_rows) == (4, 5, 3, 6, KVC_SEGMENT_ROWS + 5)
    swapped = b"".join(row[at : at + 4][::-1] for row in told for at in (0, 4, 8))
    big = KvcScheduleTable.from_buffer_copy(compile_table(paths["kvc_schedule2"], include, "-DSOFTWARE_BIG_BIT_ORDER")[2])
    assert big.rows_crc == crc32c(swapped)


def test_without_links_and_schedule_images_are_empty(include: list[str], tmp_path: Path) -> None:
    paths = {path.stem: path for path in write(tmp_path, Constellation(), [Satellite(3, 10)])}
    assert compile_table(paths["isl_links"], include)[2] == bytes(IslLinksTable())
    for segment in range(1, 5):
        assert compile_table(paths[f"kvc_schedule{segment}"], include)[2] == bytes(KvcScheduleTable())
    limits = KvcLimitsTable.from_buffer_copy(compile_table(paths["kvc_limits"], include)[2])
    assert (limits.store_bytes, limits.slot_bytes, limits.credit) == (16 << 20, 6144, 20)


def test_the_window_of_a_sky_that_does_not_turn(include: list[str], tmp_path: Path) -> None:
    for parity in (0, 2):
        sky = SKY.replace(cache={"parity": parity, "layout": "all_planes"})
        paths = {path.stem: path for path in write(tmp_path / str(parity), sky, [])}
        limits = KvcLimitsTable.from_buffer_copy(compile_table(paths["kvc_limits"], include)[2])
        window = limits.window_servers, limits.window_layout, limits.window_plane, limits.window_slot
        assert window == (6, 4, 2, 3)


def test_quotas_of_tenants(include: list[str], tmp_path: Path) -> None:
    quotas = [{"number": 7, "reserved_percent": 25, "most_percent": 50}, {"number": 2**32 - 1}]
    for others in ([], [{"number": "others", "reserved_percent": 5, "most_percent": 10}]):
        sky = Constellation().replace(tenants=[*quotas, *others])
        paths = {path.stem: path for path in write(tmp_path / str(len(others)), sky, [])}
        limits = KvcLimitsTable.from_buffer_copy(compile_table(paths["kvc_limits"], include)[2])
        assert limits.tenant_count == 2
        assert (limits.others_reserved_percent, limits.others_most_percent) == ((5, 10) if others else (0, 100))
        found = [(one.tenant, one.reserved_percent, one.most_percent) for one in limits.tenant[:3]]
        assert found == [(7, 25, 50), (2**32 - 1, 0, 100), (0, 0, 0)]


def test_a_build_with_too_small_a_store_says_so(include: list[str], tmp_path: Path) -> None:
    path = tmp_path / "kvc_limits.c"
    path.write_text(dict(tables(Constellation(), []))["tables/kvc_limits.c"])
    done = subprocess.run(["cc", *include, "-c", "-o", tmp_path / "x.o", path], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "satellite.store_mib is 16: this needs KVC_PLATFORM_STORE_BYTES of 16777216 or more" in done.stderr


def test_processors_are_named_plane_by_plane() -> None:
    text = dict(tables(SKY, list(SKY.torus.satellites())[:2]))["skymemory_cpus.cmake"]
    assert "list(APPEND MISSION_CPUNAMES cpu2) # satellite (1, 2)\nset(cpu2_PROCESSORID 2)\nset(cpu2_PLATFORM default)\n" in text


def test_schedules_that_cannot_be_tables_are_refused() -> None:
    with pytest.raises(TablesError, match=r"test\.csv is for 4 planes x 5 slots; the constellation has 5 planes x 19 slots"):
        Moves.of(Constellation(), schedule_of(SKY, 2), "test.csv", CLOCK_EPOCH_MS)
    delta = SKY.replace(constellation={"geometry": "delta"})
    with pytest.raises(TablesError, match=r"test\.csv is for a star; the constellation is a delta"):
        Moves.of(delta, schedule_of(SKY, 2), "test.csv", CLOCK_EPOCH_MS)
    with pytest.raises(TablesError, match=r'cache\.layout is "hop"'):
        moves_of(SKY.replace(cache={"layout": "hop"}), 2)
    with pytest.raises(TablesError, match=f"{ROWS_MAX + 1:,} moves of the window; tables have room for {ROWS_MAX:,}"):
        moves_of(SKY, ROWS_MAX + 1)
    with pytest.raises(TablesError, match="cannot show; see --clock-epoch"):
        Moves.of(SKY, schedule_of(SKY, 2), "test.csv", 2**45)


def keys_of(generation: int, planes: int, slots: int) -> SatelliteKeys:
    """Keys of satellite (1, 2); the key of each other one is its index and the generation."""
    peers = b"".join(struct.pack(">HB29x", index, generation) for index in range(planes * slots))
    return SatelliteKeys(generation, planes, slots, Satellite(1, 2), bytes([generation]) * KEY_BYTES, peers)


def key_images(folder: Path, include: list[str], *generations: SatelliteKeys) -> tuple[IslKeysTable, list[IslPeersTable]]:
    """Compile the tables of keys: ISL.Keys, and ISL.Peers1 .."""
    images = {}
    for file, text in key_tables(generations):
        path = folder / file
        path.write_text(text)
        name, _, image = compile_table(path, include)
        assert name.lower().replace(".", "_") == path.stem
        images[name] = image
    return IslKeysTable.from_buffer_copy(images["ISL.Keys"]), [
        IslPeersTable.from_buffer_copy(images[f"ISL.Peers{number}"]) for number in range(1, 5)
    ]


def test_keys_of_two_generations(include: list[str], tmp_path: Path) -> None:
    """The newest master key is the last one, and each generation has pages of its own."""
    old, new = keys_of(7, 3, 5), keys_of(8, 3, 5)
    keys, pages = key_images(tmp_path, include, old, new)
    assert [(one.is_set, one.generation, bytes(one.key)) for one in keys.master] == [
        (1, 7, old.master_key),
        (1, 8, new.master_key),
    ]
    assert [(page.generation, page.first, page.count) for page in pages] == [(8, 0, 15), (7, 0, 15), (0, 0, 0), (0, 0, 0)]
    for page, own in zip(pages, (new, old), strict=False):
        assert b"".join(bytes(peer.key) for peer in page.peer[: page.count]) == own.peer_keys


def test_keys_over_several_tables(include: list[str], tmp_path: Path) -> None:
    own = keys_of(1, 30, 21)
    keys, pages = key_images(tmp_path, include, own)
    assert [one.is_set for one in keys.master] == [1, 0]
    assert [(page.first, page.count) for page in pages] == [(0, ISL_PEERS_OF_PAGE), (ISL_PEERS_OF_PAGE, 130), (0, 0), (0, 0)]
    assert b"".join(bytes(peer.key) for page in pages for peer in page.peer[: page.count]) == own.peer_keys


def test_more_satellites_than_the_tables_have_room_for_are_refused() -> None:
    assert len(dict(key_tables([keys_of(1, 20, 100)]))) == 5
    with pytest.raises(TablesError, match=r"the keys of 2,001 satellites need 5 tables ISL\.Peers; there are 4"):
        list(key_tables([keys_of(1, 3, 667)]))
    with pytest.raises(TablesError, match=r"1,001 satellites in two generations need 6 tables ISL\.Peers"):
        list(key_tables([keys_of(1, 7, 143), keys_of(2, 7, 143)]))

"""Faults files, and what becomes of them."""

from pathlib import Path

import pytest

from skymemory.sky.placement.torus import Torus
from skymemory.twin import structures
from skymemory.twin.fault_actions import TwinLinkModel, together
from skymemory.twin.faults import FaultError, Faults
from skymemory.twin.structures import FaultKind
from skymemory.wire.address import Satellite

TORUS = Torus(5, 19)
HOUR_MS = 3_600_000

EVERYTHING = """
[[loss]]
rate = 0.01

[[burst]]
rate = 0.001
packets = 20
loss = 0.9
at_s = 100
for_s = 50

[[jitter]]
ms = 15
link = [[3, 10], [3, 11]]

[[reorder]]
rate = 0.02
ms = 40

[[duplicate]]
rate = 0.01

[[flip]]
rate = 0.005
ground = [3, 10]

[[corrupt]]
rate = 0.002
at_s = 200
for_s = 100

[[attack]]
rate = 0.003
ground = [3, 11]

[[cut]]
link = [[1, 1], [2, 1]]
at_s = 10
for_s = 5

[[cut]]
per_hour = 6

[[partition]]
planes = [1, 2]
at_s = 20

[[crash]]
satellite = [3, 10]
at_s = 30
for_s = 60

[[pressure]]
satellite = [2, 2]
at_s = 40
slots_free = 3
for_s = 5

[[late_clock]]
satellite = [5, 19]
at_s = 50
late_s = 2.5

[[drop]]
at_s = 51
packet = 4
"""


def load(folder: Path, text: str) -> Faults:
    path = folder / "faults.toml"
    path.write_text(text)
    return Faults.load(path, TORUS)


def test_every_kind_becomes_actions(tmp_path: Path) -> None:
    faults = load(tmp_path, EVERYTHING)
    actions = faults.actions(TORUS, HOUR_MS, 7)
    assert actions == faults.actions(TORUS, HOUR_MS, 7)
    assert actions != faults.actions(TORUS, HOUR_MS, 8)  # the cuts without a link
    assert [action.time_us for action in actions] == sorted(action.time_us for action in actions)
    assert {action.kind for action in actions} == set(FaultKind)
    begun = [action.begins for action in actions if action.begins]
    assert {kind: begun.count(kind) for kind in begun if kind != "cut"} == {
        "partition": 1,
        "crash": 1,
        "pressure": 1,
        "late_clock": 1,
    }
    assert begun.count("cut") > 1
    crash = next(action for action in actions if action.kind is FaultKind.CRASH)
    assert (crash.time_us, crash.node) == (30_000_000, 2 * 19 + 9)
    late = [(action.time_us, action.value) for action in actions if action.kind is FaultKind.CLOCK]
    assert late == [(50_000_000, 2_500_000), (110_000_000, 0)]
    drop = [(action.time_us, action.value) for action in actions if action.kind is FaultKind.DROP]
    assert drop == [(51_000_000, 4), (111_000_000, 0)]
    pressed = [(action.time_us, action.value) for action in actions if action.kind is FaultKind.PRESSURE]
    assert pressed == [(40_000_000, 3), (42_000_000, 3), (44_000_000, 3)]


def test_models_of_a_time_are_one(tmp_path: Path) -> None:
    actions = [one for one in load(tmp_path, EVERYTHING).actions(TORUS, HOUR_MS, 7) if one.kind is FaultKind.MODEL]
    common = {one.time_us: one.model for one in actions if one.node == structures.ALL}
    assert sorted(common) == [0, 100_000_000, 150_000_000, 200_000_000, 300_000_000, 3_600_000_000]
    plain = TwinLinkModel(loss_ppm=10_000, reorder_ppm=20_000, reorder_us=40_000, duplicate_ppm=10_000)
    assert common[0] == common[150_000_000] == plain
    assert common[100_000_000] == plain._replace(burst_enter_ppm=1000, burst_leave_ppm=50_000, burst_loss_ppm=900_000)
    assert common[200_000_000] == plain._replace(corrupt_ppm=2000)
    assert common[3_600_000_000] == TwinLinkModel()
    jitter = {(one.node, one.link) for one in actions if one.model.jitter_us == 15_000}
    assert jitter == {(2 * 19 + 9, 1), (2 * 19 + 10, 3)}  # both directions
    attacks = {(one.node, one.link) for one in actions if one.model.attack_ppm == 3000}
    assert attacks == {(2 * 19 + 10, structures.LINK_DOWN), (2 * 19 + 10, structures.LINK_UP)}
    flips = {(one.node, one.link) for one in actions if one.model.flip_ppm == 5000}
    assert flips == {(2 * 19 + 9, structures.LINK_DOWN), (2 * 19 + 9, structures.LINK_UP)}


def test_losses_are_independent_and_delays_add_up() -> None:
    both = together([TwinLinkModel(loss_ppm=500_000, jitter_us=10), TwinLinkModel(loss_ppm=500_000, jitter_us=5)])
    assert both == TwinLinkModel(loss_ppm=750_000, jitter_us=15)


def test_what_begins_has_ended_by_the_end(tmp_path: Path) -> None:
    actions = load(tmp_path, EVERYTHING).actions(TORUS, 35_000, 7)  # the crash goes on, the pressure has not begun
    assert max(action.time_us for action in actions) == 35_000_000
    kinds = [action.kind for action in actions]
    assert kinds.count(FaultKind.CRASH) == kinds.count(FaultKind.RESTART) == 1
    cuts = [action.value for action in actions if action.kind is FaultKind.CUT]
    assert cuts.count(1) == cuts.count(0)
    assert FaultKind.PRESSURE not in kinds


def test_random_faults_repeat_and_differ() -> None:
    assert Faults.random(3, HOUR_MS) == Faults.random(3, HOUR_MS)
    mixes = [Faults.random(seed, HOUR_MS) for seed in range(60)]
    assert not any(mix.attack or mix.drop for mix in mixes)  # seeds with keys add an attack
    for kind in set(Faults.model_fields) - {"attack", "drop"}:
        count = sum(bool(getattr(mix, kind)) for mix in mixes)
        assert 5 < count < 40
    assert len({repr(mix) for mix in mixes}) == 60


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[loss]]\nrate = 2", ":2: loss.rate is 2; allowed are numbers from 0 to 1"),
        ("[[loss]]\nrate = nan", ":2: loss.rate is nan; allowed are numbers from 0 to 1"),
        ("\n[[loss]]", ":2: loss.rate is missing; allowed are numbers from 0 to 1"),
        (
            "[[loss]]\nrate = 0.1\nrat = 1",
            ":3: loss.rat is unknown (did you mean rate?); allowed in [[loss]] are link, ground, at_s, for_s, rate",
        ),
        ("[[lost]]\nrate = 0.1", ":1: lost is unknown (did you mean loss?); allowed as tables are loss, burst, "),
        ("[loss]\nrate = 0.1", ":1: loss is "),
        ("[[crash]]\nsatellite = [6, 1]\nat_s = 1", ":2: crash.satellite is [6, 1]; allowed are [1, 1] to [5, 19]"),
        ("[[crash]]\nsatellite = [0, 1]\nat_s = 1", ":2: crash.satellite is [0, 1]; allowed are satellites [plane, slot]"),
        ("[[crash]]\nsatellite = [1, 1]", ":1: crash has no time; allowed is one of at_s and per_hour"),
        ("[[crash]]\nat_s = 1\nper_hour = 1", ":1: crash has both at_s and per_hour; allowed is one of at_s and per_hour"),
        ("[[cut]]\nat_s = 1\nlink = [[1, 1], [1, 3]]", ":3: cut.link is from [1, 1] to [1, 3]; allowed are neighbours within"),
        ("[[cut]]\nat_s = 1\nlink = 3", ":3: cut.link is 3; allowed are links [[plane, slot], [plane, slot]]"),
        ("[[partition]]\nat_s = 1\nplanes = [1, 9]", ":3: partition.planes are 1, 9; allowed are some of 1 to 5, not all"),
        ("[[partition]]\nat_s = 1\nplanes = [1, 2, 3, 4, 5]", ":3: partition.planes are 1, 2, 3, 4, 5; allowed are some of"),
        ("[[partition]]\nat_s = 1\nplanes = []", ":3: partition.planes is []; allowed are lists of planes such as [1, 2]"),
        ("[[pressure]]\nat_s = 1\nslots_free = -1", ":3: pressure.slots_free is -1; allowed are whole numbers from 0 to 65535"),
        ("[[jitter]]\nms = ", ":2: not valid TOML: "),
        ("[[jitter]]\nms = 5\nlink = [[1, 1], [9, 9]]", ":3: jitter.link is from [1, 1] to [9, 9]; allowed are neighbours"),
    ],
)
def test_mistakes_name_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FaultError) as caught:
        load(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path / 'faults.toml'}{message}")
    assert "\n" not in str(caught.value)


def test_every_mistake_is_told_in_the_order_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(FaultError) as caught:
        load(tmp_path, "[[flip]]\nrate = 5\n[[loss]]\nrate = -1\n")
    assert [line.split(":")[1] for line in str(caught.value).splitlines()] == ["2", "4"]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(FaultError, match=r"none\.toml: No such file or directory"):
        Faults.load(tmp_path / "none.toml", TORUS)
    (tmp_path / "latin.toml").write_bytes(b"# \xe9")
    with pytest.raises(FaultError, match="byte 2 is not UTF-8"):
        Faults.load(tmp_path / "latin.toml", TORUS)


def test_satellites_are_places_of_the_torus(tmp_path: Path) -> None:
    faults = load(tmp_path, "[[crash]]\nsatellite = [2, 3]\nper_hour = 60\n")
    assert faults.crash[0].satellite == Satellite(2, 3)
    assert {action.node for action in faults.actions(TORUS, HOUR_MS, 1)} == {19 + 2}

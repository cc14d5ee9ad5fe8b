"""Runs with keys, with and without an attacker."""

from dataclasses import replace

import pytest

from skymemory.sky.constellation import Constellation
from skymemory.sky.orbit.schedule import Schedule
from skymemory.twin import seeds
from skymemory.twin.faults import Attack, Crash, Faults, Loss
from skymemory.twin.native_twin import TwinError
from skymemory.twin.single_run import Report, Setup, SuiteName, Twin, with_keys
from skymemory.twin.structures import Break

ATTACK = Faults(attack=(Attack(rate=0.02, at_s=60, for_s=1200),), crash=(Crash(per_hour=10, for_s=90),))


def run(setup: Setup, faults: Faults | None = None, broken: Break = Break.NOTHING) -> Report:
    with Twin(setup, 7, faults, broken) as twin:
        return twin.run()


@pytest.mark.parametrize("suite", ["gmac_header", "gmac_packet", "blake2b_header", "blake2b_packet"])
def test_with_keys_all_is_found_that_is_found_without(quarter: Setup, suite: SuiteName) -> None:
    plain, keyed = run(quarter), run(replace(quarter, suite=suite))
    assert (keyed.violated, keyed.hits, keyed.misses) == (0, plain.hits, plain.misses)
    assert (plain.sealed, plain.session_keys, plain.commands) == (0, 0, 0)
    assert keyed.sealed > keyed.gets
    assert keyed.session_keys > 100
    assert keyed.commands == keyed.handovers  # each is obeyed once


@pytest.mark.parametrize("suite", ["gmac_header", "blake2b_packet"])
def test_an_attacker_gets_nothing_done(quarter: Setup, suite: SuiteName) -> None:
    report = run(replace(quarter, suite=suite), ATTACK.model_copy(update={"loss": (Loss(rate=0.005),)}))
    assert report.violated == 0, [str(one) for one in report.first]
    assert all(count > 10 for count in report.attacks.values()), report.attacks
    assert report.refusals["unauthenticated"] > 100
    assert report.refusals["replayed"] > 10
    assert sum(report.refusals.values()) <= sum(report.attacks.values()) + report.faults["duplicate"]
    assert report.hits > 0.3 * report.gets


@pytest.mark.parametrize(
    ("broken", "invariant"),
    [
        (Break.CREDULOUS, "authentic"),
        (Break.OBLIVIOUS, "authentic"),
        (Break.SALT, "authentic"),
        (Break.SALT, "nonce"),
        (Break.STUTTER, "nonce"),
    ],
)
def test_each_truth_fails_where_the_core_is_broken(quarter: Setup, broken: Break, invariant: str) -> None:
    setup = replace(quarter, suite="blake2b_header", violations_max=0)
    assert run(setup, ATTACK, broken).violations[invariant] > 0


def test_an_attack_without_keys_is_refused(quarter: Setup) -> None:
    with pytest.raises(TwinError, match="the faults have an attack, and nobody has keys"):
        Twin(quarter, 7, ATTACK)
    assert with_keys(quarter, ATTACK).suite == "gmac_header"
    assert with_keys(replace(quarter, suite="blake2b_packet"), ATTACK).suite == "blake2b_packet"
    assert with_keys(quarter, Faults()) == quarter


@pytest.mark.parametrize(("suite", "meant"), [("auto", "gmac_header"), ("blake2b_packet", "blake2b_packet")])
def test_the_constellation_file_says_whether_there_are_keys(day: Schedule, suite: str, meant: str) -> None:
    plain = Constellation()
    keyed = plain.model_copy(update={"security": plain.security.model_copy(update={"keyring": "/k.json", "suite": suite})})
    assert Setup.of(plain, day, 1000).suite == "off"
    assert Setup.of(keyed, day, 1000).suite == meant


def test_one_seed_in_four_has_keys_and_most_of_them_an_attacker() -> None:
    setups = {seed: seeds.setup_of(seed) for seed in range(1, 201)}
    keyed = [seed for seed, setup in setups.items() if setup.suite != "off"]
    assert 35 < len(keyed) < 65
    assert {setup.suite for setup in setups.values()} == {"off", "gmac_header", "blake2b_header", "blake2b_packet"}
    attacked = [seed for seed in keyed if seeds.attacked(Faults(), seed, setups[seed].duration_ms).attack]
    assert 0.6 * len(keyed) < len(attacked) < len(keyed)

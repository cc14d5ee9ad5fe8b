"""New keys for satellites in the sky: the mission's commands, to a few satellites or all of them.

Satellites take one step after the other: `load` the next keys, `activate` them, `forget` those of before. A step may be repeated,
and does nothing where it was taken before.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from skymemory.common.progress import Progress
from skymemory.link.ask import Ask
from skymemory.link.association_keys import keys_from
from skymemory.link.control import ControlPlane, LinkStats
from skymemory.security.keyring import MissionKeyring
from skymemory.security.wrapped_keys import KeyCommand, load_payload, peer_payloads, plain_payload
from skymemory.sky.constellation import Constellation
from skymemory.sky.entry_satellites import Route
from skymemory.wire import icd
from skymemory.wire.address import Satellite

STEPS: Final = (KeyCommand.LOAD, KeyCommand.ACTIVATE, KeyCommand.FORGET)
"""Steps of a change of keys, in their order."""
TOGETHER: Final = 128
"""Satellites that are asked at once."""
ANSWER_S: Final = 5.0
"""Seconds that satellites have for an answer, handshake included."""


@dataclass(frozen=True, slots=True)
class StepTaken:
    """Result of a step."""

    done: list[Satellite] = field(default_factory=list)
    """Satellites that took it, now or before."""
    refused: dict[Satellite, str] = field(default_factory=dict)
    """Satellites that refused it, with their word: a status of the ICD. `unauthenticated`: they have other keys."""
    silent: list[Satellite] = field(default_factory=list)
    """Satellites that did not answer. They may have taken it."""


@dataclass(frozen=True, slots=True)
class ServedKeys:
    """Keys that satellites serve, as they say themselves."""

    stats: dict[Satellite, LinkStats] = field(default_factory=dict)
    """Satellites that answered under one of the generations that were asked for."""
    refused: list[Satellite] = field(default_factory=list)
    """Satellites that serve none of them."""
    silent: list[Satellite] = field(default_factory=list)
    """Satellites that did not answer."""


def take_step(
    constellation: Constellation,
    mission: MissionKeyring,
    step: KeyCommand,
    old: int,
    places: Sequence[Satellite],
    progress: Progress | None = None,
    answer_s: float = ANSWER_S,
) -> StepTaken:
    """Let satellites take a step towards the mission's generation.

    Before they forget the old key, satellites are asked under it. Those that are silent are asked under the new one, too: they
    may have forgotten the old key already. They forget all keys that are older than the mission's, whichever they are: one of
    before may have stayed when `forget` was left out.

    Args:
        mission: Keyring of the new generation.
        step: One of `STEPS`.
        old: Generation that satellites have, lower than that of the mission.
        answer_s: Seconds that satellites have for an answer.
    """
    before = mission.changed(generation=old)
    speakers = (mission,) if step is KeyCommand.FORGET else (before, mission)
    taken = StepTaken()
    left = list(places)
    strangers: set[Satellite] = set()
    for speaker in speakers:
        silent: list[Satellite] = []
        if left:
            with ControlPlane(constellation, keys=keys_from(speaker, constellation)) as control:
                for first in range(0, len(left), TOGETHER):
                    some = left[first : first + TOGETHER]
                    if step is KeyCommand.FORGET:
                        stats = control.link_stats([Route(place, place) for place in some], answer_s)
                        waiting = {place: _forgetting({old, *one.generations}, mission) for place, one in stats.items()}
                        silent += [place for place in some if place not in stats]
                        strangers |= control.refused
                    else:
                        waiting = {place: _payloads(step, mission, before, speaker, place) for place in some}
                    silent += _send(control, waiting, taken, answer_s)
                    strangers |= control.refused
                    if progress is not None:
                        progress(len(taken.done) + len(taken.refused), len(places))
        left = silent
    taken.refused.update((place, icd.STATUSES[icd.STATUS_UNAUTHENTICATED]) for place in left if place in strangers)
    taken.silent.extend(place for place in left if place not in strangers)
    return taken


def ask_who_serves(
    constellation: Constellation,
    mission: MissionKeyring,
    places: Sequence[Satellite],
    progress: Progress | None = None,
    answer_s: float = ANSWER_S,
    oldest: int | None = None,
) -> ServedKeys:
    """Ask satellites which keys they serve, under the mission's generation first. Nothing changes.

    A satellite has confirmed its new keys when it answers under them: the tag shows that nobody else did.

    Args:
        mission: Keyring of that generation.
        answer_s: Seconds that satellites have for an answer.
        oldest: Satellites that refuse are asked under the generations before, too, down to this one. By default they are not.
    """
    found = ServedKeys()
    left = list(places)
    for generation in range(mission.generation, (oldest or mission.generation) - 1, -1):
        refused: list[Satellite] = []
        with ControlPlane(constellation, keys=keys_from(mission.changed(generation=generation), constellation)) as control:
            for first in range(0, len(left), TOGETHER):
                some = left[first : first + TOGETHER]
                found.stats.update(control.link_stats([Route(place, place) for place in some], answer_s))
                for place in some:
                    if place not in found.stats:
                        (refused if place in control.refused else found.silent).append(place)
                if progress is not None:
                    progress(len(places) - len(left) + first + len(some), len(places))
        left = refused
        if not left:
            break
    found.refused.extend(left)
    return found


def _payloads(
    step: KeyCommand, mission: MissionKeyring, before: MissionKeyring, speaker: MissionKeyring, place: Satellite
) -> Iterator[bytes]:
    """Return the commands that load keys or make them valid, for one satellite.

    The master key comes last: a satellite that did not get all keys with others has none to activate.
    """
    if step is KeyCommand.LOAD:
        return chain(peer_payloads(mission, speaker, place), [load_payload(mission, before, place)])
    return iter([plain_payload(step, mission.generation)])


def _forgetting(generations: Iterable[int], mission: MissionKeyring) -> Iterator[bytes]:
    """Return the commands to forget those of the generations that are older than the mission's."""
    return iter([plain_payload(KeyCommand.FORGET, one) for one in sorted(generations) if one < mission.generation])


def _send(control: ControlPlane, waiting: dict[Satellite, Iterator[bytes]], taken: StepTaken, answer_s: float) -> list[Satellite]:
    """Send satellites their commands, one after the other; note what is answered, and return who was silent."""
    silent: list[Satellite] = []
    while waiting:
        payloads = {place: next(rest, None) for place, rest in waiting.items()}
        taken.done.extend(place for place, payload in payloads.items() if payload is None)
        asks = [
            Ask(Route(place, place), icd.OP_REKEY, icd.APID_ISL, payload=payload)
            for place, payload in payloads.items()
            if payload is not None
        ]
        going_on = {}
        for ask, answer in zip(asks, control.exchange(asks, answer_s), strict=True):
            place = ask.route.satellite
            if answer is None or answer.status == icd.STATUS_UNAUTHENTICATED:
                silent.append(place)
            elif answer.ok:
                going_on[place] = waiting[place]
            else:
                taken.refused[place] = icd.STATUSES.get(answer.status, str(answer.status))
        waiting = going_on
    return silent

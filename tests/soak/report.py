"""What came of a soak, in words and in numbers."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from soak.faults import Fault
from support.register import Operation, Violation


@dataclass(frozen=True)
class Settings:
    """What a soak does."""

    seconds: float = 600.0
    seed: int = 1
    keys: int = 24
    at_once: int = 1
    """Satellites that are out of order at once."""
    turns: bool = True
    """The window moves every few seconds."""
    pause_s: float = 0.03
    """Mean time between two operations of a client."""
    fault_s: float = 3.0
    """Mean time from the end of one fault to the next, in each of the threads that make them."""
    bound_s: float = 60.0
    """Time in which a satellite has to catch up, and in which all keys have to be read in the end."""


@dataclass(frozen=True)
class Report:
    """What came of a soak."""

    settings: Settings
    operations: list[Operation]
    faults: list[Fault]
    violations: list[Violation]
    excused: list[Violation]
    """Violations while more satellites were hurt than the promise allows, as hosts took others for lost without our doing."""
    nils: list[Violation]
    """Values of which a gateway said nil. That is allowed, as it is what a gateway says if nobody answers."""
    silent_nils: int
    """The number of `nils` while nothing was wrong."""
    behind: list[str]
    """Satellites that did not catch up in time."""
    unread: dict[str, list[str]]
    """Keys of which a client could read nothing in the end."""

    @property
    def is_right(self) -> bool:
        return not self.violations and not self.behind and not any(self.unread.values())


def overlap(fault: Fault, one: Operation) -> bool:
    """Return True if a fault, or what it left behind, lasted when an operation ran."""
    return fault.begin < one.end and one.begin < fault.caught_up


def table(report: Report) -> str:
    """Return a report in words."""
    lines = []
    whats = sorted({one.what for one in report.operations})
    answers = Counter((one.what, _answer(one)) for one in report.operations)
    for what in whats:
        told = ", ".join(f"{count:,} {answer}" for (of, answer), count in answers.most_common() if of == what)
        lines.append(f"{what:12} {told}")
    for kind, count in Counter(fault.kind for fault in report.faults).most_common():
        slowest = max(fault.caught_up - fault.end for fault in report.faults if fault.kind == kind)
        lines.append(f"fault {kind:12} {count:4} times, caught up within {slowest:.1f} s")
    start = min((one.begin for one in report.operations), default=0.0)
    for wrong in [*report.excused[:5], *report.violations]:
        newest = [] if wrong.newest is None else [("acknowledged", wrong.newest)]
        some = [("saw", wrong.read), *newest, *(("of", one) for one in wrong.seen[-3:])]
        excuse = ", excused" if wrong in report.excused else ""
        lines.append(f"{wrong.kind}: {wrong.read.key}{excuse}")
        lines += [f"    {word:12} {_shown(one, start)}" for word, one in some]
        lines += [f"    beside       {_fault_shown(one, start)}" for one in report.faults if overlap(one, wrong.read)]
    lines += [f"not caught up: {one}" for one in report.behind]
    lines += [f"unread in the end: {name} {keys}" for name, keys in report.unread.items() if keys]
    lines.append(
        f"seed {report.settings.seed}: {len(report.operations):,} operations, {len(report.faults)} faults, "
        f"{len(report.violations)} violations and {len(report.excused)} excused, {len(report.nils)} nil for a value, "
        f"{report.silent_nils} of them without a fault"
    )
    return "\n".join(lines)


def _shown(one: Operation, start: float) -> str:
    seen, wrote = (name if name is None else name or "nothing" for name in (one.saw, one.wrote))
    times = f"{one.begin - start:.4f} to {one.end - start:.4f} s"
    return f"{times} {one.client}: {one.what} {one.answer}, saw {seen}, wrote {wrote}, version {one.version}"


def _fault_shown(one: Fault, start: float) -> str:
    times = f"{one.begin - start:.2f} to {one.end - start:.2f} s, caught up {one.caught_up - start:.2f} s"
    return f"{times}: {one.kind} {one.whom}"


def as_json(report: Report) -> dict[str, Any]:
    """Return a report as numbers."""
    return {
        "seed": report.settings.seed,
        "seconds": report.settings.seconds,
        "operations": len(report.operations),
        "answers": dict(Counter(f"{one.what}: {_answer(one)}" for one in report.operations)),
        "faults": dict(Counter(fault.kind for fault in report.faults)),
        "violations": [str(wrong) for wrong in report.violations],
        "excused": len(report.excused),
        "nils": len(report.nils),
        "nils_without_a_fault": report.silent_nils,
        "behind": report.behind,
        "unread": report.unread,
    }


def _answer(one: Operation) -> str:
    return one.answer.replace(one.key, "KEY")

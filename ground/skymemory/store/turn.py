"""`Turn`: a lock that is given in the order in which it is asked for, and that tells how many wait for it."""

from collections import deque
from threading import Lock
from types import TracebackType


class Turn:
    """A lock; a context manager. The thread that gives it back need not be the one that took it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._is_taken = False
        self._gates: deque[Lock] = deque()
        """A locked lock for each thread that waits; it is opened when the turn comes."""

    def __enter__(self) -> None:
        self.take()

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None:
        self.give_back()

    @property
    def waiting(self) -> int:
        """Number of threads that wait."""
        return len(self._gates)

    def take_now(self) -> bool:
        """Take it if nobody has it. Return False if somebody has."""
        with self._lock:
            was_taken, self._is_taken = self._is_taken, True
        return not was_taken

    def take(self) -> None:
        """Wait for the turn. An exception meanwhile, such as an interrupt, leaves the queue."""
        gate = Lock()
        with self._lock:
            if not self._is_taken:
                self._is_taken = True
                return
            gate.acquire()
            self._gates.append(gate)
        try:
            gate.acquire()
        except BaseException:
            with self._lock:
                has_come = gate not in self._gates
                if not has_come:
                    self._gates.remove(gate)
            if has_come:
                self.give_back()
            raise

    def give_back(self) -> None:
        """Give the turn to who has waited longest."""
        with self._lock:
            if self._gates:
                self._gates.popleft().release()
            else:
                self._is_taken = False

"""A bounded list in a file of the state folder, which all programs of a user share: a help for people, never needed."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final, Generic, TypeVar

import msgspec
from msgspec import Struct

from skymemory.common.file_lock import BusyError, turn
from skymemory.common.secret_files import FILE_MODE
from skymemory.common.state_folder import make_folders
from skymemory.common.whole_file import write_whole

_log = logging.getLogger(__name__)

_PATIENCE_S: Final = 10.0

Entry = TypeVar("Entry", bound=Struct)


class KeptList(Generic[Entry]):
    """A list of entries, the one that was added first first. Errors of the file are logged and do not raise."""

    def __init__(self, path: Path, entry: type[Entry], key: Callable[[Entry], object], entries_max: int, what: str) -> None:
        """Use a file, which is made when the first entry is added.

        Args:
            path: The file; its lock lies beside it.
            entry: Type of the entries.
            key: Returns what tells entries apart.
            entries_max: Most entries. If there are more, those that were added first are left out.
            what: The list in words, for messages.
        """
        self._path = path
        self._decoder: msgspec.json.Decoder[list[Entry]] = msgspec.json.Decoder(list[entry])  # type: ignore[valid-type]  # a type that is an argument
        self._key = key
        self._entries_max = entries_max
        self._what = what

    def read(self) -> list[Entry]:
        """Return the entries."""
        try:
            return self._decoder.decode(self._path.read_bytes())
        except FileNotFoundError:
            return []
        except (OSError, msgspec.DecodeError) as error:
            _log.warning("the %s %s cannot be read: %s", self._what, self._path, error)
            return []

    def add(self, entry: Entry) -> None:
        """Add an entry, or replace the one with the same key."""
        self._change(lambda known: [one for one in known if self._key(one) != self._key(entry)] + [entry])

    def remove(self, *keys: object) -> None:
        """Leave out the entries with these keys."""
        gone = set(keys)
        if any(self._key(one) in gone for one in self.read()):
            self._change(lambda known: [one for one in known if self._key(one) not in gone])

    def _change(self, change: Callable[[list[Entry]], list[Entry]]) -> None:
        try:
            make_folders(self._path.parent)
            with turn(self._path.with_suffix(".lock"), self._what, _PATIENCE_S, _log.info):
                content = msgspec.json.encode(change(self.read())[-self._entries_max :])
                self._path.touch(mode=FILE_MODE)  # names are nobody else's business
                write_whole(self._path, content)
        except (OSError, BusyError) as error:
            _log.warning("the %s %s cannot be written: %s", self._what, self._path, error)

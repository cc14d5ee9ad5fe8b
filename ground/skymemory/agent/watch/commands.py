"""Commands of a browser over the WebSocket: it pauses, and it looks again."""

from typing import Final

import msgspec

MESSAGE_BYTES_MAX: Final = 256
"""Bytes of a message; a longer one closes the connection (1009)."""
MISTAKES_MAX: Final = 3
"""Number of unknown messages; more close the connection (1008)."""
MESSAGES_MAX: Final = 60
"""Number of messages in any `MESSAGES_S`; more close the connection (1008)."""
MESSAGES_S: Final = 10.0


class Pause(msgspec.Struct, tag_field="do", tag="pause", forbid_unknown_fields=True, frozen=True):
    """Nobody looks: the page is hidden, or shows the past."""


class Resume(msgspec.Struct, tag_field="do", tag="resume", forbid_unknown_fields=True, frozen=True):
    """Somebody looks again."""


Command = Pause | Resume
_decoder: Final = msgspec.json.Decoder(Command)


class PageCommandError(ValueError):
    """A message that is no command: what was wrong, and what is allowed."""


def decode(text: str) -> Command:
    """Return the command of a message.

    Raises:
        PageCommandError: It is no command.
    """
    try:
        command: Command = _decoder.decode(text.encode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError) as error:
        raise PageCommandError(f'{error}; allowed are {{"do":"pause"}} and {{"do":"resume"}}') from error
    return command

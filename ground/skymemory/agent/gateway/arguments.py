"""Checks of a command's arguments before it is run, and the error for a command that there is not."""

from typing import Final

from skymemory.agent.gateway.client import Spec
from skymemory.agent.gateway.replies import CommandError
from skymemory.agent.gateway.requests import Command

WORD_BYTES_MAX: Final = 1 << 16
"""Length of an argument that is no value: names, patterns and options are looked through byte by byte while all others wait."""
_SHOWN_BYTES: Final = 128
"""Bytes of an unknown command in the error."""


class WrongError(CommandError):
    """A command that cannot even wait for EXEC."""


def check_words(spec: Spec, command: Command) -> None:
    """Check that no argument is long that is no value.

    Raises:
        WrongError: One is.
    """
    lengths = [len(one) if isinstance(one, bytes) else one.length for one in command.args]
    if spec.values is not None:
        lengths[spec.values] = [0] * len(lengths[spec.values])
    if (longest := max(lengths)) > WORD_BYTES_MAX:
        raise WrongError(f"ERR argument of {longest:,} bytes; allowed are 0 to {WORD_BYTES_MAX:,} where it is no value")


def unknown_command(command: Command) -> str:
    """Return the error that Redis has for it, with the beginning of the arguments."""
    words = [one if isinstance(one, bytes) else bytes(one.data[:_SHOWN_BYTES]) for one in command.args]
    shown = ""
    for word in words[1:]:
        if len(shown) >= _SHOWN_BYTES:
            break
        shown += f"'{word[: _SHOWN_BYTES - len(shown)].decode('utf-8', 'replace')}' "
    return f"ERR unknown command '{words[0][:_SHOWN_BYTES].decode('utf-8', 'replace')}', with args beginning with: {shown}"

"""What a browser may say."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skymemory.agent.watch.commands import PageCommandError, Pause, Resume, decode


def test_commands() -> None:
    assert decode('{"do":"pause"}') == Pause()
    assert decode(' {"do" : "resume"} ') == Resume()


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", "pause", '"pause"', '{"do":"dance"}', '{"do":1}', '{"do":"pause","to":1}', '{"do":"pause"}{', "[" * 9],
)
def test_nonsense_is_told_what_is_allowed(text: str) -> None:
    with pytest.raises(PageCommandError, match=r'allowed are \{"do":"pause"\} and \{"do":"resume"\}'):
        decode(text)


@given(st.text(max_size=256))
def test_any_text(text: str) -> None:
    """Raises nothing else."""
    with suppress(PageCommandError):
        assert isinstance(decode(text), Pause | Resume)

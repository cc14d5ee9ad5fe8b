"""The port for LMCache."""

import pytest

from skymemory.agent.gateway.lmcache import ADAPTERS_WARNING

from .inside import InsideGateway


def test_who_serves_lmcache_is_warned_of_lora(caplog: pytest.LogCaptureFixture) -> None:
    with InsideGateway():
        assert caplog.messages.count(ADAPTERS_WARNING) == 1

"""A store on the constellation that `skymem up` started on this machine."""

from skymemory.store.sky_store import SkyStore
from skymemory.testbed.run_record import RunRecord


def running_store(tenant_secret: bytes | None = None) -> SkyStore:
    """Open a store on the constellation that is up. It follows the schedule that is played to the constellation.

    Args:
        tenant_secret: The secret of what is stored; this user's default for the constellation by default.

    Raises:
        StateError: No constellation is up, or the record of it cannot be read.
        ConfigError: The keyring of this host is none for it.
        OSError: The system has no socket left.
    """
    state = RunRecord()
    sky = state.sky(state.require().constellation.as_host())
    return SkyStore(sky.constellation, playing=sky.playing, tenant_secret=tenant_secret)

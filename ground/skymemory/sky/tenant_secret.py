"""The tenant secret of a constellation's users, which goes into all keys (`skymemory.wire.key_derivation`).

All tools of a user take the same secret, so they see the same names. By default it is made once for each constellation, in this
user's state folder. A user on another machine, or in a container, needs the same file (`--tenant-secret-file`, or the variable
$SKYMEM_TENANT_SECRET_FILE).
"""

from pathlib import Path

from skymemory.common.state_folder import default_folder, named_secret
from skymemory.common.tenant_secrets import made_secret, read_tenant_secret
from skymemory.sky.constellation import Constellation


def secret_file(constellation: Constellation) -> Path:
    """Return the file of the default secret. Constellations on the same network have the same one."""
    return default_folder() / f"tenant-{constellation.network.base}.secret"


def secret_of(constellation: Constellation, file: Path | None = None, *, first: Path | None = None) -> bytes:
    """Return the secret in a file; without one the constellation's default secret, which is made if it is not there.

    Args:
        constellation: The constellation.
        file: File that a person named; by default the one that $SKYMEM_TENANT_SECRET_FILE names.
        first: File of this user whose secret a new default takes over, if it is there.

    Raises:
        SecretFileError: There is no secret, and none can be made.
    """
    file = named_secret() if file is None else file
    return read_tenant_secret(file) if file is not None else made_secret(secret_file(constellation), first)

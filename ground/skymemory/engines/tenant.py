"""The tenant secret of engines, which goes into all their keys (`skymemory.wire.key_derivation`)."""

from pathlib import Path

from skymemory.common.secret_files import SecretFileError
from skymemory.common.state_folder import agent_socket, named_secret
from skymemory.common.tenant_secrets import engines_secret_of, read_tenant_secret


def engine_secret(file: str | None, socket: str | None) -> bytes:
    """Return the tenant secret of an engine.

    Without a file it is the one that the agent leaves beside its socket (`engines_secret_of`).

    Args:
        file: File that a person named; by default the one that $SKYMEM_TENANT_SECRET_FILE names.
        socket: Path of the agent's socket; None: where the agent puts it.

    Raises:
        ValueError: The file cannot be read or made, or is empty.
    """
    try:
        named = named_secret() if file is None else Path(file)
        if named is not None:
            return read_tenant_secret(named)
        return engines_secret_of(agent_socket() if socket is None else Path(socket))
    except SecretFileError as error:
        raise ValueError(f"SkyMemory: {error}") from error

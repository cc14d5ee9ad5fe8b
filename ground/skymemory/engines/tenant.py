"""The tenant secret of engines, which goes into all their keys and digests (`skymemory.wire.key_derivation`)."""

from pathlib import Path


def read_secret(path: str | None) -> bytes:
    """Return the tenant secret in a file; b"" without a file.

    Raises:
        ValueError: The file cannot be read, or is empty.
    """
    if path is None:
        return b""
    try:
        secret = Path(path).read_bytes()
    except OSError as error:
        raise ValueError(f"SkyMemory: tenant_secret_file {path} cannot be read: {error.strerror or error}") from error
    if not secret:
        raise ValueError(f"SkyMemory: tenant_secret_file {path} is empty; allowed is a file of one byte and more")
    return secret

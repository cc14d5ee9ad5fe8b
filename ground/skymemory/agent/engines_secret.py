"""The agent's tenant secret, and where its engines find it."""

from contextlib import suppress
from pathlib import Path
from threading import Lock

from skymemory.common.state_folder import engines_secret, first_secret, named_secret
from skymemory.common.tenant_secrets import read_tenant_secret, share_secret
from skymemory.sky.constellation import Constellation
from skymemory.sky.tenant_secret import secret_of


class EnginesSecret:
    """Tenant secret of each constellation that an agent serves. The agent leaves it beside its socket for its engines.

    An engine may come before the first agent, and makes a secret. The first constellation that has none yet takes that one over.
    Thread-safe.
    """

    def __init__(self, socket: Path, file: Path | None) -> None:
        """Use a file that a person named, or the constellations' default secrets.

        Raises:
            SecretFileError: The file cannot be read.
        """
        self._place, self._first = engines_secret(socket), first_secret(socket)
        self._file = file
        self._secret: bytes | None = None
        self._serves = False
        self._lock = Lock()
        named = named_secret() if file is None else file
        if named is not None:
            read_tenant_secret(named)

    def of(self, constellation: Constellation) -> bytes:
        """Return the secret for a constellation that is to be served.

        Raises:
            SecretFileError: There is none, and none can be made.
        """
        with self._lock:
            self._secret = secret_of(constellation, self._file, first=self._first)
            self._share()
            return self._secret

    def serve(self) -> None:
        """Begin to leave the secret for engines: the socket is this agent's now, and no other's.

        Raises:
            SecretFileError: It cannot be written.
        """
        with self._lock:
            self._serves = True
            self._share()

    def _share(self) -> None:
        if self._serves and self._secret is not None:
            share_secret(self._place, self._secret)
            with suppress(OSError):
                self._first.unlink()

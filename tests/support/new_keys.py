"""Steps of a change of keys, as a mission and its hosts take them."""

from pathlib import Path

from click.testing import CliRunner

from skymemory.cli import main


def put_in_place(own: Path, keyring: Path) -> None:
    """Replace a host's keyring as who brings it a new one."""
    draft = own.with_suffix(".new")
    draft.write_bytes(keyring.read_bytes())
    draft.chmod(0o600)
    draft.replace(own)


def take(step: str, keys: Path) -> None:
    """Take a step with all satellites: `load`, `activate` or `forget`."""
    done = CliRunner().invoke(main, ["keys", step, str(keys)], prog_name="skymem")
    assert done.exit_code == 0, done.output

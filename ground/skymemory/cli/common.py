"""Parts that the commands share: errors, the choice of the constellation, tables, progress."""

import json
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click
from click.exceptions import NoArgsIsHelpError

from skymemory.common import progress
from skymemory.common.file_lock import BusyError
from skymemory.common.input_error import InputError
from skymemory.common.state_folder import SECRET_VARIABLE

if TYPE_CHECKING:  # help and completion need none of these, and importing them takes most of a second
    from rich.console import Console
    from rich.table import Table

    from skymemory.sky.constellation import Constellation, KeyUse
    from skymemory.store.sky_store import SkyStore
    from skymemory.testbed.run_record import RunRecord, RunSky

WIDE = 10_000
"""Columns of output that is no terminal."""

LINE_S = 5.0
"""Seconds between two lines of progress where there is no terminal."""

DROPPED_S = 0.01
"""Seconds until a signal's exception that was dropped is raised again."""
_LATER_S = 0.01
"""Seconds until another try if that was too early."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
VARIABLE = "SKYMEM_CONSTELLATION"
"""Variable that names the constellation file once, for all commands that use a sky."""
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_PLAN = "Constellation file. Default: constellation.toml of this folder if there is one, else the paper's constellation."
constellation_option = click.option("--constellation", "constellation_path", type=_FILE, help=_PLAN)
"""Option of commands that start a constellation of their own, or compute one."""
up_option = click.option("--constellation", "constellation_path", type=_FILE, envvar=VARIABLE, show_envvar=True, help=_PLAN)
"""Option of the command that starts what the others use."""
sky_option = click.option(
    "--constellation",
    "constellation_path",
    type=_FILE,
    envvar=VARIABLE,
    show_envvar=True,
    help="File of the constellation to use, whoever runs it. Default: the one that `skymem up` started.",
)
"""Option of commands that use running satellites."""
tenant_secret_option = click.option(
    "--tenant-secret-file",
    type=click.Path(dir_okay=False, path_type=Path),
    envvar=SECRET_VARIABLE,
    show_envvar=True,
    help="File of the secret that hides names and values. Default: this user's for that constellation, made when first needed.",
)
"""Option of commands that store or read what is sealed."""


class Failure(click.ClickException):
    """A task that could not be done: one line, exit status 1."""

    exit_code = 1


class Busy(click.ClickException):
    """Another command that was at work for too long: one line, exit status 3. Nothing was done."""

    exit_code = 3


class BadInput(click.ClickException):
    """Wrong input: one line, or one for each mistake in a file; exit status 2."""

    exit_code = 2


class Silent(click.ClickException):
    """No satellite can be asked, so nothing is known of what they hold: one line, exit status 4."""

    exit_code = 4


class Commands(click.Group):
    """A group whose commands end with one clear line if they raise an error that a person can act on."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run a command line. SIGTERM and SIGHUP raise an exception, so that the command clears up."""
        before = {}
        hook = sys.unraisablehook
        if threading.current_thread() is threading.main_thread():
            sys.unraisablehook = _see_to_dropped
            for number in (signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(number) is signal.SIG_DFL:  # nohup has another handler
                    before[number] = signal.signal(number, _end)
        try:
            return super().main(*args, **extra)
        finally:
            sys.unraisablehook = hook
            for number, handler in before.items():
                signal.signal(number, handler)

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Read what stands before the command's name; report a mistake there in one line as well."""
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.UsageError as error:
            raise _one_line(error) from error

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. Errors of this package become `Failure` and `BadInput`; any other is a bug and shows its trace.

        Ctrl-C becomes exit status 130, as shells have it.
        """
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            if sys.stderr.isatty():
                click.echo(err=True)  # this ends the line with the terminal's ^C
            raise _Ended(128 + signal.SIGINT) from error
        except click.UsageError as error:
            raise _one_line(error) from error
        except InputError as error:
            raise BadInput(str(error)) from error
        except BusyError as error:
            raise Busy(str(error)) from error
        except OSError as error:
            if isinstance(error, BrokenPipeError) and _nobody_reads():
                raise  # click ends the command silently, as with `| head`
            if type(error).__module__.startswith("skymemory") or error.strerror is None:
                raise Failure(str(error)) from error
            raise Failure(f"{error.filename}: {error.strerror}" if error.filename else error.strerror) from error
        except RuntimeError as error:
            if type(error).__module__.startswith("skymemory"):
                raise Failure(str(error)) from error
            raise


def _nobody_reads() -> bool:
    """Return True if standard output is a pipe that nobody reads any more."""
    try:
        watched = select.poll()
        watched.register(sys.stdout.fileno(), 0)
        return bool(watched.poll(0))
    except (OSError, ValueError):  # standard output has no file descriptor
        return False


class _Ended(SystemExit):
    """A signal that ends the command."""


def _end(number: int, _: object) -> None:
    """Raise for the first signal; end the process at once for the second."""
    signal.signal(number, signal.SIG_DFL)
    raise _Ended(128 + number)


def _see_to_dropped(dropped: "sys.UnraisableHookArgs") -> None:
    """Raise a signal's exception again if Python dropped it.

    Python drops an exception that comes while an object is destroyed. It would also drop one that this function raises, so a
    timer raises it.
    """
    if not isinstance(dropped.exc_value, _Ended | KeyboardInterrupt):
        sys.__unraisablehook__(dropped)
        return
    ended, before = dropped.exc_value, signal.getsignal(signal.SIGALRM)

    def raise_again(_: int, frame: FrameType | None) -> None:
        while frame is not None:
            if frame.f_code is _see_to_dropped.__code__:  # the hook has not returned yet
                signal.setitimer(signal.ITIMER_REAL, _LATER_S)
                return
            frame = frame.f_back
        signal.signal(signal.SIGALRM, before)
        raise ended

    signal.signal(signal.SIGALRM, raise_again)
    signal.setitimer(signal.ITIMER_REAL, DROPPED_S)


def _one_line(error: click.UsageError) -> click.ClickException:
    """Return click's message about a command line, which has four lines, in one."""
    if isinstance(error, NoArgsIsHelpError):
        return error
    where = f"; see `{error.ctx.command_path} --help`" if error.ctx is not None else ""
    return BadInput(" ".join(error.format_message().split()).removesuffix(".") + where)


def load_constellation(path: Path | None, keys: "KeyUse" = "any") -> "Constellation":
    """Load the file that was named, else the one of this folder, else the defaults.

    Args:
        path: The file that was named.
        keys: Use of the keyring that the file names.

    Raises:
        ConfigError: The file is wrong; the message has file, line and what is allowed.
    """
    from skymemory.sky.constellation import Constellation

    return Constellation.default(keys) if path is None else Constellation.load(path, keys)


def check_model(model: str, files: bool = False) -> None:
    """Check that a model which is named by its folder is there. Other names are the hub's.

    Args:
        model: The name.
        files: True if a file is allowed, too.

    Raises:
        BadInput: The folder is not there.
    """
    path = Path(model).expanduser()
    is_path = path.is_absolute() or model.startswith(("./", "../", "~")) or len(path.parts) > 2
    if path.exists():
        if not path.is_dir() and not files:
            raise BadInput(f"model {model} is a file; allowed are folders, and names on the hub such as Qwen/Qwen2.5-0.5B")
    elif is_path:
        raise BadInput(f"model {model}: there is no such folder")


def tell_of_model(model: str, error: Exception) -> str:
    """Return in one line why a model cannot be loaded; transformers takes many."""
    here = "" if Path(model).exists() else "it is no folder here, and the hub does not give it: "
    return f"model {model}: {here}{first_line(error)}"


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, or the error's kind if it has none."""
    return next(iter(str(error).strip().splitlines()), "") or type(error).__name__


def find_sky(path: Path | None, keys: "KeyUse" = "host") -> "RunSky":
    """Return the sky of the file that was named, else the one that is up.

    A host's command stops a replay of it that was killed, and says so.

    Args:
        path: The file that was named.
        keys: Use of its keyring. For a host it is the one that $SKYMEM_KEYRING names, if it names one.

    Raises:
        ConfigError: The file is wrong; the message has file, line and what is allowed.
        StateError: No file was named, and no constellation is up.
    """
    from skymemory.sky.constellation import Constellation
    from skymemory.testbed.abandoned_replay import stop_abandoned
    from skymemory.testbed.run_record import RunRecord

    state = RunRecord()
    if path is not None:
        sky = state.sky(Constellation.load(path, keys))
    else:
        running = state.require().constellation
        sky = state.sky(running.as_host() if keys == "host" else running)
    if keys == "host":
        stop_abandoned(sky, lambda text: click.echo(text, err=True))
    return sky


@contextmanager
def own_turn(state: "RunRecord") -> Iterator[None]:
    """Keep other commands from starting and ending satellites; who is waited for is told on standard error."""
    with state.turn(click.get_current_context().command_path, lambda text: click.echo(text, err=True)):
        yield


def open_store(path: Path | None, tenant_secret_file: Path | None = None) -> "SkyStore":
    """Open a store on the sky of the named file, else on the one that is up. The store follows that sky's schedule.

    Args:
        path: File of the constellation.
        tenant_secret_file: File of the tenant secret; this user's default for that sky by default.

    Raises:
        ConfigError: The file is wrong; the message has file, line and what is allowed.
        StateError: No file was named, and no constellation is up.
        SecretFileError: The file of the secret cannot be read.
    """
    from skymemory.common.tenant_secrets import read_tenant_secret
    from skymemory.store.sky_store import SkyStore

    sky = find_sky(path)
    secret = None if tenant_secret_file is None else read_tenant_secret(tenant_secret_file)
    return SkyStore(sky.constellation, playing=sky.playing, tenant_secret=secret)


def print_json(report: dict[str, Any]) -> None:
    """Print one JSON object on standard output."""
    click.echo(json.dumps(report, indent=2))


def output_console() -> "Console":
    """Return standard output: as wide as the terminal or as $COLUMNS says, else as wide as a table needs it."""
    from rich.console import Console

    return Console() if sys.stdout.isatty() or "COLUMNS" in os.environ else Console(width=WIDE)


def print_table(table: "Table") -> None:
    """Print a table on standard output."""
    output_console().print(table)


@contextmanager
def progress_bar(text: str) -> Iterator[progress.Progress]:
    """Show a bar on standard error while the work lasts; show nothing if standard error is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    texts = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    columns = *texts, TimeElapsedColumn(), TextColumn("left:"), TimeRemainingColumn()
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(text, total=None)

        def update(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield update


@contextmanager
def progress_lines(text: str) -> Iterator[progress.Progress]:
    """Show a bar on standard error as `progress_bar` does. Without a terminal print a line at first, and one now and then."""
    if sys.stderr.isatty():
        with progress_bar(text) as update:
            yield update
        return
    click.echo(f"{text} ...", err=True)
    begun_s = told_s = time.monotonic()

    def tell(done: int, total: int) -> None:
        nonlocal told_s
        now_s = time.monotonic()
        if now_s - told_s >= LINE_S:
            told_s = now_s
            left = f", about {(now_s - begun_s) * (total - done) / done:.0f} s left" if done else ""
            click.echo(f"{text}: {done} of {total}{left}", err=True)

    yield tell

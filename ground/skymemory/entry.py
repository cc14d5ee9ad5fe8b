"""The program `skymem`: an early Ctrl-C ends it without a trace, also while it still imports what it needs."""

import signal
import sys


def main() -> None:
    """Run the command line of this process."""
    interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # false in a shell's background
    if interruptible:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from skymemory.cli import main as run

    try:
        if interruptible:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        run()
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    finally:
        if interruptible:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # nothing is left to clean up

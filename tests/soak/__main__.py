"""`make soak`: see `soak.run`."""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

from skymemory.common.state_folder import SECRET_VARIABLE
from skymemory.common.tenant_secrets import made_secret
from soak.report import Settings, as_json, table
from soak.run import Soak


def main() -> int:
    """Run a soak. Return 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=Settings.seconds)
    parser.add_argument("--seed", type=int, default=Settings.seed)
    parser.add_argument("--at-once", type=int, default=Settings.at_once, help="satellites that are out of order at once")
    parser.add_argument("--still", action="store_true", help="the window stays")
    parser.add_argument("--folder", type=Path, help="empty folder, where logs are left; by default they go with the end")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    settings = Settings(seconds=chosen.seconds, seed=chosen.seed, at_once=chosen.at_once, turns=not chosen.still)
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        os.environ[SECRET_VARIABLE] = str(folder / "tenant.secret")
        made_secret(folder / "tenant.secret")
        with Soak(folder, settings, lambda text: print(text, file=sys.stderr, flush=True)) as soak:
            report = soak.run()
    print(json.dumps(as_json(report), indent=2) if chosen.json else table(report))
    return 0 if report.is_right else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Run seeds of the twin one after the other, and stop at the first violation; for tools/mutants.py.

usage: tools/twin_seeds.py FIRST STEP LAST

Prints `run SEED` before each seed and `violated SEED TEXT` after one that is violated. Where the core ends the process or never
comes back, the last line therefore names the seed.
"""

from __future__ import annotations

import sys


def main() -> int:
    first, step, last = map(int, sys.argv[1:])
    from skymemory.twin.seeds import run_seed

    for seed in range(first, last + 1, step):
        print(f"run {seed}", flush=True)
        report = run_seed(seed)
        if report.violated:
            print(f"violated {seed} {report.first[0]}", flush=True)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

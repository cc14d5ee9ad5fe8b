#!/bin/sh
# usage: tools/tidy.sh JOBS
#
# clang-tidy over every C file of ours that build/ compiles, tests excepted. Prints findings only.
set -eu
jobs=$1
files=$(sed -n 's/^ *"file": "\(.*\)",*$/\1/p' build/compile_commands.json |
    grep -v -e "^$PWD/tests/" -e "^$PWD/.cache/" -e "^$PWD/build" -e /unit-test/ | sort -u)
# The commands are gcc's: what clang does not know of its warnings is no finding.
if ! printf '%s\n' "$files" | xargs -P"$jobs" -n3 \
    clang-tidy -p build --quiet --extra-arg=-Wno-unknown-warning-option 2>build/tidy.log; then
    grep -v 'warnings\{0,1\} .*generated' build/tidy.log >&2 || true
    exit 1
fi

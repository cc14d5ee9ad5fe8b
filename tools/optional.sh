#!/bin/sh
# usage: tools/optional.sh TOOL WHAT -- COMMAND...
#
# Runs COMMAND if TOOL is installed. If not, says what is left out; with CI set that is a failure.
tool=$1 what=$2
shift 3
if command -v "$tool" >/dev/null 2>&1; then
    exec "$@"
fi
if [ -n "${CI:-}" ]; then
    echo "$tool is not installed: $what cannot run, and CI leaves nothing out" >&2
    exit 1
fi
echo "skipped: $what ($tool is not installed)"

#!/bin/sh
# usage: tools/optional.sh TOOL WHAT -- COMMAND...
#
# Runs COMMAND if TOOL is there and works. If not, says what is left out and why; with CI set that is a failure.
tool=$1 what=$2
shift 3
if why=$("$(dirname "$0")/tool_works.sh" "$tool"); then
    exec "$@"
fi
if [ -n "${CI:-}" ]; then
    echo "$what cannot run, and CI leaves nothing out: $why" >&2
    exit 1
fi
echo "skipped: $what ($why)"

#!/bin/sh
# usage: tools/step.sh COMMAND...
#
# Runs COMMAND and says how many seconds that took. With SKYMEM_TIMES set, the line goes to the end of the file of that name too.
began=$(date +%s)
"$@"
status=$?
line="took $(($(date +%s) - began)) s: $*"
echo "$line"
if [ -n "${SKYMEM_TIMES:-}" ]; then
    echo "$line" >>"$SKYMEM_TIMES"
fi
exit "$status"

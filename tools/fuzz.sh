#!/bin/sh
# usage: tools/fuzz.sh SECONDS
#
# Builds the fuzz targets with clang's libFuzzer under ASan and UBSan and runs them side by side, SECONDS each. What they find is
# left in build-fuzz/<target>/ as crash-*; the corpus stays there for the next run.
set -eu
seconds=$1
build=build-fuzz
cmake -S . -B "$build" -G Ninja -DCMAKE_MAKE_PROGRAM="$(command -v ninja)" -DCMAKE_C_COMPILER=clang \
    -DSKYMEM_FUZZ=ON -DSKYMEM_SANITIZE=address,undefined >/dev/null
targets=$(for source in tests/fuzz/fuzz_*.c; do basename "$source" .c; done | grep -v '^fuzz_main$')
# shellcheck disable=SC2086  # one word a target
cmake --build "$build" --target $targets

pids="" names=""
for name in $targets; do
    mkdir -p "$build/$name/corpus"
    "$build/tests/fuzz/$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=0 \
        -artifact_prefix="$build/$name/" "$build/$name/corpus" >"$build/$name/log" 2>&1 &
    pids="$pids $!" names="$names $name"
done
failed=0
for name in $names; do
    pid=${pids# }
    pid=${pid%% *}
    pids=${pids# "$pid"}
    if wait "$pid"; then
        echo "fuzz: $name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$build/$name/log") runs in $seconds s, nothing found"
    else
        echo "fuzz: $name FAILED:" >&2
        tail -n 60 "$build/$name/log" >&2
        failed=1
    fi
done
exit "$failed"

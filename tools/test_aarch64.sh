#!/bin/sh
# usage: tools/test_aarch64.sh JOBS
#
# Cross-builds for aarch64 and runs the C tests there, under qemu's user mode.
set -eu
jobs=$1
build=build-aarch64
cmake -S . -B "$build" -G Ninja -DCMAKE_MAKE_PROGRAM="$(command -v ninja)" \
    -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc \
    -DCMAKE_CROSSCOMPILING_EMULATOR="qemu-aarch64;-L;/usr/aarch64-linux-gnu" >/dev/null
cmake --build "$build"
exec ctest --test-dir "$build" --output-on-failure --timeout 300 -j"$jobs"

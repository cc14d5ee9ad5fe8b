#!/bin/sh
# usage: tools/tool_works.sh TOOL...      say of each tool that does not work what is wrong and which Debian package mends it
#        tools/tool_works.sh --packages TOOL...       print just the names of these packages
#
# A tool may be there and not be whole: clang without its run-time library, a cross compiler without its C library. So each is tried
# at what it is used for, on two lines, as configure scripts do. The exit status is 0 if all work.
set -u
only_packages=0
if [ "${1:-}" = --packages ]; then
    only_packages=1
    shift
fi
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
printf 'int main(void) {\n    return 0;\n}\n' >"$folder/main.c"
printf '#include <stddef.h>\n#include <stdint.h>\nint LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) { return data == NULL && bytes; }\n' \
    >"$folder/fuzz.c"
printf '#include <openssl/evp.h>\nint main(void) {\n    return EVP_aes_256_gcm() == NULL;\n}\n' >"$folder/openssl.c"
printf '#include <Python.h>\nint main(void) {\n    return PY_MAJOR_VERSION != 3;\n}\n' >"$folder/python.c"
printf '#include <isa-l/erasure_code.h>\nint main(void) {\n    return gf_mul(1, 1) != 1;\n}\n' >"$folder/isal.c"
cross_flags="-L /usr/aarch64-linux-gnu"

# Try one tool at what it is used for. Its output goes to a file, whose last line tells why it failed.
works() {
    case $1 in
    aarch64-linux-gnu-gcc) "$1" "$folder/main.c" -o "$folder/aarch64" ;;
    chromium) "$1" --headless --no-sandbox --disable-gpu "--user-data-dir=$folder/chromium" --dump-dom about:blank ;;
    clang) "$1" -fsanitize=fuzzer,address,undefined "$folder/fuzz.c" -o "$folder/fuzz" && "$folder/fuzz" -runs=1 ;;
    clang-tidy) "$1" --quiet "$folder/main.c" -- ;;
    cppcheck) "$1" --quiet --library=posix "$folder/main.c" ;;
    docker) "$1" version ;;
    gcc) "$1" "$folder/main.c" -o "$folder/main" && "$folder/main" ;;
    libisal) gcc "$folder/isal.c" -o "$folder/isal" -lisal && "$folder/isal" ;;
    libssl) gcc "$folder/openssl.c" -o "$folder/openssl" -lcrypto && "$folder/openssl" ;;
    memcached) "$1" -V ;;
    # A program of another processor runs only if both the emulator and that processor's C library are there.
    python3-dev)
        include=$("${PYTHON:-python3}" -c 'import sysconfig; print(sysconfig.get_paths()["include"])') &&
            gcc -I "$include" -c "$folder/python.c" -o "$folder/python.o"
        ;;
    qemu-aarch64) aarch64-linux-gnu-gcc "$folder/main.c" -o "$folder/emulated" && "$1" $cross_flags "$folder/emulated" ;;
    *) "$1" --version ;;
    esac
}

# Print the Debian packages that a tool needs.
packages() {
    case $1 in
    aarch64-linux-gnu-gcc) echo gcc-aarch64-linux-gnu libc6-dev-arm64-cross ;;
    clang) # the run-time library has the number of the compiler that is there
        version=$(clang -dumpversion 2>/dev/null | cut -d. -f1)
        echo clang "libclang-rt-${version:-14}-dev"
        ;;
    docker) echo docker.io ;;
    libisal) echo libisal-dev ;;
    libssl) echo libssl-dev ;;
    promtool) echo prometheus ;;
    qemu-aarch64) echo qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross ;;
    redis-cli) echo redis-tools ;;
    *) echo "$1" ;;
    esac
}

broken=0
for tool in "$@"; do
    if works "$tool" >"$folder/output" 2>&1 </dev/null; then
        continue
    fi
    broken=1
    if [ "$only_packages" = 1 ]; then
        packages "$tool"
    elif command -v "$tool" >/dev/null 2>&1; then
        # The first line that speaks of an error tells more than the last: compilers end with a summary.
        why=$(grep -m 1 -iE 'error|cannot|not found|no such' "$folder/output" || tail -n 1 "$folder/output")
        echo "$tool is installed, but does not work ($why); Debian: apt install $(packages "$tool")"
    else
        echo "$tool is not installed; Debian: apt install $(packages "$tool")"
    fi
done
exit "$broken"

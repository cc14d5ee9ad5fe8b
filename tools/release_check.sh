#!/bin/sh
# usage: tools/release_check.sh WHEELS
#
# What a version has to be before a person publishes it: one number everywhere, a dated section in CHANGELOG.md, wheels in the folder
# WHEELS that install without a compiler and work, and those for aarch64 tried under qemu. The tests are `make test`.
set -eu
wheels=$1
version=$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
failed=0
fail() {
    echo "release_check: $*" >&2
    failed=1
}

python3 tools/set_version.py --check || fail "files have other versions: tools/set_version.py writes them"
grep -qE "^## \[$version\] - [0-9]{4}-[0-9]{2}-[0-9]{2}$" CHANGELOG.md || fail "CHANGELOG.md has no section '## [$version] - YEAR-MONTH-DAY'"
[ -z "$(git status --porcelain)" ] || fail "the tree has changes that are not committed"

for processor in x86_64 aarch64; do
    set -- "$wheels"/skymemory-"$version"-cp311-abi3-manylinux_*_"$processor".whl
    if [ ! -e "$1" ]; then
        fail "$wheels has no wheel of $version for $processor: make wheel"
    elif [ "$processor" = "$(uname -m)" ]; then
        tools/try_wheel.sh "$1" || fail "$1 does not work here"
    elif why=$(tools/tool_works.sh "qemu-$processor"); then
        folder=$(mktemp -d)
        python3 -m zipfile -e "$1" "$folder"
        chmod +x "$folder/skymemory/_native/skysat"
        # A satellite that starts says its version, and ends with its standard input.
        "qemu-$processor" -L "/usr/$processor-linux-gnu" "$folder/skymemory/_native/skysat" --plane 1 --slot 1 --planes 3 --slots 3 \
            --port "$(shuf -i 10000-30000 -n 1)" --until-stdin-ends </dev/null >"$folder/said" 2>&1 ||
            fail "$1: the satellite program ended: $(tail -n 1 "$folder/said")"
        grep -q "Version $version" "$folder/said" || fail "$1: the satellite program does not say that it is $version"
        rm -rf "$folder"
    else
        fail "$1 was not tried: $why"
    fi
done
[ "$failed" = 0 ] && echo "release_check: $version may be published; docs/releasing.md says how"
exit "$failed"

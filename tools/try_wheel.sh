#!/bin/sh
# usage: tools/try_wheel.sh WHEEL [PYTHON]
#
# Install a wheel as a person does, into an environment of its own, and use it: a constellation, a value there and back, its end.
# Nothing is compiled: pip may take wheels only. Run it on another system, or in a chroot of one, to see that the wheel works there.
set -eu
wheel=$(realpath "$1")
python=${2:-python3}
folder=$(mktemp -d)
export SKYMEM_STATE="$folder/state"
ends() {
    [ ! -x "$folder/venv/bin/skymem" ] || "$folder/venv/bin/skymem" down >/dev/null 2>&1 || true
    rm -rf "$folder"
}
trap ends EXIT
trap 'exit 130' INT TERM

"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: "$wheel"
skymem="$folder/venv/bin/skymem"
cd "$folder"
"$skymem" --version
port=$("$folder/venv/bin/python" -c 'import random; print(random.randrange(10000, 30000))')
printf '[network]\nport = %s\n' "$port" >mine.toml
"$skymem" up --constellation mine.toml
head -c 100000 /dev/urandom >value
"$skymem" put value value
"$skymem" get value back
cmp value back
"$skymem" keys new keys >/dev/null
"$skymem" down
printf '[network]\nport = %s\n[security]\nkeyring = "keys/mission.json"\n' "$port" >mine.toml
"$skymem" up --constellation mine.toml
"$skymem" put value value
"$skymem" get value again
cmp value again
"$skymem" status | grep -E '^secured: '
"$skymem" down
echo "try_wheel: $(basename "$wheel") works on $(. /etc/os-release && echo "$PRETTY_NAME") with $("$python" --version)"

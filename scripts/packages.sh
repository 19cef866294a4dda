#!/bin/sh
# scripts/packages.sh build|test - installs the missing Debian or Ubuntu packages.
#
# Says what it will install before it does. With everything in place it does
# nothing and needs no root; without root and with something missing it prints
# the one command to run.
set -eu

build="gcc g++ cmake ninja-build pkg-config libopenbabel-dev libsqlite3-dev libyaml-dev libjansson-dev zlib1g-dev"
test="$build ccache libcmocka-dev libopenblas0 libxgboost0 sqlite3 python3 valgrind clang clang-format clang-tidy openmpi-bin libopenmpi-dev slurm-wlm munge iproute2 sshfs openssh-sftp-server chromium fonts-dejavu-core groovy autodock-vina openbabel python3-rdkit"
case "${1:-build}" in
    build) wanted=$build ;;
    test)  wanted=$test ;;
    *) echo "usage: $0 build|test" >&2; exit 2 ;;
esac

have() { dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q '^install ok installed'; }

# A tool that is already there counts, wherever it came from.
present() {
    case $1 in
        gcc|g++|cmake|ccache|python3|sqlite3|valgrind|clang|clang-format|clang-tidy) command -v "$1" >/dev/null 2>&1 || have "$1" ;;
        ninja-build) command -v ninja >/dev/null 2>&1 ;;
        pkg-config) command -v pkg-config >/dev/null 2>&1 ;;
        libopenbabel-dev) pkg-config --exists openbabel-3 2>/dev/null ;;
        libsqlite3-dev) pkg-config --exists sqlite3 2>/dev/null ;;
        libyaml-dev) pkg-config --exists yaml-0.1 2>/dev/null ;;
        libjansson-dev) pkg-config --exists jansson 2>/dev/null ;;
        zlib1g-dev) pkg-config --exists zlib 2>/dev/null ;;
        libcmocka-dev) pkg-config --exists cmocka 2>/dev/null ;;
        *) have "$1" ;;
    esac
}

missing=""
for p in $wanted; do
    present "$p" || missing="$missing $p"
done
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null 2>&1; then
    echo "These packages are missing (Debian names):$missing" >&2
    echo "Install them with your system's package manager and run this again." >&2
    exit 1
fi
as_root=""
if [ "$(id -u)" != 0 ]; then
    if command -v sudo >/dev/null 2>&1; then
        as_root="sudo"
    else
        echo "Missing packages; as root, run:" >&2
        echo "  apt-get update && apt-get install -y --no-install-recommends$missing" >&2
        exit 1
    fi
fi
echo "Installing with apt:$missing"
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get -o DPkg::Lock::Timeout=300 update -qq
# shellcheck disable=SC2086
for p in $missing; do # a name that this release does not know is left out
    if apt-cache show "$p" >/dev/null 2>&1; then known="${known:-} $p"; fi
done
# shellcheck disable=SC2086
$as_root apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends ${known:-} >/dev/null

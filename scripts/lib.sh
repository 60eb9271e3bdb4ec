# Shared by the scripts of this folder: saying things, installing what is missing, building.
# shellcheck shell=bash
#
# Sourced after `set -euo pipefail`. Nothing here runs by itself but for the two lines that
# find the clone.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build

# The packages that build the gateway and the example server.
# shellcheck disable=SC2034 # used by the scripts that source this file
build_packages=(build-essential meson ninja-build pkg-config libh2o-evloop-dev libyaml-dev
    libcurl4-openssl-dev libsqlite3-dev libpq-dev libjansson-dev libssl-dev libcjose-dev zlib1g-dev)

say() {
    printf '== %s\n' "$*" >&2
}

fail() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# Runs a command as root, with sudo when we are not.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

missing_packages() {
    local package
    for package in "$@"; do
        # shellcheck disable=SC2016 # ${Status} is dpkg's
        [ "$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null)" = 'install ok installed' ] ||
            printf '%s\n' "$package"
    done
}

# Installs those of the named Debian packages that are missing; says nothing when none is.
install_packages() {
    [ -z "${TASKGATE_SKIP_INSTALL:-}" ] || return 0
    if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
        fail "this system has no apt-get, so install what Debian calls $* and set TASKGATE_SKIP_INSTALL=1"
    fi
    local missing
    mapfile -t missing < <(missing_packages "$@")
    [ "${#missing[@]}" -gt 0 ] || return 0

    say "installing ${#missing[@]} Debian packages: ${missing[*]}"
    if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
        fail "packages are missing and there is no sudo; as root run: apt-get install ${missing[*]}"
    fi
    local quiet=(-q -o Dpkg::Use-Pty=0 -o Acquire::Retries=3)
    as_root apt-get "${quiet[@]}" update >&2 ||
        fail "apt-get update failed; look at the network and /etc/apt, then run this again"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get "${quiet[@]}" install -y \
        --no-install-recommends "${missing[@]}" >&2 ||
        fail "apt-get could not install ${missing[*]}; see its message above, then run this again"
}

# Makes a folder that we can write to.
own_folder() {
    mkdir -p "$1" 2>/dev/null || true
    [ -w "$1" ] ||
        fail "cannot write to $1 (was it made by another user?); remove it, or give it to yourself: sudo chown -R $(id -un) $1"
}

# Configures a build folder once: configure_in FOLDER [MESON OPTION…]
configure_in() {
    local folder=$1
    shift
    own_folder "$folder"
    [ ! -f "$folder/build.ninja" ] || return 0
    say "configuring ${folder#"$root"/}"
    meson setup "$folder" "$root" "$@" >"$folder/setup.log" 2>&1 || {
        tail -n 20 "$folder/setup.log" >&2
        printf '%s\n' "meson could not configure $folder; its message is above" >&2
        return 1
    }
}

# one_at_a_time FOLDER COMMAND…: of two that would change a folder at once, one waits.
one_at_a_time() {
    own_folder "$1"
    (
        flock 9
        "${@:2}"
    ) 9<"$1"
}

configure_and_build() {
    local folder=$1
    configure_in "$@" || return 1
    say "building ${folder#"$root"/}"
    ninja --quiet -C "$folder" >&2 || {
        printf '%s\n' "the build in $folder failed; the compiler's message is above" >&2
        return 1
    }
}

# And brings it up to date: build_in FOLDER [MESON OPTION…]
build_in() {
    one_at_a_time "$1" configure_and_build "$@"
}

# The programs for a look and for the tests: with the symbols that a stack trace needs, without the unit tests, and
# optimised by what costs little, because somebody waits for the build; packages, the image and the benchmarks take all.
# Not by ccache, which Meson takes by itself: a first build would pay for it.
build_release() {
    CC=${CC:-cc} build_in "$build" -Dbuildtype=debugoptimized -Doptimization=1 -Dc_args=-g1 -Dtests=false
}

# Builds the benchmarks' programs, optimised as deploy/Dockerfile does.
build_bench() {
    build_in "$root/build-bench" -Dbuildtype=release -Db_lto=true -Dtests=false -Dbench=true
}

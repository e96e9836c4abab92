#!/usr/bin/env bash
# setup.sh [group...] - installs the Debian packages of these groups that are missing; silent when
# none are. Groups: build test bench lint; none named means build.
set -euo pipefail

# The table of packages: Debian 12's names. One group per need, so that building asks for no test
# library and testing for no rival to measure against.
packages_of() {
    case $1 in
    build) echo cmake ninja-build gcc libc6-dev pkg-config libuv1-dev liblmdb-dev \
        libssl-dev libnghttp2-dev node-llhttp libwslay-dev libisal-dev libyaml-dev libcurl4-openssl-dev \
        libprotobuf-c-dev protobuf-c-compiler python3 ;;
    test) echo libcmocka-dev zlib1g-dev clang-14 libclang-rt-14-dev llvm-14 nghttp2-client openssl \
        curl python3-venv iproute2 etcd-server ;;
    bench) echo g++ libjansson-dev libsimdjson-dev libsqlite3-dev openssl ;;
    lint) echo clang-tidy-14 clang-format-14 cppcheck ;;
    *)
        echo "setup: no group '$1'; groups are build, test, bench, lint" >&2
        return 2
        ;;
    esac
}

missing_of() {
    local installed package
    installed=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "$@" 2>/dev/null |
        sed -n 's/ installed$//p' || true)
    for package in "$@"; do
        grep -qxF -- "$package" <<<"$installed" || echo "$package"
    done
}

as_root=()
become_root() {
    if [ "$(id -u)" -eq 0 ]; then
        return 0
    fi
    command -v sudo >/dev/null || return 1
    # Without a terminal nobody can type a password: sudo must answer at once.
    if [ -t 0 ]; then as_root=(sudo); else as_root=(sudo -n); fi
    "${as_root[@]}" true 2>/dev/null
}

apt() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get -qq -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@" </dev/null
}

main() {
    local group wanted=() missing=() names
    for group in "${@:-build}"; do
        names=$(packages_of "$group")
        read -ra names <<<"$names"
        wanted+=("${names[@]}")
    done
    if ! command -v dpkg-query >/dev/null; then
        echo "setup: not a Debian system; needed are the equivalents of: ${wanted[*]}" >&2
        return 0
    fi
    mapfile -t missing < <(missing_of "${wanted[@]}")
    if [ ${#missing[@]} -eq 0 ]; then
        return 0
    fi
    if ! become_root; then
        echo "setup: these packages are missing and this user may not install them. As root, run:" >&2
        echo "  apt-get update && apt-get install --no-install-recommends ${missing[*]}" >&2
        return 1
    fi
    echo "setup: installing ${missing[*]}"
    apt update || echo "setup: apt-get update failed; trying with the lists at hand" >&2
    if ! apt install -y --no-install-recommends "${missing[@]}" >/dev/null; then
        echo "setup: could not install ${missing[*]}; see apt-get's message above" >&2
        return 1
    fi
}

main "$@"

# lib.sh - what the scripts beside it share. Source it first: it goes to the top of the repository.
# shellcheck shell=bash
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

export LC_ALL=C # the tools' own words are parsed below, and test output may hold any bytes

say() { echo "$*"; }
complain() { echo "$*" >&2; }
jobs_at_once() { nproc 2>/dev/null || echo 2; }

# ccache when it is there and can write its cache; nothing otherwise.
launcher() {
    local cache
    if cache=$(ccache --get-config cache_dir 2>/dev/null) &&
        mkdir -p "$cache/tmp" 2>/dev/null && [ -w "$cache/tmp" ]; then
        echo ccache
    fi
}

# Runs a command with the address space laid out the same each time, where that is permitted: the
# sanitizers of gcc 12 and clang 14 fail at start, now and then, on kernels that shuffle it more
# than they expect (vm.mmap_rnd_bits above 28).
steady() {
    if setarch -R true 2>/dev/null; then setarch -R "$@"; else "$@"; fi
}

# configure <preset> [cmake arguments]: speaks only when it fails.
configure() {
    local preset=$1 log cache
    log=$(mktemp)
    cache=$(launcher)
    shift
    if ! cmake --preset "$preset" -DCMAKE_C_COMPILER_LAUNCHER:STRING="$cache" \
        -DCMAKE_CXX_COMPILER_LAUNCHER:STRING="$cache" "$@" >"$log" 2>&1 </dev/null; then
        cat "$log" >&2
        rm -f "$log"
        complain "configure: preset $preset failed, see above"
        return 1
    fi
    rm -f "$log"
}

# compile <build directory> [target...]: a progress line on a terminal, only problems elsewhere.
compile() {
    local dir=$1 quiet=() targets=()
    shift
    [ $# -eq 0 ] || targets=(--target "$@")
    [ -t 1 ] || quiet=(-- --quiet)
    cmake --build "$dir" --parallel "$(jobs_at_once)" "${targets[@]}" "${quiet[@]}" </dev/null
}

# Those of the folders named that exist, one per line.
existing() {
    local folder
    for folder in "$@"; do
        if [ -d "$folder" ]; then echo "$folder"; fi
    done
}

# Every C and C++ source and header of ours, NUL between names.
sources() {
    local folders
    mapfile -t folders < <(existing src include tests bench examples)
    find "${folders[@]}" \( -name '*.[ch]' -o -name '*.cpp' -o -name '*.cc' \) -print0 | sort -z
}

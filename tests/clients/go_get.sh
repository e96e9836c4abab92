# go_get.sh - programs in Go that are tests, built once for each version of their source.
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154  # lib.sh and the tests know these names
kube_version=v0.36.4

# go_program NAME MODULES...: builds tests/clients/NAME with client-go and further modules; its path is
# in $program.
go_program() {
    local name=$1
    shift
    program=$cache/$name-$kube_version-$(cat "$here/$name"/*.go | cksum | cut -d' ' -f1)
    modules=("k8s.io/client-go@$kube_version" "k8s.io/api@$kube_version"
        "k8s.io/apimachinery@$kube_version" "$@")
    eval "get_$name() { build_go $name; }"
    [ -x "$program" ] || rm -f "$cache/$name.done"
    get "$name"
}
build_go() {
    local dir=$cache/$1.src
    rm -rf "$dir"
    mkdir -p "$dir"
    cp "$here/$1"/*.go "$dir"
    printf 'module vigil/clients/%s\n\ngo 1.24\n' "$1" >"$dir/go.mod"
    go_in "$dir" get "${modules[@]}"
    go_in "$dir" build -ldflags='-s -w' -o "$program" .
}

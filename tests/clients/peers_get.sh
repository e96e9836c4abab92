# peers_get.sh - Kubernetes' own programs, built through the Go module proxy and kept in the cache.
# Sourced after lib.sh. The first time takes minutes: for the long round only.
# shellcheck shell=bash
peers_version=1.36.4
peers=$cache/peers-$peers_version

# peers_module DIRECTORY: a module there that can build them. Kubernetes' modules in the staging folder
# are published apart, as v0.<minor>.<patch>.
peers_module() {
    local dir=$1 mod name replaces=()
    rm -rf "$dir" && mkdir -p "$dir" "$peers"
    printf 'module vigil/clients/peers\n\ngo 1.26\n' >"$dir/go.mod"
    mod=$(go_in "$dir" mod download -json "k8s.io/kubernetes@v$peers_version" |
        sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
    for name in $(sed -n 's|^\t\(k8s.io/[a-z-]*\) => ./staging.*|\1|p' "$mod"); do
        replaces+=("-replace=$name=$name@v0${peers_version#1}")
    done
    go_in "$dir" mod edit "${replaces[@]}" "-require=k8s.io/kubernetes@v$peers_version"
    export CGO_ENABLED=0
}
# peers_build DIRECTORY NAME...: programs of Kubernetes, by that module.
peers_build() {
    local dir=$1 name
    shift
    for name in "$@"; do
        go_in "$dir" build -o "$peers/$name" \
            -ldflags="-s -w -X k8s.io/component-base/version.gitVersion=v$peers_version" \
            "k8s.io/kubernetes/cmd/$name" || return 1
    done
}

get_peers() {
    local dir=$cache/peers
    peers_module "$dir"
    go_in "$dir" mod edit -require=go.etcd.io/etcd/server/v3@v3.6.8
    go_in "$dir" build -ldflags='-s -w' -o "$peers/etcd" go.etcd.io/etcd/server/v3
    peers_build "$dir" kube-apiserver
}
get_control_plane() {
    local dir=$cache/control_plane
    peers_module "$dir"
    peers_build "$dir" kube-scheduler kube-controller-manager
}

# peers_have NAME PROGRAM: asks get for it, anew when the program is gone.
peers_have() {
    need_go
    [ -x "$peers/$2" ] || rm -f "$cache/$1.done"
    get "$1"
}

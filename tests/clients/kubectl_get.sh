# kubectl_get.sh - two kubectls: the one of Debian, unpacked and not installed, so that no other is
# disturbed, and a recent one, built from its published modules. Sourced after lib.sh.
# shellcheck shell=bash
kubectl_version=v0.36.4

get_kubectl_debian() {
    local dir=$cache/debian
    rm -rf "$dir"
    mkdir -p "$dir"
    cd "$dir"
    apt-get download kubernetes-client ||
        { apt-get update && apt-get download kubernetes-client; }
    dpkg -x kubernetes-client_*.deb .
    usr/bin/kubectl version --client
}

# The modules hold kubectl without its main(): that is all there is to add.
get_kubectl_recent() {
    local dir=$cache/kubectl-$kubectl_version
    rm -rf "$dir"
    mkdir -p "$dir"
    cd "$dir"
    printf 'module vigil/clients/kubectl\n\ngo 1.24\n' >go.mod
    cat >main.go <<'GO'
package main

import (
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
GO
    go_in "$dir" get "k8s.io/kubectl/pkg/cmd@$kubectl_version" \
        "k8s.io/component-base/cli@$kubectl_version"
    go_in "$dir" build -o kubectl \
        -ldflags="-s -w -X k8s.io/component-base/version.gitVersion=v1${kubectl_version#v0}" .
    ./kubectl version --client
}

# kubectl_of debian|recent: prints where it is.
kubectl_of() {
    case $1 in
    debian)
        command -v apt-get dpkg >/dev/null || skip "no apt-get: Debian's kubectl is Debian's"
        get kubectl_debian
        kubectl=$cache/debian/usr/bin/kubectl
        ;;
    recent)
        need_go
        get kubectl_recent
        kubectl=$cache/kubectl-$kubectl_version/kubectl
        ;;
    esac
}

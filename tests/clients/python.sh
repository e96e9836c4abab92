#!/usr/bin/env bash
# python.sh <vigild> <cache> - the Python client, in an environment of its own; objects of every kind there
# and back.
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || skip "no python3"
version=36.0.3
get_python() {
    rm -rf "$cache/python"
    python3 -m venv "$cache/python" &&
        HOME=$home "$cache/python/bin/pip" install "kubernetes==$version"
}
python3 -c 'import venv, ensurepip' 2>/dev/null || skip "python3 without venv (Debian: python3-venv)"
get python
start_server
ok "$cache/python/bin/python" "$here/client.py" "$KUBECONFIG"
cat out
python3 "$here/examples.py" >examples
ok "$cache/python/bin/python" "$here/roundtrip.py" "$KUBECONFIG" examples
cat out
stop_server

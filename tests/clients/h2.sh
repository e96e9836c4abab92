#!/usr/bin/env bash
# h2.sh <vigild> <cache> - nghttp2's own clients: many requests on one connection.
. "$(dirname "$0")/lib.sh"
command -v nghttp h2load >/dev/null || skip "no nghttp and h2load (Debian: nghttp2-client)"
printf 'let-me-in,admin,1,"system:masters"\n' >tokens
chmod 600 tokens
start_server --token-auth-file "$work/tokens"
auth='authorization: Bearer let-me-in'

echo "-- nghttp: several streams at once"
ok nghttp --no-verify-peer -v -H "$auth" "$url/api/v1/namespaces" "$url/version" "$url/healthz"
out_has 'The negotiated protocol: h2'
out_has NamespaceList
out_has gitVersion

echo "-- h2load: 2,000 lists over 4 connections, 50 at a time"
ok h2load -n 2000 -c 4 -m 50 -H "$auth" "$url/api/v1/namespaces"
out_has '2000 succeeded, 0 failed, 0 errored, 0 timeout'
out_has '2000 2xx'
echo "-- and over HTTP/1.1"
ok h2load --h1 -n 500 -c 4 -m 1 -H "$auth" "$url/api/v1/namespaces"
out_has '500 2xx'

stop_server
echo "nghttp2's clients are served"

#!/usr/bin/env bash
# demo.sh <vigil-store> - the demo passes twice in a row, leaves a store that is whole, and touches
# nothing that is not its own.
. "$(dirname "$0")/lib.sh"

check_lines() {
    local name
    for name in open write watch history conflict 'kill -9' backup; do
        grep -qE "^  $name +[a-z0-9]" out || fail "the demo does not show: $name"
    done
    out_has 'All of it was checked'
    [ "$(wc -l <out)" -le 20 ] || fail "the demo talks too much"
    if grep -q $'\033' out; then fail "colours go to a file"; fi
}

ok demo
check_lines
[ -d vigil-store-demo/store ] || fail "the store is not where it should be"
mkdir build
ok demo
check_lines
ok demo
check_lines
[ -d build/vigil-store-demo/store ] || fail "the store is not under build"

# What it leaves can be used, as its last lines say.
store=build/vigil-store-demo/store
ok --dir $store check
ok --dir $store list --keys-only /registry/pods/demo/
[ "$(wc -l <out)" -gt 150 ] || fail "few objects are there"
sort -c out || fail "the list is not in order"
[ "$(uniq -d out | wc -l)" -eq 0 ] || fail "the list has keys twice"
ok --dir $store get --pretty /registry/pods/demo/web-0000007
out_has '    "name": "web-0000007",'
ok --dir $store watch --no-wait /registry/pods/killed/
ok --dir build/vigil-store-demo/restored check

# A directory that is not its own, or in use, stays as it is.
mkdir mine
echo precious >mine/letter
refused 1 'no demo made' demo --dir mine
[ "$(ls -A mine)" = letter ] || fail "the directory was touched"
mkfifo lines
"$bin" --dir $store watch >lines 2>/dev/null &
background+=($!)
exec 3<lines # stays open: the watch must not end by a closed pipe
read -r _ <&3
refused 6 'is in use by process' demo
{
    kill -KILL "${background[0]}"
    wait "${background[0]}"
} 2>/dev/null || true
background=()
exec 3<&-
ok --dir $store check # killed in the middle of writing its answer, and none the worse

# Without syncs it says so. Colours are for terminals, unless NO_COLOR forbids them.
ok demo --dir fast --unsafe-no-fsync
out_has 'NOT synced'
if command -v script >/dev/null; then
    script -qec "TERM=xterm NO_COLOR= '$bin' demo --dir fast" /dev/null </dev/null >out
    grep -q $'\033\[1;32m' out || fail "no colours on a terminal"
    script -qec "TERM=xterm NO_COLOR=1 '$bin' demo --dir fast" /dev/null </dev/null >out
    if grep -q $'\033' out; then fail "NO_COLOR is not honoured"; fi
fi
echo "demo: all as it should be"

#!/usr/bin/env bash
# commands.sh <vigil-store> - every command does what it says.
. "$(dirname "$0")/lib.sh"
tab=$'\t'

# put makes the store, private to its owner, and counts revisions from 2.
ok put /a one
out_is '/a: created at revision 2'
[ "$(stat -c %a vigil-store-data)" = 700 ] || fail "the directory is not 0700"
[ -z "$(find vigil-store-data -type f ! -perm 600)" ] || fail "a file is not 0600"
ok put /a two
out_is '/a: replaced at revision 3, was at 2'
ok put /b/1 --output json '{"n": [1, 2], "s": "x"}'
out_is '{"key":"/b/1","revision":4,"previousRevision":0}'
ok put -- -dash value
ok get -- -dash
out_is value
ok del -- -dash
out_is '-dash: deleted at revision 6, was at 5'

# get: now, then, laid out, as JSON.
ok get /a
out_is two
ok get --at 2 /a
out_is one
ok get --pretty /b/1
out_is '{
  "n": [
    1,
    2
  ],
  "s": "x"
}'
ok get /b/1 --output=json
out_has '{"key":"/b/1","revision":4,"createRevision":4,"version":1,"modified":"20'
out_has '"value":"{\"n\": [1, 2], \"s\": \"x\"}"}'
ok get /b/1 --output=json --pretty
out_has '  "value": {'

# list: order, prefix, limit, keys, an old revision, JSON.
ok put /b/2 z
ok list
out_is "/a${tab}3${tab}two
/b/1${tab}4${tab}{\"n\": [1, 2], \"s\": \"x\"}
/b/2${tab}7${tab}z"
ok list /b/ --keys-only
out_is '/b/1
/b/2'
ok list --limit 2 --keys-only
out_lines 2
grep -q 'there are more' err || fail "the limit is not mentioned"
ok list --limit 3
if grep -q 'there are more' err; then fail "there are not more"; fi
ok list --at 2
out_is "/a${tab}2${tab}one"
ok list /none/
out_lines 0
ok list --output json --keys-only --limit 1
out_is '{"items":[{"key":"/a","revision":3,"createRevision":2,"version":2}],"revision":7,"more":true}'
ok list --output json
"$bin" put /json - <out >/dev/null # what it prints is JSON: the store's own parser lays it out
ok get --pretty /json
[ "$(head -n 1 out)" = '{' ] || fail "the list is not JSON"
ok del /json

# Compare and swap.
ok put --expect 0 /cas new
ok put --expect 10 /cas newer
ok del --expect 11 /cas
out_is '/cas: deleted at revision 12, was at 11'

# watch: the whole history, a prefix, from a revision, some of it, as JSON.
ok watch --no-wait
[ "$(cut -f 1,2,3 out | head -n 3)" = "2${tab}create${tab}/a
3${tab}update${tab}/a
4${tab}create${tab}/b/1" ] || fail "the history is wrong"
out_lines 11
ok watch --no-wait --from 10 /cas
out_is "10${tab}create${tab}/cas${tab}new
11${tab}update${tab}/cas${tab}newer
12${tab}delete${tab}/cas"
ok watch --count 2 --from 3
out_lines 2
ok watch --no-wait /none/
out_lines 0
ok watch --no-wait --from 13
out_lines 0
ok watch --output json --pretty --count 1 --from 11
out_lines 1
out_has '{"type":"update","sub":0,"key":"/cas","revision":11,'
out_has '"value":"newer","previousRevision":10}'

# A time to live: the watch sees the end of it, and so does whoever opens the store later.
ok put --ttl 3s /short lived
ok watch --from 14 --count 1 /short
out_is "14${tab}delete${tab}/short"
ok put --ttl 1ms /shorter lived
run get /shorter
[ "$status" -eq 3 ] || fail "it lives on"
ok put --ttl 1h30m /long lived
ok get /long
out_is lived
ok get --output json /long
out_has '"expires":"20'

# Bytes of every kind: back exactly; escaped where lines are printed; safe on a terminal.
printf 'a\0\033[31m\377\\\t\n\302\233\342\200\256end' >bytes
"$bin" put /bytes - <bytes >/dev/null
ok get /bytes
cmp -s bytes out || fail "the bytes came back changed"
ok get --raw /bytes
cmp -s bytes out || fail "the bytes came back changed"
ok list /bytes
out_has 'a\x00\x1b[31m\xff\\\t\n\xc2\x9b\xe2\x80\xaeend'
ok get --output json /bytes
out_has '"valueBase64":"'"$(base64 -w 0 bytes)"'"'
ok put /text "$(printf 'x\302\233y\177')"
ok get --output json /text
out_has '"value":"x\u009by\u007f"'
ok put "$(printf '/k\377')" v
ok list "$(printf '/k\377')" --output json
out_has '"keyBase64":"L2v/"'
if command -v script >/dev/null; then
    script -qec "'$bin' get /bytes" /dev/null </dev/null >out
    if grep -q $'\033' out; then fail "a terminal gets the escape character"; fi
    out_has '\x1b[31m\xff'
fi
: | "$bin" put /empty - >/dev/null
ok get /empty
[ ! -s out ] || fail "the empty value is not empty"

# stat and check agree with what was done.
ok list --keys-only
keys=$(wc -l <out)
ok stat
[ "$(fact keys)" = "$keys" ] || fail "stat counts other keys"
rev=$(fact revision)
ok check
[ "$(fact keys)" = "$keys" ] || fail "check counts other keys"
[ "$(fact result)" = whole ] || fail "not whole"
ok check --output json
out_has "\"revision\":$rev,\"result\":\"whole\"}"
ok stat --output json
out_has "\"keys\":$keys,\"revision\":$rev,"

# A backup holds everything; the restored store goes on later, or where it was.
ok backup copy
[ "$(fact revision)" = "$rev" ] || fail "the backup has another revision"
[ "$(stat -c %a copy)" = 600 ] || fail "the backup is not 0600"
ok list
cp out before
ok restore copy again
[ "$(fact revision)" = $((rev + 1000000000)) ] || fail "the restored store has another revision"
ok list --dir again
cmp -s before out || fail "the restored store differs"
ok check --dir again
ok restore copy exact --bump 0 --output json
out_has "\"revision\":$rev,"
ok watch --no-wait --dir exact --count 1
out_is "2${tab}create${tab}/a${tab}one"

# Compaction: what is there stays, history before it goes, and it stays gone.
ok compact 11
out_is "history up to revision 11 is forgotten; the store is at $rev"
ok list
cmp -s before out || fail "compaction changed what is there"
ok stat
[ "$(fact 'compacted up to')" = 11 ] || fail "stat does not show the compaction"
ok get --at 11 /a
ok watch --no-wait --count 1
out_is "12${tab}delete${tab}/cas"
ok check
ok compact "$rev" --output json
out_is "{\"compactedRevision\":$rev,\"revision\":$rev}"
ok check
[ "$(fact 'changes in history')" = 0 ] || fail "history is left"

# Where the store is: --dir, before or after the command; then the environment.
ok --dir other put k v
VIGIL_STORE_DIR=other ok list --keys-only
out_is k
ok --dir fast --unsafe-no-fsync put k v
ok --dir fast get k
out_is v
ok --version
grep -qE '^vigil-store [0-9]+\.[0-9]+\.[0-9]+$' out || fail "no version"
echo "commands: all as they should be"

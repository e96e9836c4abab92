#!/usr/bin/env bash
# errors.sh <vigil-store> - what goes wrong gets its status, says what to do next, and changes
# nothing.
. "$(dirname "$0")/lib.sh"

# The command line.
refused 2 'say what to do'
refused 2 "there is no command 'fetch'" fetch
refused 2 "there is no option '--colour'" list --colour
refused 2 '--dir needs a value' list --dir
refused 2 '--dir is empty' list --dir ''
refused 2 'write: vigil-store put KEY VALUE' put k
refused 2 'and nothing more' get a b
refused 2 'list does not take --expect' list --expect 1
refused 2 'restore does not take --dir' restore --dir x a b
refused 2 'text or json' list --output yaml
refused 2 '--help' list --limit
for bad in '' 0 -1 1x 1.5 0x10 ' 1' 9223372036854775808 99999999999999999999; do
    refused 2 'is not a number here' list --at "$bad"
    refused 2 'is not a number here' compact -- "$bad"
done
for bad in '' 5 0s -5s 5x s 1.5s 5s5 36501d 99999999999999999999s; do
    refused 2 'is not a duration' put k v --ttl "$bad"
done

# No store: nothing is made by looking.
for command in 'get k' 'del k' list watch 'compact 2' 'backup f' check stat; do
    # shellcheck disable=SC2086 # the words are the arguments
    refused 3 'there is no store in ./no' --dir ./no $command
done
mkdir empty
refused 3 'there is no store in empty' --dir empty list
[ ! -e no ] && [ -z "$(ls -A empty)" ] || fail "something was made"
refused 3 'cannot make the directory' --dir no/where put k v

# Keys and values that do not fit; a store is not made for them either.
long=$(printf '%0481d' 0)
refused 2 'the key has 0 bytes' put '' v
refused 2 'the key has 481 bytes' put "$long" v
head -c $(((8 << 20) + 1)) /dev/zero >large
status=0
"$bin" put k - <large >out 2>err || status=$?
[ "$status" -eq 2 ] || fail "a value of 8 MiB and a byte is taken"
[ ! -e vigil-store-data ] || fail "a store was made"
ok put "${long%0}" v
ok get "${long%0}"
refused 2 'the key has 481 bytes' get "$long"
refused 2 'the prefix has 481 bytes' list "$long"
head -c $((8 << 20)) /dev/zero | "$bin" put large - >out
ok get large
[ "$(wc -c <out)" -eq $((8 << 20)) ] || fail "8 MiB did not come back"
ok del large

# Conflicts and absent keys.
ok put k one
refused 4 'key k is at revision 5, the transaction expects 4' put k two --expect 4
refused 4 'at revision 5' put k two --expect 0
refused 4 'at revision 5' del k --expect 4
refused 4 'at revision 0' put absent v --expect 5
refused 3 "there is no key 'absent'; nothing was changed" del absent
refused 3 "there is no key 'absent' at revision 5" get absent
refused 3 "there is no key 'k' at revision 4" get k --at 4
ok get k
[ "$(cat out)" = one ] || fail "a refused write changed the key"

# Messages do not carry what a key may carry to the terminal.
refused 3 'there is no key '"'"'\x1b[31m' get "$(printf '\033[31m')"

# Revisions that are not there any more, or not yet.
ok put k two
ok compact 5
refused 5 'revision 4 has been compacted; the oldest that can be read is 5' get k --at 4
refused 5 'revision 4 has been compacted' list --at 4
refused 5 'gone already' compact 5
refused 5 'revision 99 is not there yet; the newest is 6' compact 99
refused 5 'revision 99 is not there yet; the newest is 6' get k --at 99
refused 5 'revision 99 is not there yet; the newest is 6' watch --from 99
refused 5 'watch --from 6' watch --from 5

# Somebody else has the store: each command says who. The watch ends cleanly by a signal.
mkfifo lines
"$bin" watch >lines 2>watch.err &
background+=($!)
read -r line <lines || fail "the watch prints nothing"
[ "${line%%$'\t'*}" = 6 ] || fail "the watch begins with: $line"
for command in 'get k' 'put k v' 'del k' list watch 'compact 6' 'backup f' check stat; do
    # shellcheck disable=SC2086 # the words are the arguments
    refused 6 "is in use by process ${background[0]}" $command
done
kill -INT "${background[0]}"
wait "${background[0]}" || fail "SIGINT does not end a watch with status 0"
[ ! -s watch.err ] || fail "the watch complains: $(cat watch.err)"
background=()
"$bin" watch >lines 2>watch.err &
background+=($!)
read -r line <lines
kill -TERM "${background[0]}"
wait "${background[0]}" || fail "SIGTERM does not end a watch with status 0"
background=()

# Two processes that write at once: one waits for the other, and nothing is lost.
write_some() {
    local i
    for i in 1 2 3 4 5 6 7 8; do
        until "$bin" --dir shared put "$1/$i" v >/dev/null 2>"$1.err"; do
            grep -qF 'is in use by process' "$1.err" || return 1
        done
    done
}
write_some x &
background+=($!)
write_some y || fail "y: $(cat y.err)"
wait "${background[0]}" || fail "x: $(cat x.err)"
background=()
ok --dir shared list --keys-only
[ "$(wc -l <out)" -eq 16 ] || fail "writes are gone"
ok --dir shared check

# A directory that is not a store is left as it is.
mkdir foreign
echo precious >foreign/letter
for command in 'get k' 'put k v' check; do
    # shellcheck disable=SC2086 # the words are the arguments
    refused 7 'letter, which is not vigil' --dir foreign $command
done
refused 7 'letter, which is not vigil' restore vigil-store-data/data.mdb foreign
[ "$(ls -A foreign)" = letter ] || fail "the foreign directory was touched"
mkdir garbage
head -c 8192 /dev/urandom >garbage/data.mdb
cksum garbage/data.mdb >sum
refused 7 'is not a vigil store' --dir garbage put k v
[ "$(cksum garbage/data.mdb)" = "$(cat sum)" ] || fail "the garbage was touched"
refused 1 '' --dir large list
refused 7 'is not a vigil store' restore foreign/letter new
[ ! -e new ] || [ -z "$(ls -A new)" ] || fail "a store was made from a letter"

# Damage is found: by check, and by whoever reads the record; the others can still be read.
ok --dir hurt put a fine
ok --dir hurt put b rottenvalue
ok --dir hurt check
# The newest copy of the record's page: it may lie in the file more than once.
grep -abo rottenvalue hurt/data.mdb | cut -d : -f 1 | while read -r at; do
    printf R | dd of=hurt/data.mdb bs=1 seek="$at" conv=notrunc status=none
done
refused 7 'restore from a backup' --dir hurt check
refused 7 'brings a backup back' --dir hurt get b
ok --dir hurt get a
ok --dir hurt backup hurt.copy
refused 7 'is damaged' restore hurt.copy healed
mkdir half
cp vigil-store-data/wal-0 half/
refused 7 'write-ahead log but no data.mdb' --dir half list

# Files: a backup replaces nothing, a restore overwrites nothing.
echo precious >file
refused 1 'already exists' backup file
[ "$(cat file)" = precious ] || fail "the file was replaced"
refused 3 'cannot write the backup' backup no/where/file
ok backup copy
refused 1 'holds a store already' restore copy shared
refused 3 'cannot open nothing' restore nothing new
if [ -w /dev/full ]; then
    status=0
    "$bin" list >/dev/full 2>err || status=$?
    [ "$status" -eq 1 ] && grep -q 'cannot write the answer' err || fail "a full disk is not noticed"
fi
echo "errors: all as they should be"

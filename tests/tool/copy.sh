#!/usr/bin/env bash
# copy.sh <vigil-copy> <source directory> <vigil-store> <vigil> - backup, restore and migrate between
# directories: what comes back, what is refused, what an interruption leaves.
store=$(realpath "$3")
vigil=$(realpath "$4")
man_page=$(realpath "$2")/docs/man/vigil-copy.1
. "$(dirname "$0")/lib.sh"

put() { "$store" --dir "$1/store" --unsafe-no-fsync put "${@:2}" >/dev/null; }
list_of() { "$store" --dir "$1/store" list | cut -f 1,3; }

mkdir data
for i in $(seq 30); do put data "/registry/things/$i" "value $i"; done
put data /registry/things/7 "another value"
"$store" --dir data/store del /registry/things/8 >/dev/null
put data --ttl 1h /registry/events/long lives
put data --ttl 1ms /registry/events/short lived
list_of data >before
[ "$(wc -l <before)" -eq 30 ] || fail "the store is not as it should be"

# A backup is private, says what it has, and is not replaced.
ok backup data copy --output json
out_has '"keys":30,"keysWithTTL":1,'
digest=$(sed 's/.*"sha256":"\([0-9a-f]*\)".*/\1/' out)
[ "$(stat -c %a copy)" = 600 ] || fail "the backup is not 0600"
refused 1 'copy exists already' backup data copy
[ ! -e copy.partial ] || fail "something is left"

# It comes back whole, later; so does what is migrated.
ok restore copy again
out_has "$digest"
rev=$(fact 'target revision')
[ "$rev" -gt 1000000000 ] || fail "revisions would be given twice"
list_of again >after
cmp -s before after || fail "the restored store differs"
[ "$(stat -c %a again again/store | sort -u)" = 700 ] || fail "a directory is not 0700"
[ -z "$(find again -type f ! -perm 600)" ] || fail "a file is not 0600"
[ "$("$store" --dir again/store stat --output json | sed 's/.*"compactedRevision":\([0-9]*\).*/\1/')" -ge 1000000000 ] ||
    fail "an old revision is not refused"
"$store" --dir again/store get --output json /registry/events/long | grep -q '"expires":"20' || fail "it lives for ever"
"$store" --dir again/store check >/dev/null || fail "not whole"
ok migrate again moved
out_has "$digest"
list_of moved >after
cmp -s before after || fail "the migrated store differs"
ok restore --bump 5 copy near
[ "$(fact 'target revision')" -lt 1000 ] || fail "--bump is not heard"

# What vigil-store wrote is taken too.
"$store" --dir data/store backup embedded >/dev/null
ok restore embedded third
out_has "$digest"

# Refusals: what is in use, what is there, what is no backup, what is damaged; nothing is left behind.
refused 1 'has a store already' restore copy again
refused 1 'has a store already' migrate data again
refused 3 'there is no store in nowhere' backup nowhere x
refused 3 'cannot read the backup nowhere' restore nowhere new
refused 7 'is not a backup' restore before new
head -c 1000 copy >short
refused 7 'is damaged after' restore short new
[ ! -e new/store ] && [ ! -e new/store.copying ] || fail "something is left"
"$store" --dir data/store watch >watched 2>&1 & # it has the store when it has printed something
background+=($!)
for _ in $(seq 600); do
    [ -s watched ] && break
    sleep 0.1
done
refused 6 'in use' backup data x
kill "${background[0]}" && wait "${background[0]}" || true
refused 2 'write: vigil migrate FROM TO' migrate data
refused 2 'backup does not take --bump' backup --bump 1 data x
refused 2 "there is no command 'copy'" copy a b
refused 2 'there is no option' backup --nothing a b

# Killed at any moment: nothing that looks whole, and the next run does it.
for i in $(seq 5); do
    "$bin" migrate data killed >/dev/null 2>&1 &
    pid=$!
    sleep "0.0$i"
    kill -KILL $pid 2>/dev/null || true
    wait $pid 2>/dev/null || true
    if [ -e killed/store ]; then
        list_of killed >after
        cmp -s before after || fail "it has its name and is not whole"
        rm -rf killed
    fi
done
rm -rf killed/store
ok migrate data killed
list_of killed >after
cmp -s before after || fail "the copy that was killed and run again differs"
mkdir half
cp -a data/store half/store.copying
: >half/store.copying/reserve # which a store has while it is open
ok migrate data half
[ ! -e half/store.copying ] || fail "what was interrupted is left"

# vigil hands it on.
PATH=$(dirname "$bin"):$PATH "$vigil" backup data by-vigil >out || fail "vigil backup"
PATH=$(dirname "$bin"):$PATH "$vigil" help migrate >out
out_has 'vigil migrate FROM TO'
cp "$(realpath "$vigil")" ./vigil && env -i PATH=/nowhere ./vigil backup data x >out 2>err && fail "without the program"
grep -q 'vigil-copy, which cannot be run' err || fail "no word about the program"

# On a terminal there is a line that moves; elsewhere there is none.
ok migrate data quiet
[ ! -s err ] || fail "progress without a terminal"
if command -v script >/dev/null; then
    script -qec "'$bin' migrate data shown" /dev/null </dev/null >out
    grep -q 'copying .*of 30 keys' out || fail "no progress on a terminal"
    script -qec "'$bin' migrate --quiet data silent" /dev/null </dev/null >out
    if grep -q 'copying' out; then fail "--quiet is not heard"; fi
fi

# --help and the manual agree.
ok --help
if awk 'length > 80' out | grep -q .; then fail "a line is longer than a terminal"; fi
sed 's/\\-/-/g' "$man_page" >manual
for option in $(grep -oE -- '--[a-z-]+' out | sort -u); do
    grep -qF -- "$option" manual || fail "the manual does not have $option"
done
if command -v groff >/dev/null; then
    groff -man -Tascii -ww "$man_page" 2>warnings >/dev/null
    [ ! -s warnings ] || fail "troff: $(head -n 3 warnings)"
fi
echo "copy: all as it should be"

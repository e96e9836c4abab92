#!/usr/bin/env bash
# lint.sh - everything a machine can say about the sources without running them. Each check prints
# its findings as file:line; all of them run before the answer.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

dir=build/lint

format_check() { sources | xargs -0 clang-format-14 --dry-run -Werror; }

# The sources that the build compiles, from its own record; generated ones are not ours to judge.
compiled_sources() {
    sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' $dir/compile_commands.json |
        grep -F "$PWD/" | grep -vF "$PWD/build/" | sort -u
}

# tidy [clang-tidy options]: over the sources named on stdin, one per line. clang-tidy counts what it
# found and left out on stderr: that is not a finding.
tidy() {
    tr '\n' '\0' | xargs -0 -r -n 1 -P "$(jobs_at_once)" clang-tidy-14 -p $dir --quiet "$@" 2> >(
        grep -vE '^([0-9]+ (warnings?|errors?)( and [0-9]+ errors?)? generated|.* treated as errors?$)' >&2
    )
}

tidy_check() {
    local tests='(_test\.c|/tests/.*)$' status=0
    compiled_sources | grep -vE "$tests" | tidy || status=1
    compiled_sources | grep -E "$tests" | tidy --extra-arg-before=-include \
        --extra-arg-before="$PWD/tools/tidy_cmocka.h" || status=1
    return $status
}

# Without the tests: cppcheck does not know that a failed assertion leaves them, and they pass NULL
# and worse on purpose. -U: it takes the cast in vg_steal for a syntax error and gives up on the file.
cppcheck_check() {
    sources | grep -zvE '(_test\.c|^tests/.*|\.h)$' | xargs -0 cppcheck --quiet --enable=warning,portability,performance --std=c11 --library=posix \
        --error-exitcode=1 --inline-suppr --suppressions-list=tools/cppcheck.supp \
        --template='{file}:{line}: {severity}: {message} [{id}]' \
        -D_GNU_SOURCE -DVG_DEBUG_CHECKS=1 -Uvg_steal -I src -I include -j "$(jobs_at_once)"
}

# Calls that cannot be told a limit or cannot report an error, and what to use in their place.
banned_check() {
    local name instead lines found=0
    while read -r name instead; do
        lines=$(sources | xargs -0 grep -HnE "(^|[^A-Za-z0-9_\"])${name} ?\\(" || true)
        if [ -n "$lines" ]; then
            sed "s|\$|   <- $name is banned: use $instead|" <<<"$lines"
            found=1
        fi
    done <<'TABLE'
strtok vg_slice functions or strtok_r
sprintf snprintf or vg_buf_printf
vsprintf vsnprintf
strcpy memcpy with a known length
strcat vg_buf_append
atoi strtol with its checks
atol strtol with its checks
gets fgets
TABLE
    [ $found -eq 0 ]
}

# A lower room never includes a higher one; server and client never include each other; the command
# line sees base, json, yaml and the public headers only. The build enforces this too: link lines decide what
# can be included. Here it takes no compiler and names the rule.
include_check() {
    sources | xargs -0 grep -HnE '^#include "[a-z]+/' | awk -F: '
        BEGIN {
            n = split("base json yaml object loop net " \
                      "server/storage server/tool server/cacher server/schema server/kinds server/fields server/jwt server/flow server/api server/http server/control server/main server/copy " \
                      "client/object client/store client/fifo client/workqueue " \
                      "client/transport client/reflector client/informer client/leader client/recorder cli cli/bench", order, " ")
            for (i = 1; i <= n; i++) rank[order[i]] = i
        }
        function room(path,  part) {
            split(path, part, "/")
            return (part[1] == "server" || part[1] == "client" || (part[1] == "cli" && part[2] == "bench")) ? \
                part[1] "/" part[2] : part[1]
        }
        function say(why) { print $1 ":" $2 ": " $3 "   <- " why; bad = 1 }
        $1 !~ /^src\// { next }
        {
            from = room(substr($1, 5))
            to = $3
            sub(/^#include "/, "", to)
            to = room(to)
            if (!(to in rank)) next
            if (from == "cli" && to !~ /^(base|json|yaml|cli)$/) say("cli sees base, json, yaml and include/vigil only")
            else if (from ~ /^(client|cli.bench)/ && to ~ /^server/) say(from " never includes server")
            else if (from ~ /^server/ && to ~ /^client/) say("server never includes client")
            else if (rank[to] > rank[from]) say(from " is below " to)
        }
        END { exit bad }'
}

shell_check() {
    if command -v shellcheck >/dev/null; then
        shellcheck -S warning -x -P tools tools/*.sh .ci/run
    fi
}

# docs/reference is what the public headers say, and they say who may call what and who owns it.
reference_check() { python3 tools/reference.py --check; }

# Said, not refused: a long function or file may have its reason, written at its top.
long_report() {
    sources | xargs -0 awk '
        FNR == 1 { if (lines > 600) print "note: " file " has " lines " lines"
                   file = FILENAME; start = 0 }
        { lines = FNR }
        /^\{/ { start = FNR; name = before }
        /^\}/ && start { if (FNR - start - 1 > 80)
                             print "note: " file ":" start ": " FNR - start - 1 " lines in " name
                         start = 0 }
        /^[a-zA-Z]/ { before = $0 }
        END { if (lines > 600) print "note: " file " has " lines " lines" }'
}

failed=()
check() {
    say "== $1"
    if ! "$2" 2>&1; then failed+=("$1"); fi
}

# A build directory of its own, with bench/ in it, so that dev is left as it is.
configure dev -B $dir -DVIGIL_BENCH=ON
# The header that a bench includes is made; without protobuf-c neither is there.
cmake --build $dir --target bench_schema_messages >/dev/null 2>&1 || true
cmake --build $dir --target vg_etcd_messages >/dev/null
check "banned calls" banned_check
check "include direction" include_check
check "shell scripts" shell_check
check "clang-format" format_check
check "reference" reference_check
check "cppcheck" cppcheck_check
check "clang-tidy" tidy_check
say "== long functions and files"
long_report
if [ ${#failed[@]} -gt 0 ]; then
    complain "lint: findings of $(IFS=,; echo "${failed[*]}"); make format mends the layout"
    exit 1
fi
say "lint: clean"

#!/usr/bin/env bash
# docs.sh <vigil-store> <source directory> - --help and the manual page name the same commands,
# options and exit statuses, and every one the program takes.
man_page=$(realpath "$2")/docs/man/vigil-store.1
. "$(dirname "$0")/lib.sh"

# The names of the entries that begin a section of --help.
section() { awk -v name="$1:" '$0 == name { on = 1; next } /^$/ { on = 0 } on && /^  [^ ]/ { print $1 }' out; }
# The paragraphs of the manual page's section, dashes unescaped.
man_section() { awk -v name=".SH $1" '/^\.SH/ { on = ($0 == name) } on' "$man_page" | sed 's/\\-/-/g'; }

ok --help
[ ! -s err ] || fail "--help complains"
if awk 'length > 80' out | grep -q .; then fail "a line is longer than a terminal"; fi
cp out help

commands=$(section commands)
[ "$(wc -w <<<"$commands")" -ge 11 ] || fail "commands are missing from --help"
for command in demo put get del list watch compact backup restore check repair stat; do
    grep -qxF "$command" <<<"$commands" || fail "--help does not have $command"
    man_section COMMANDS | grep -qE "^\.BI? $command( |\$)" || fail "the manual does not have $command"
done

options=$(section options)
for option in $options; do
    man_section OPTIONS | grep -qE "^\.(B|BI|BR) (-h \", \" )?$option( |\$)" ||
        fail "the manual does not have $option"
    # The program knows it: whatever it says, it is not that there is no such option.
    run "$option"
    if grep -q 'there is no option' err; then fail "$option is no option"; fi
done
for option in --dir --output --expect --ttl --unsafe-no-fsync --help --version --at --limit \
    --keys-only --from --count --bump --pretty; do
    grep -qxF -- "$option" <<<"$options" || fail "--help does not have $option"
done
man_section OPTIONS | grep -oE '^\.(B|BI|BR) .*' | grep -oE -- '--[a-z-]+' | sort -u >named
for option in $(cat named); do
    grep -qxF -- "$option" <<<"$options" || fail "the manual has $option, --help has not"
done

for code in $(sed -n '/^exit status:/,/^$/s/^  \([0-9]\).*/\1/p' help); do
    man_section 'EXIT STATUS' | grep -qxF ".B $code" || fail "the manual does not have status $code"
done

# The page has no mistakes that troff notices.
if command -v groff >/dev/null; then
    groff -man -Tascii -ww "$man_page" 2>warnings >/dev/null
    [ ! -s warnings ] || fail "troff: $(head -n 3 warnings)"
fi
echo "docs: --help and the manual agree"

#!/usr/bin/env bash
# format.sh - rewrites every source as .clang-format says; the version is pinned, since each
# version formats a little differently.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

sources | xargs -0 clang-format-14 -i

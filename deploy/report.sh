# SPDX-License-Identifier: Apache-2.0
# The output of the scripts of this folder, and their failure; sourced by quickstart, compose/common.sh and those of
# packages/.

# shellcheck source=progress.sh
. "$(dirname "${BASH_SOURCE[0]}")/progress.sh"

fail() {
    printf '\n%s: %s\n' "${0##*/}" "$1" >&2
    exit 1
}

# fail_with_log REASON FILE
fail_with_log() {
    if [ -s "$2" ]; then
        printf '\nits output:\n' >&2
        progress_failure "$2" >&2
    fi
    fail "$1"
}

report() {
    printf '      %s\n' "$1"
}

now_ms() {
    local us=${EPOCHREALTIME//[!0-9]/}
    printf '%s' "$((us / 1000))"
}

started_ms=$(now_ms)
step_ms=$started_ms

heading() {
    step_ms=$(now_ms)
    printf '\n[%s] %s\n' "$1" "$2"
}

seconds_since() {
    local ms=$(($(now_ms) - $1))
    printf '%d.%d s' "$((ms / 1000))" "$((ms % 1000 / 100))"
}

done_in() {
    report "$1 ($(seconds_since "$step_ms"))"
}

# A descriptor that never becomes readable, for short waits.
exec {silence}<> <(:)
wait_a_moment() {
    read -rt 0.05 -u "$silence"
}

# SPDX-License-Identifier: Apache-2.0
# Commands that take long, and how far they are: on a terminal a bar, elsewhere a line every CADRE_PROGRESS_S seconds.
# Sourced by report.sh.

progress_line_s=${CADRE_PROGRESS_S:-10}
progress_viewer= # a process beside the command
progress_open=   # a descriptor of ours; the viewer ends where it is closed

# watched WHAT FORMAT LOG COMMAND...: runs COMMAND with its output in LOG. FORMAT says where its output has the share
# that is done: ninja, apt, or text, which has none.
watched() {
    local what=$1 format=$2 log=$3 status
    shift 3
    : >"$log" || return
    exec {progress_open}> >(progress_view "$what" "$format" "$log")
    progress_viewer=$!
    # In front, so that Ctrl-C reaches it.
    NINJA_STATUS='[%f/%t] ' "$@" >>"$log" 2>&1 {progress_open}>&-
    status=$?
    progress_end
    return "$status"
}

progress_end() {
    [ -n "$progress_viewer" ] || return 0
    exec {progress_open}>&-
    wait "$progress_viewer" || :
    progress_viewer=
    ! progress_on_terminal || printf '\r\033[K'
}

progress_on_terminal() {
    [ -t 1 ] && [ "${TERM-dumb}" != dumb ]
}

# The viewer: it ends with its standard input, so with the script, however that ends. A signal would not do: right after
# the fork a script's trap would run in it.
progress_view() {
    local what=$1 format=$2 text='' line='' columns=80 last_s=$SECONDS
    local finished=0 total=0 started tty
    set +e
    started=$(now_ms)
    exec {tty}>&1 {progress_log}<"$3"
    ! progress_on_terminal || columns=$(stty size <&"$tty" 2>/dev/null | cut -d' ' -f2)
    [ "${columns:-0}" -gt 0 ] || columns=80
    while true; do
        while progress_read_line; do
            "progress_of_$format"
            line=
        done
        if progress_on_terminal; then
            progress_bar
        elif [ $((SECONDS - last_s)) -ge "$progress_line_s" ]; then
            progress_line
            last_s=$SECONDS
        fi
        read -rt 0.2
        [ $? -gt 128 ] || break # it is not the time that is over
    done
}

# Into `line`, which keeps a beginning until its end was written.
progress_read_line() {
    local more
    if IFS= read -r more <&"$progress_log"; then
        line+=$more
        return 0
    fi
    line+=$more
    return 1
}

# ---- formats: from `line` to `finished` of `total` ----

# [12/345] Building C object ...
progress_of_ninja() {
    [[ $line =~ ^\[([0-9]{1,9})/([0-9]{1,9})\]\  ]] || return
    finished=$((10#${BASH_REMATCH[1]})) total=$((10#${BASH_REMATCH[2]}))
}

# dlstatus:3:41.6667:Retrieving file 3 of 5, then pmstatus:gcc:20.0000:Unpacking gcc: a half for each.
progress_of_apt() {
    [[ $line =~ ^(dl|pm)status:[^:]*(:[^0-9:][^:]*)?:([0-9]{1,3})(\.[0-9]+)?: ]] || return
    local percent=$((10#${BASH_REMATCH[3]} / 2))
    [ "${BASH_REMATCH[1]}" = dl ] || percent=$((percent + 50))
    finished=$percent total=100
}

progress_of_text() {
    text=${line//[^[:print:]]/}
}

# ---- what is shown ----

# 95 becomes "1 min 35 s".
progress_duration() {
    [ "$1" -lt 60 ] || printf '%d min ' $(($1 / 60))
    printf '%d s' $(($1 % 60))
}

# The rate and the time that is left, both by the mean since the start: ", 5.2/s, 41 s left".
progress_rate() {
    local comma=$1 ms tenths
    ms=$(($(now_ms) - started))
    [ "$finished" -gt 0 ] && [ "$ms" -gt 0 ] || return
    if [ "$format" = ninja ]; then
        tenths=$((finished * 10000 / ms))
        printf '%s%d.%d/s' "$comma" $((tenths / 10)) $((tenths % 10))
    fi
    printf '%s%s left' "$comma" "$(progress_duration $(((total - finished) * ms / finished / 1000)))"
}

progress_line() {
    if [ "$total" -eq 0 ]; then
        report "$what: $(progress_duration $((($(now_ms) - started) / 1000)))${text:+, $text}"
    else
        report "$what: $((finished * 100 / total)) %$(progress_count ', ')$(progress_rate ', ')"
    fi
}

progress_count() {
    [ "$format" != ninja ] || printf '%s%d of %d' "$1" "$finished" "$total"
}

progress_bar() {
    local width=24 whole marks='########################' dots='........................'
    if [ "$total" -eq 0 ]; then
        whole="      $what  $(progress_duration $((($(now_ms) - started) / 1000)))  $text"
    else
        marks=${marks:0:$((width * finished / total))}
        whole="      $what  [$marks${dots:${#marks}}]"
        whole+="  $((finished * 100 / total)) %$(progress_count '  ')$(progress_rate '  ')"
    fi
    printf '\r\033[K%s' "${whole:0:$((columns - 1))}"
}

# ---- when it failed ----

# progress_failure LOG: of ninja's output from the first command that failed, of any other the end.
progress_failure() {
    if grep -q '^FAILED: ' "$1"; then
        sed -n '/^FAILED: /,$p' "$1" | grep -v '^\[[0-9]*/[0-9]*\] ' | head -n 30 | cut -c1-400
    else
        grep -vE '^(dl|pm)status:' "$1" | tail -n 15
    fi
}

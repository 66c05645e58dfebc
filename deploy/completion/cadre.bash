# SPDX-License-Identifier: Apache-2.0
# Completion of Cadre's programs in bash. They answer themselves, `cadre __complete -- WORD...`, from their option
# tables; what they print is described in common/base/completion.h. Loaded by the package bash-completion, or with
# `source`.

_cadre() {
    local line=${COMP_LINE:0:COMP_POINT} words=() word i breaks typed before candidate rest=
    # bash divides words at "=", ":" and "@", too; what no space is between is one word.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ $i -eq 0 || $line == [[:space:]]* ]]; then
            line=${line#"${line%%[![:space:]]*}"}
            words+=("")
        fi
        [[ $i -lt $COMP_CWORD ]] || word=$line
        words[-1]+=$word
        line=${line#"$word"}
    done
    # Only what is behind the last of these is replaced.
    typed=${words[-1]}
    breaks=${COMP_WORDBREAKS//[^=:@]/}
    [[ -z $breaks ]] || typed=${typed##*["$breaks"]}
    before=${words[-1]%"$typed"}
    COMPREPLY=()
    while IFS= read -r candidate; do
        rest=$candidate
        [[ $candidate != :* ]] || break
        candidate=${candidate%%$'\t'*}
        COMPREPLY+=("${candidate#"$before"}")
    done < <("${words[0]/#~\//$HOME/}" __complete -- "${words[@]:1}" 2>/dev/null)
    if [[ $rest == :files || $rest == :folders ]]; then
        compopt -o filenames 2>/dev/null
        while IFS= read -r candidate; do
            COMPREPLY+=("$candidate")
        done < <(if [[ $rest == :files ]]; then compgen -f -- "$typed"; else compgen -d -- "$typed"; fi)
    fi
}

complete -o nosort -F _cadre cadre cadre-coordinator cadre-worker cadre-devices

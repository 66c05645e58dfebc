# SPDX-License-Identifier: Apache-2.0
# Completion of Cadre's programs in fish. They answer themselves, `cadre __complete -- WORD...`, from their option
# tables; what they print is described in common/base/completion.h. Read by fish when one of them is completed.

function __cadre_complete
    set -l words (commandline --cut-at-cursor --tokenize --current-process)
    set -l typed (commandline --cut-at-cursor --current-token)
    set -l program (string replace --regex '^~/' "$HOME/" -- $words[1])
    for line in (command $program __complete -- $words[2..] "$typed" 2>/dev/null)
        switch $line
            case ':files' ':folders'
                set -l before (string match --regex -- '^--[^=]*=' "$typed")
                set -l path (string replace --regex -- '^--[^=]*=' '' "$typed")
                for name in (if test $line = ':files'; __fish_complete_path "$path" ''; else; __fish_complete_directories "$path" ''; end)
                    echo "$before$name"
                end
            case ':*'
            case '*'
                echo $line
        end
    end
end

for program in cadre cadre-coordinator cadre-worker cadre-devices
    complete --command $program --no-files --keep-order --arguments '(__cadre_complete)'
end

/* taskgate completion: scripts that ask the program itself what comes next (OPTIONS_COMPLETE), so
 * that they know every command and option that it has. */
#include "taskgate/cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "options.h"

static const char bash[] =
    "# Completion for taskgate: source <(taskgate completion bash)\n"
    "_taskgate() {\n"
    "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
    "    local name value\n"
    "    COMPREPLY=()\n"
    "    while IFS='|' read -r name value _; do\n"
    "        if [ -n \"$value\" ] && { [ -z \"$name\" ] || [ \"$name\" = \"$previous\" ]; }; then\n"
    "            [ -z \"$name\" ] || COMPREPLY=()\n"
    "            case $value in\n"
    "            FILE) mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- \"$current\") "
    ";;\n"
    "            DIR) mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -d -- \"$current\") ;;\n"
    "            esac\n"
    "            [ -z \"$name\" ] || return 0\n"
    "        elif [ -n \"$name\" ] && [[ $name == \"$current\"* ]]; then\n"
    "            COMPREPLY+=(\"$name\")\n"
    "        fi\n"
    "    done < <(\"${COMP_WORDS[0]}\" \"${COMP_WORDS[@]:1:COMP_CWORD-1}\" --complete "
    "2>/dev/null)\n"
    "}\n"
    "complete -o filenames -F _taskgate taskgate\n";

static const char zsh[] = "#compdef taskgate\n"
                          "# Completion for taskgate: source <(taskgate completion zsh), or as the "
                          "file _taskgate in $fpath\n"
                          "_taskgate() {\n"
                          "    local line name value help\n"
                          "    local -a found\n"
                          "    local previous=${words[CURRENT-1]}\n"
                          "    for line in ${(f)\"$(\"${words[1]}\" \"${(@)words[2,CURRENT-1]}\" "
                          "--complete 2>/dev/null)\"}; do\n"
                          "        name=${line%%'|'*}\n"
                          "        value=${${line#*'|'}%%'|'*}\n"
                          "        help=${line#*'|'*'|'}\n"
                          "        if [[ -n $value && ( -z $name || $name == $previous ) ]]; then\n"
                          "            case $value in\n"
                          "            FILE) _files ;;\n"
                          "            DIR) _files -/ ;;\n"
                          "            esac\n"
                          "            [[ -n $name ]] && return 0\n"
                          "        elif [[ -n $name ]]; then\n"
                          "            found+=(\"${name//:/\\\\:}:$help\")\n"
                          "        fi\n"
                          "    done\n"
                          "    _describe taskgate found\n"
                          "}\n"
                          "if [[ $funcstack[1] == _taskgate ]]; then\n"
                          "    _taskgate \"$@\"\n"
                          "else\n"
                          "    compdef _taskgate taskgate\n"
                          "fi\n";

static const char fish[] = "# Completion for taskgate: taskgate completion fish | source\n"
                           "function __taskgate_words\n"
                           "    set -l words (commandline -opc)\n"
                           "    set -l found\n"
                           "    for line in ($words --complete 2>/dev/null)\n"
                           "        set -l part (string split -m 2 '|' -- $line)\n"
                           "        set -l is_value (test -n \"$part[1]\" -a \"$part[1]\" = "
                           "\"$words[-1]\" -a -n \"$part[2]\"; and echo yes)\n"
                           "        test -n \"$is_value\"; and set found\n"
                           "        if test -n \"$is_value\" -o -z \"$part[1]\"\n"
                           "            contains -- \"$part[2]\" FILE DIR; and set -a found "
                           "(__fish_complete_path (commandline -ct))\n"
                           "            test -n \"$is_value\"; and break\n"
                           "        else\n"
                           "            set -a found $part[1]\\t$part[3]\n"
                           "        end\n"
                           "    end\n"
                           "    string join \\n -- $found\n"
                           "end\n"
                           "complete -c taskgate -f -a '(__taskgate_words)'\n";

static const struct {
    const char *shell, *script;
} scripts[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};

int cli_completion(int argc, char **argv)
{
    const char *shell = NULL;
    const struct command command = {
        .usage = "taskgate completion bash|zsh|fish",
        .synopsis = "Prints the script that completes commands and options in this shell, as in\n"
                    "source <(taskgate completion bash).",
        .operands_min = 1,
        .operands_max = 1,
        .operand_name = "SHELL",
    };
    enum options_outcome outcome = options_read(&command, argc, argv, &shell);
    if (outcome != OPTIONS_READ)
        return options_exit_code(outcome);
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        if (strcmp(shell, scripts[i].shell) == 0)
            return fputs(scripts[i].script, stdout) < 0 ? CLI_FAILURE : CLI_DONE;
    }
    return options_complain("there is no completion for %s; there is one for bash, zsh and fish",
                            shell);
}

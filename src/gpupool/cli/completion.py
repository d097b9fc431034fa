"""`gpupool completion`: prints a script with which the shell completes commands and names.

The shell runs `gpupool` with _GPUPOOL_COMPLETE set, and click answers (`main.py` loads this module
then). The scripts are our own: click's break words at `:` and `=` (bash), lose `--name=` when they
complete what follows (zsh), or complete nothing behind it (fish). They are tested in those shells.
"""

import os

import click
from click.shell_completion import (
    BashComplete,
    FishComplete,
    ZshComplete,
    add_completion_class,
    split_arg_string,
)

VARIABLE = "_GPUPOOL_COMPLETE"
_BASH = r"""_gpupool() {
    local type value quoted typed="${COMP_LINE:0:COMP_POINT}"
    local word="${typed##*[[:space:]]}"
    [[ $word == -*=* ]] && word="${word#*=}"
    # What bash took for a word of its own is not part of what it replaces.
    local before="${word%"${word##*[:=]}"}"
    COMPREPLY=()
    while IFS=, read -r type value; do
        case $type in
        file) compopt -o default ;;
        dir) compopt -o dirnames ;;
        plain)
            [[ $value == *= ]] && compopt -o nospace
            printf -v quoted %q "${value#"$before"}"
            COMPREPLY+=("$quoted")
            ;;
        esac
    done < <(COMP_LINE="$typed" _GPUPOOL_COMPLETE=bash_complete "$1" 2>/dev/null)
}
complete -o nosort -F _gpupool gpupool
"""


_ZSH = r"""#compdef gpupool
_gpupool() {
    local kind value help
    local -a answer plain open described
    answer=("${(@f)$(COMP_WORDS="${(j: :)words[1,CURRENT]}" COMP_CWORD=$((CURRENT - 1)) \
        _GPUPOOL_COMPLETE=zsh_complete ${(Q)words[1]} 2>/dev/null)}")
    # Of --name=VALUE only the value is completed.
    compset -P '-*='
    for kind value help in "${(@)answer}"; do
        case $kind in
        file) _path_files -f ;;
        dir) _path_files -/ ;;
        plain)
            if [[ $value == *= ]]; then
                open+=("$value")
            elif [[ $help == _ ]]; then
                plain+=("$value")
            else
                described+=("${value//:/\:}:$help")
            fi
            ;;
        esac
    done
    (( $#described )) && _describe -V gpupool described
    (( $#plain )) && compadd -V gpupool -a plain
    (( $#open )) && compadd -V gpupool -S '' -a open
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _gpupool "$@"
else
    compdef _gpupool gpupool
fi
"""
_FISH = r"""function _gpupool
    # Of --name=VALUE only the value is completed; fish wants to see all of it.
    set -l option (string match --regex -- '^-.*?=' (commandline --current-token))
    set -q option[1]; or set option ''
    set -l program (commandline --tokenize --current-process)[1]
    COMP_WORDS=(commandline --current-process --cut-at-cursor) \
        COMP_CWORD=(commandline --current-token) _GPUPOOL_COMPLETE=fish_complete \
        $program 2>/dev/null | while read --local --delimiter=, kind value
        switch $kind
            case file
                __fish_complete_path $value | string replace --regex -- '^' $option
            case dir
                __fish_complete_directories $value | string replace --regex -- '^' $option
            case plain
                echo $option$value
        end
    end
end
complete --no-files --command gpupool --arguments '(_gpupool)'
"""


@add_completion_class
class _Bash(BashComplete):
    def source(self) -> str:
        return _BASH

    def get_completion_args(self) -> tuple[list[str], str]:
        typed = os.environ["COMP_LINE"]
        words = split_arg_string(typed)
        is_new_word = typed[-1:].isspace()
        return words[1:] if is_new_word else words[1:-1], "" if is_new_word else words[-1]


@add_completion_class
class _Zsh(ZshComplete):
    def source(self) -> str:
        return _ZSH


@add_completion_class
class _Fish(FishComplete):
    def source(self) -> str:
        return _FISH


_SHELLS = {"bash": _Bash, "zsh": _Zsh, "fish": _Fish}


@click.command("completion")
@click.argument("shell", type=click.Choice(list(_SHELLS)))
def command(shell: str) -> None:
    """Print a script that completes commands, options and names in your shell.

    It completes the names of clusters, nodes, cards, pods, services, namespaces, contexts and
    examples. A cluster that does not answer within a second is left out.

    \b
    To have it in every new shell:
      bash  echo 'source <(gpupool completion bash)' >> ~/.bashrc
      zsh   echo 'source <(gpupool completion zsh)' >> ~/.zshrc
      fish  gpupool completion fish > ~/.config/fish/completions/gpupool.fish

    bash must be 4.4 or newer. In ~/.zshrc, compinit comes before it.

    \b
    Examples:
      source <(gpupool completion bash)
      source <(gpupool completion zsh)
      gpupool completion fish | source
    """
    from gpupool.cli.main import gpupool

    click.echo(_SHELLS[shell](gpupool, {}, "gpupool", VARIABLE).source(), nl=False)

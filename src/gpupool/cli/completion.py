"""`gpupool completion`: prints a script with which the shell completes commands and names.

The shell runs `gpupool` with _GPUPOOL_COMPLETE set, and click answers (`main.py` loads this module
then). The scripts for zsh and fish are click's; that for bash is our own, because bash breaks words
at `:` and `=`, which contexts and quotas have in them.
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


@add_completion_class
class _Bash(BashComplete):
    def source(self) -> str:
        return _BASH

    def get_completion_args(self) -> tuple[list[str], str]:
        typed = os.environ["COMP_LINE"]
        words = split_arg_string(typed)
        is_new_word = typed[-1:].isspace()
        return words[1:] if is_new_word else words[1:-1], "" if is_new_word else words[-1]


_SHELLS = {"bash": _Bash, "zsh": ZshComplete, "fish": FishComplete}


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

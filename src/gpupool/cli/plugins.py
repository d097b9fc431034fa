"""`gpupool plugins`: installs plugins of kubectl, and removes them.

kubectl runs `kubectl-inspect-gpushare` of the PATH for `kubectl inspect gpushare`, and
`kubectl_complete-inspect-gpushare` to complete it.
"""

import os
import shlex
import shutil
import sys
from pathlib import Path

import click

from gpupool.cli.kubectl_plugin import ALL, INSPECT

_MARK = "# Written by `gpupool plugins install`; `gpupool plugins uninstall` removes it."
_DEFAULT = "~/.local/bin"


def _directory(_context: click.Context, _option: click.Parameter, text: str) -> Path:
    try:
        return Path(text).expanduser().absolute()
    except RuntimeError as error:  # no home directory
        raise click.BadParameter("you have no home directory: name another with --dir") from error


_dir_option = click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False),
    default=_DEFAULT,
    show_default=True,
    callback=_directory,
    help="Directory of the plugins; it should be in your PATH.",
)


@click.group("plugins")
def command() -> None:
    """Install plugins of kubectl: kubectl gpupool and kubectl inspect.

    \b
    kubectl gpupool ...                         the same as gpupool
    kubectl inspect gpushare|cgpu [-d] [NODE]   the same as gpupool inspect

    They use the kubeconfig, the context and the namespace that kubectl uses. Other ones are named
    at the end: kubectl gpupool gpu list --context training.

    \b
    Examples:
      gpupool plugins install
      gpupool plugins uninstall
    """


@command.command("install", short_help="Install the plugins.")
@_dir_option
@click.option("--force", is_flag=True, help="Overwrite files that are not of gpupool's making.")
def install(directory: Path, force: bool) -> None:
    """Install kubectl gpupool, kubectl inspect gpushare and kubectl inspect cgpu.

    They run the gpupool that installs them. Install them again when it has moved.

    \b
    Examples:
      gpupool plugins install
      gpupool plugins install --dir /usr/local/bin
    """
    files = {directory / name: text for name, text in _scripts().items()}
    foreign = [path for path in files if _is_there(path) and not _is_ours(path)]
    if foreign and not force:
        listed = "\n".join(f"  {path}" for path in foreign)
        raise click.ClickException(
            "Nothing is installed: these files are there, and not of gpupool's making.\n"
            f"{listed}\nOverwrite them with --force, or choose another directory with --dir."
        )
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for path, text in files.items():
            _write(path, text)
    except OSError as error:
        raise click.ClickException(
            f"{directory}: wanted a directory that you may make and write to, found: "
            f"{error.strerror}. Choose another with --dir."
        ) from error
    click.echo(f"The plugins are in {directory}:")
    for plugin in (ALL, *INSPECT):
        click.echo(f"  kubectl {plugin}")
    for words in _obstacles(directory):
        click.echo(words, err=True)


@command.command("uninstall", short_help="Remove the plugins.")
@_dir_option
def uninstall(directory: Path) -> None:
    """Remove the plugins that `gpupool plugins install` has written; other files stay.

    \b
    Examples:
      gpupool plugins uninstall
      gpupool plugins uninstall --dir /usr/local/bin
    """
    ours = [path for name in _scripts() if _is_ours(path := directory / name)]
    for path in ours:
        path.unlink()
    if ours:
        click.echo(f"The plugins are removed from {directory}.")
    else:
        click.echo(f"There is no plugin of gpupool in {directory}. Name another with --dir.")


def _scripts() -> dict[str, str]:
    """The text of each file."""
    python = shlex.quote(sys.executable)
    made = {}
    for plugin in (ALL, *INSPECT):
        dashed = plugin.replace(" ", "-")
        for what, name in (
            ("run", f"kubectl-{dashed}"),
            ("complete", f"kubectl_complete-{dashed}"),
        ):
            run = f"{python} -m gpupool.cli.kubectl_plugin {what} {shlex.quote(plugin)}"
            made[name] = f'#!/bin/sh\n{_MARK}\nexec {run} "$@"\n'
    return made


def _is_there(path: Path) -> bool:
    return path.exists() or path.is_symlink()


def _is_ours(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return not path.is_symlink() and _MARK.encode() in file.read(1000)
    except (FileNotFoundError, IsADirectoryError):
        return False


def _write(path: Path, text: str) -> None:
    """Never half a script, and never into the target of a link."""
    new = path.with_name(f".{path.name}.new")
    new.write_text(text, encoding="utf-8")
    new.chmod(0o755)
    new.replace(path)


def _obstacles(directory: Path) -> list[str]:
    """Why kubectl would not run them."""
    path = os.environ.get("PATH", "")
    if directory not in map(Path, path.split(os.pathsep)):
        return [
            f"{directory} is not in your PATH, so kubectl does not find them. Add it:",
            f'  export PATH={shlex.quote(str(directory))}:"$PATH"',
        ]
    found = {name: shutil.which(name) for name in _scripts()}
    hidden = [other for name, other in found.items() if other != str(directory / name) and other]
    told = [f"Another plugin comes first in your PATH: {other}" for other in hidden]
    return told if shutil.which("kubectl") else [*told, "There is no kubectl in your PATH yet."]

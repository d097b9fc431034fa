"""`gpupool version`."""

import click

from gpupool import __version__


@click.command("version")
def command() -> None:
    """Print the version.

    \b
    Examples:
      gpupool version
    """
    click.echo(f"gpupool {__version__}")

"""A command that lists without a subcommand, and has subcommands that change what it lists."""

import click


class ListingGroup(click.Group):
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Whoever tries `list` or `show` is told that no subcommand is needed."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            words = f"{error.message} '{ctx.command_path}' alone lists them."
            raise click.UsageError(words, ctx) from error

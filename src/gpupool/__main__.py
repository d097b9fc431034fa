"""Where the command `gpupool` begins, also as `python -m gpupool`."""

import os
import sys

from gpupool.cli.exit_codes import INTERRUPTED


def main() -> None:
    _open_what_is_closed()
    try:
        # Imported here: Ctrl-C may come while this is loaded, and gets no traceback either.
        from gpupool.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("\nInterrupted.\n")
        sys.exit(INTERRUPTED)


def _open_what_is_closed() -> None:
    """A shell starts us without standard output if one writes `>&-`. What is written is lost then.
    The lowest free number is taken, its own: it must not become that of a file or connection."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 - until the end


if __name__ == "__main__":
    main()

"""Where the command `gpupool` begins, also as `python -m gpupool`."""

import sys

from gpupool.cli.exit_codes import INTERRUPTED


def main() -> None:
    try:
        # Imported here: Ctrl-C may come while this is loaded, and gets no traceback either.
        from gpupool.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("\nInterrupted.\n")
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()

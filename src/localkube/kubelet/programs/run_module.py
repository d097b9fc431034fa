"""Runs the `main` of a module, whatever packages this Python has: run_module.py ROOTS MODULE
ARGUMENT ...

ROOTS are the directories that packages are imported from, separated as in $PATH.
"""

import importlib
import os
import sys


def main() -> None:
    sys.path[:0] = sys.argv.pop(1).split(os.pathsep)
    module = sys.argv.pop(1)
    importlib.import_module(module).main()


if __name__ == "__main__":
    main()

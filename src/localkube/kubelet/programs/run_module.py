"""Runs the `main` of a module, whatever packages this Python has: run_module.py TITLE ROOTS MODULE
ARGUMENT ...

TITLE is the program's name for all who look at it (ps and the like): the command line has paths of
this machine, which no image has. ROOTS are the directories that packages are imported from,
separated as in $PATH.
"""

import contextlib
import importlib
import os
import sys

_ARG_START, _ARG_END = 47, 48  # among the fields of /proc/self/stat, counted from 0


def main() -> None:
    title = sys.argv.pop(1)
    with contextlib.suppress(OSError):  # a kernel may refuse it; the program can do without
        call_itself(title)
    sys.path[:0] = sys.argv.pop(1).split(os.pathsep)
    module = sys.argv.pop(1)
    importlib.import_module(module).main()


def call_itself(title: str) -> None:
    """Replaces the command line of this process where the kernel reads it. Python has copied the
    arguments before."""
    with open("/proc/self/stat", "rb") as file:
        # The program's name is in parentheses, and may have spaces and parentheses itself.
        fields = file.read().rpartition(b")")[2].split()
    start, end = (int(fields[index - 2]) for index in (_ARG_START, _ARG_END))
    size = end - start
    if size > 0:
        # The last byte must be 0: else the kernel reads on into the environment.
        text = os.fsencode(title)[: size - 1].ljust(size, b"\0")
        with open("/proc/self/mem", "r+b", buffering=0) as memory:
            memory.seek(start)
            memory.write(text)


if __name__ == "__main__":
    main()

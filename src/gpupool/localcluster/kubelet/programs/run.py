"""Starts a program of this package, in a Python that has no packages: run.py NAME ARGUMENT ..."""

import importlib
import os
import sys

_PACKAGE = "gpupool.localcluster.kubelet.programs"


def main() -> None:
    root = os.path.realpath(__file__)
    for _ in range(_PACKAGE.count(".") + 2):
        root = os.path.dirname(root)
    sys.path.insert(0, root)
    name = sys.argv.pop(1)
    importlib.import_module(f"{_PACKAGE}.{name}").main()


if __name__ == "__main__":
    main()

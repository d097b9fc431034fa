"""Python's garbage collector as it is set in the command `gpupool`."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from gpupool.cli.main import GC_THRESHOLDS


@contextmanager
def as_in_the_command() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)

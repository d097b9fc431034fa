"""gpupool's stand-in for TensorFlow. It is NOT TensorFlow: it lists devices, and nothing else.

Containers whose image has TensorFlow in it find this package last. As soon as there is a real
TensorFlow anywhere on `sys.path`, that one is imported in place of this. It runs in any Python of
the container, so it imports nothing of ours.
"""

import importlib.util
import sys
from importlib.machinery import PathFinder
from pathlib import Path

__version__ = "0.0.0+gpupool.stand.in"
_NOTICE = (
    "gpupool: there is no TensorFlow in this environment. This is gpupool's stand-in, which can "
    "only list devices (tensorflow.python.client.device_lib).\n"
)


def __getattr__(name: str) -> object:
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(
        f"gpupool's stand-in for TensorFlow has no {name!r}: it can only list devices. For the "
        "rest, install TensorFlow in the Python environment of gpupool, and start this container "
        "again."
    )


def _become_real() -> bool:
    """Puts a real TensorFlow in this module's place, if there is one."""
    here = Path(__file__).resolve().parent.parent
    elsewhere = [place for place in sys.path if Path(place).resolve() != here]
    found = PathFinder.find_spec(__name__, elsewhere)
    if found is None or found.loader is None:
        return False
    sys.path[:] = elsewhere
    real = importlib.util.module_from_spec(found)
    sys.modules[__name__] = real
    found.loader.exec_module(real)
    return True


if not _become_real():
    sys.stderr.write(_NOTICE)

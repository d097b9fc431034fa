"""The CEL library, without the terminal program that its package loads beside it.

That would take half a second at every start of a cluster; the library alone takes eight
milliseconds.
"""

import importlib.util
import sys
from importlib.machinery import PathFinder
from types import ModuleType

_NAME = "cel.cel"


def cel() -> ModuleType:
    loaded = sys.modules.get(_NAME)
    if loaded is not None:
        return loaded
    package = importlib.util.find_spec("cel")
    assert package is not None
    found = PathFinder.find_spec(_NAME, package.submodule_search_locations)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[_NAME] = module
    found.loader.exec_module(module)
    return module

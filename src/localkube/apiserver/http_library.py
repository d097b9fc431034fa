"""aiohttp, loaded when the first webhook or other API server is called, and in a thread: it takes a
fifth of a second, for which everybody would wait."""

import asyncio
import importlib

_loaded: list[object] = []


async def http_library() -> None:
    """After this, `import aiohttp` takes no time."""
    if not _loaded:
        # Not by a look at sys.modules: while one thread loads it, it is there and not complete.
        _loaded.append(await asyncio.to_thread(importlib.import_module, "aiohttp"))

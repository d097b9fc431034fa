"""A program that uses a store in all its ways, and says before and after each change what it does.

    python store_scenario.py DIRECTORY

It says so in the file `said` beside the store, so that its words are in their order in the journal
of file_journal.c: {"change": [name, text or null], "version": ...} before, and
{"done": how many changes} after they were acknowledged.
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import orjson

from localkube.apiserver.store.store import Store

SAID = "said"
STORE = "store.db"
LAST = "last"  # what nobody waited for
_BIG = 20_000  # of several pages
# The log is folded into the file at every turn instead of every 4 MB, so that little shows much.
_PAGES_PER_CHECKPOINT = 12


class Life:
    """From one opening of the store to its end."""

    def __init__(self, directory: Path, changes: int) -> None:
        self.changes = changes
        self._said = os.open(directory / SAID, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.store = Store(directory / STORE, lambda resource: ())
        assert self.store._disk._db is not None
        self.store._disk._db.execute(f"PRAGMA wal_autocheckpoint = {_PAGES_PER_CHECKPOINT}")
        self.store.start()

    def say(self, **what: Any) -> None:
        os.write(self._said, orjson.dumps(what) + b"\n")

    def put(self, name: str, text: str) -> None:
        self._about_to(name, text)
        obj = {"metadata": {"name": name, "namespace": "a", "uid": name}, "data": text}
        old = self.store.get("things", "a", name)
        if old is None:
            self.store.create("things", obj)
        else:
            self.store.replace(old, obj)

    def remove(self, name: str) -> None:
        self._about_to(name, None)
        old = self.store.get("things", "a", name)
        assert old is not None
        self.store.remove(old)

    def _about_to(self, name: str, text: str | None) -> None:
        # The next version is given out by the change itself.
        self.say(change=[name, text], version=self.store.rv + 1)
        self.changes += 1

    async def acknowledged(self) -> None:
        await self.store.settled(self.store.version)
        self.say(done=self.changes)


async def first_life(directory: Path) -> int:
    life = Life(directory, 0)
    for number in range(8):  # one by one
        life.put(f"n{number}", f"{number}" * (number + 1) * 100)
        await life.acknowledged()
    for number in range(0, 8, 2):  # changes and deletions in one transaction
        life.put(f"n{number}", "changed")
        life.remove(f"n{number + 1}")
    await life.acknowledged()
    life.put("big", "x" * _BIG)
    await life.acknowledged()
    life.remove("big")
    await life.acknowledged()
    life.store.close()
    return life.changes


class _Dying:
    """In the place of the head, which is written right after the log."""

    def write(self, _state: object) -> None:
        os._exit(0)


async def second_life(directory: Path, changes: int) -> None:
    """Ends as by kill -9, between the last write to the log and its flush."""
    life = Life(directory, changes)
    for number in range(6):
        life.put("again", f"{number}" * 3000)
        await life.acknowledged()
    assert life.store._disk._db is not None
    life.store._disk._db.execute("PRAGMA synchronous = NORMAL")
    life.store._disk._head = _Dying()  # type: ignore[assignment]
    life.put(LAST, "perhaps")
    await life.acknowledged()


async def third_life(directory: Path, changes: int) -> None:
    life = Life(directory, changes)
    assert life.store.get("things", "a", LAST) is not None
    life.say(done=life.changes)  # a client may have read it
    life.put("third", "y" * _BIG)
    await life.acknowledged()
    life.remove("third")
    await life.acknowledged()
    life.store.close()


def main() -> None:
    directory = Path(sys.argv[1])
    changes = asyncio.run(first_life(directory))
    child = os.fork()
    if child == 0:
        asyncio.run(second_life(directory, changes))
    os.waitpid(child, 0)
    # What the dead one has begun is in the file that he spoke through.
    said = (directory / SAID).read_bytes().splitlines()
    changes = sum("change" in orjson.loads(line) for line in said)
    asyncio.run(third_life(directory, changes))


if __name__ == "__main__":
    main()

"""A supervisor that throws an exception into a program when a test asks for it."""

import asyncio
from collections import Counter
from typing import NoReturn

from localkube.health import Health
from localkube.supervision import Pauses, Program, Reporter, Supervisor

# It starts again at once, and counts as failing until the test has seen that.
AT_ONCE = Pauses(first_s=0.0, longest_s=0.0, works_after_s=3600.0)


class Bomb(Exception):
    pass


class Bombs:
    """What a test knows of all programs of one cluster. Used from another thread than theirs."""

    def __init__(self) -> None:
        self.starts: Counter[str] = Counter()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._health: Health | None = None
        self._fuses: dict[str, asyncio.Event] = {}

    def throw(self, name: str) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._fuses[name].set)

    def forgive(self, name: str) -> None:
        """The program counts as working again."""
        assert self._loop is not None
        assert self._health is not None
        self._loop.call_soon_threadsafe(self._health.works, name)

    async def explode(self, name: str) -> None:
        self._loop = asyncio.get_running_loop()
        self.starts[name] += 1
        self._fuses[name] = asyncio.Event()
        await self._fuses[name].wait()
        raise Bomb(f"thrown into {name}")

    def supervisor(self) -> type[Supervisor]:
        """To be used in place of the real one."""
        bombs = self

        class Bombed(Supervisor):
            def __init__(self, health: Health, reporter: Reporter) -> None:
                super().__init__(health, reporter, AT_ONCE)
                bombs._health = health

            async def keep(self, name: str, program: Program) -> NoReturn:
                async def with_bomb() -> None:
                    async with asyncio.TaskGroup() as tasks:
                        tasks.create_task(program())
                        tasks.create_task(bombs.explode(name))

                await super().keep(name, with_bomb)

        return Bombed

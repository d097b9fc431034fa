"""The store is cut off at every single operation on its files, one after the other: by kill -9, and
by power cuts that lose or tear what was not flushed. After each, everything that was acknowledged
is there, and nothing half."""

import asyncio
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import orjson
import pytest

from localkube.apiserver.store.file import StoreDamaged
from localkube.apiserver.store.store import Store
from tests.attack.campaign import Campaign
from tests.attack.crash_disk import PAGE, Contents, Disk, Operation, pieces, read_journal
from tests.attack.store_scenario import SAID, STORE
from tests.native.simulated import compile_c

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
_POWER_CUTS = 4  # by dice, at each operation
_SHORT_STRIDE = 5

if sys.platform != "linux":
    pytest.skip("the journal of files needs Linux", allow_module_level=True)


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> list[Operation]:
    """Everything that the scenario does to its files."""
    place = tmp_path_factory.mktemp("scenario")
    library, directory, path = place / "journal.so", place / "data", place / "journal"
    directory.mkdir()
    compile_c(HERE / "file_journal.c", library, "-shared", "-fPIC")
    variables = {
        "LD_PRELOAD": str(library),
        "FILE_JOURNAL": str(path),
        "FILE_JOURNAL_OF": str(directory),
    }
    command = [sys.executable, "-m", "tests.attack.store_scenario", str(directory)]
    subprocess.run(command, check=True, cwd=ROOT, env=os.environ | variables)
    return [each for each in read_journal(path) if not each.path.endswith("-shm")]


@pytest.fixture
def directory() -> Iterator[Path]:
    """In memory, where there is such a place: thousands of stores are opened, and flush."""
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=place) as made:
        yield Path(made) / "data"


@dataclass
class Ledger:
    """What the scenario has said so far."""

    changes: list[tuple[str, str | None]] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    acknowledged: int = 0

    def hear(self, each: Operation) -> None:
        said = orjson.loads(each.data)
        if "change" in said:
            self.changes.append(tuple(said["change"]))
            self.versions.append(said["version"])
        self.acknowledged = said.get("done", self.acknowledged)

    @property
    def seen(self) -> int:
        """The newest version that a client may have seen."""
        return self.versions[self.acknowledged - 1] if self.acknowledged else 0

    def states(self) -> list[dict[str, str]]:
        """What may be in the store: all that was acknowledged, and any of the changes after that,
        in their order."""
        state: dict[str, str] = {}
        found = [dict(state)]
        for name, text in self.changes:
            if text is None:
                state.pop(name)
            else:
                state[name] = text
            found.append(dict(state))
        return found[self.acknowledged :]


def lay_out(directory: Path, contents: Contents) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    for name, content in contents.items():
        if name != SAID:
            (directory / name).write_bytes(content)


def found_in(directory: Path) -> tuple[dict[str, str], int]:
    """What a server finds, and the version that it begins with. Raises StoreDamaged."""
    store = Store(directory / STORE, lambda resource: ())
    found = {each.name: each.obj()["data"] for each in store.records("things")}
    version = store.rv
    store.close()
    return found, version


async def goes_on(directory: Path) -> None:
    """The store can be written and read again."""
    store = Store(directory / STORE, lambda resource: ())
    store.start()
    metadata = {"name": "after", "namespace": "a", "uid": "after"}
    await store.durable(store.create("things", {"metadata": metadata, "data": "after"}))
    store.close()
    assert found_in(directory)[0]["after"] == "after"


def crashes(disk: Disk, at: Operation, draw: random.Random) -> Iterator[tuple[str, Contents]]:
    """Every way to lose power, or to be killed, just when `at` is under way."""
    yield "killed before", disk.killed()
    begun = pieces(at, PAGE) if at.kind == "w" else []
    for count in range(1, len(begun)):
        yield f"killed after {count} pages", disk.killed(begun[:count])
    for kept in {0, disk.unflushed_names // 2, disk.unflushed_names}:
        yield f"cut: nothing unflushed but {kept} names", disk.cut(None, names_kept=kept)
    disk_then = draw.getrandbits(64)
    for number in range(_POWER_CUTS):
        dice = random.Random(f"{disk_then} {number}")
        kept = dice.randint(0, disk.unflushed_names)
        yield f"cut: any sectors and {kept} names", disk.cut(dice, names_kept=kept)


def verdict(directory: Path, ledger: Ledger) -> str:
    """What is wrong with the store in the directory."""
    try:
        found, version = found_in(directory)
    except StoreDamaged as error:
        return f"refused: {error}"
    states = ledger.states()
    if found not in states:
        missing = [name for name in states[0] if found.get(name) != states[0][name]]
        return f"found {sorted(found)}, which was never so; wrong or missing: {missing}"
    if version <= ledger.seen:
        return f"begins again with version {version}, and {ledger.seen} was seen"
    return ""


@pytest.mark.timeout(900)
def test_no_crash_point_loses_what_was_acknowledged(
    journal: list[Operation], directory: Path, attack: Campaign
) -> None:
    disk, ledger = Disk(), Ledger()
    assert {each.kind for each in journal} == set("cwtsdru"), "the scenario does everything"
    points = 0
    for number, at in enumerate(journal):
        if at.path != SAID and (attack.seconds is not None or number % _SHORT_STRIDE == 0):
            points += 1
            for how, contents in crashes(disk, at, random.Random(f"{attack.seed} {number}")):
                attack.made += 1
                lay_out(directory, contents)
                wrong = verdict(directory, ledger)
                if wrong:
                    attack.note(f"{how}, at operation {number} ({at}): {wrong}")
            if not attack.problems and points % 10 == 0:
                asyncio.run(goes_on(directory))
        disk.do(at)
        if at.path == SAID and at.kind == "w":
            ledger.hear(at)
    attack.end()
    assert ledger.acknowledged == len(ledger.changes), "the scenario came to its end"
    assert points > (200 if attack.seconds is not None else 20)


def test_a_write_that_is_not_flushed_before_it_is_acknowledged_is_found(
    journal: list[Operation], directory: Path
) -> None:
    """The attack itself: without the flushes of the log, it finds that writes are lost."""
    careless = [each for each in journal if not (each.kind == "s" and each.path.endswith("-wal"))]
    disk, ledger = Disk(), Ledger()
    problems = 0
    for number, at in enumerate(careless):
        if at.path != SAID and number % 5 == 0:
            lay_out(directory, disk.cut(None, names_kept=None))
            problems += bool(verdict(directory, ledger))
        disk.do(at)
        if at.path == SAID and at.kind == "w":
            ledger.hear(at)
    assert problems

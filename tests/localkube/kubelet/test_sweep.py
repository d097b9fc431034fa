"""What is cleared away at the start: only what was there before, and belongs to nobody."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from localkube.kubelet.node_files import node_disk, node_hardware
from localkube.kubelet.volumes import Objects, Storage, sweep_storage


class Kube:
    """Knows one persistent volume. While it is asked, another one is made."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    async def list(self, _: object) -> Any:
        listed = [{"metadata": {"uid": "known"}}]
        (self._directory / "volumes" / "made-meanwhile").mkdir()
        return SimpleNamespace(items=listed)


def storage_in(directory: Path) -> Storage:
    for uid in ("known", "gone"):
        (directory / "volumes" / uid).mkdir(parents=True)
    return Storage(Objects(Kube(directory)), directory, ())  # type: ignore[arg-type]


async def test_what_belongs_to_nobody_is_deleted(tmp_path: Path) -> None:
    storage = storage_in(tmp_path)
    old, kept = node_disk(tmp_path, "old"), node_disk(tmp_path, "kept")
    await sweep_storage(storage, {"kept": None})
    assert kept.exists()
    assert not old.exists()
    assert not (tmp_path / "volumes/gone").exists()
    assert (tmp_path / "volumes/known").exists()


async def test_a_volume_that_is_made_meanwhile_stays(tmp_path: Path) -> None:
    await sweep_storage(storage_in(tmp_path), {})
    assert (tmp_path / "volumes/made-meanwhile").exists()


@pytest.mark.parametrize("is_late", [False, True])
async def test_a_node_that_is_added_meanwhile_keeps_its_disk_and_its_hardware(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_late: bool
) -> None:
    nodes: dict[str, None] = {}
    storage = storage_in(tmp_path)
    node_disk(tmp_path, "old")

    def add() -> None:
        if "new" not in nodes:
            nodes["new"] = None
            node_disk(tmp_path, "new")
            node_hardware(tmp_path, "new").mkdir(parents=True)

    async def to_thread(work: Any, *given: Any) -> Any:
        """While a thread works, the event loop goes on."""
        if not is_late:
            add()
        found = work(*given)
        add()
        return found

    monkeypatch.setattr(asyncio, "to_thread", to_thread)
    await sweep_storage(storage, nodes)
    assert node_hardware(tmp_path, "new").exists()
    assert list((tmp_path / "nodes").iterdir()) == [node_disk(tmp_path, "new")]

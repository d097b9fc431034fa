"""What is deleted is what was meant, though webhooks and the disk take their time."""

from pathlib import Path

import pytest

from kubeclient.resources import CONFIG_MAPS
from localkube.apiserver.admission.attributes import Attributes, Operation
from localkube.apiserver.admission.chain import Admission
from tests.localkube.controllers.desk import Desk, desk_for


class SlowAdmission:
    """While it judges the first deletion, somebody deletes and creates the objects anew."""

    def __init__(self, desk: Desk, names: list[str]) -> None:
        self.desk = desk
        self.names = names
        self.judged: list[str] = []  # uids
        self._validate = Admission.validate

    async def validate(self, admission: Admission, attributes: Attributes) -> None:
        await self._validate(admission, attributes)
        if attributes.operation is not Operation.DELETE:
            return
        names, self.names = self.names, []
        for name in names:
            await self.desk.delete(CONFIG_MAPS, name)
            await self.desk.create(CONFIG_MAPS, {"metadata": {"name": name}})
        assert attributes.old is not None
        self.judged.append(attributes.old["metadata"]["uid"])


async def test_a_collection_spares_objects_that_were_created_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with desk_for(tmp_path) as desk:
        for name in ("a", "b"):
            await desk.create(CONFIG_MAPS, {"metadata": {"name": name}})
        slow = SlowAdmission(desk, ["a", "b"])
        monkeypatch.setattr(Admission, "validate", lambda *given: slow.validate(*given))
        await desk.kube.delete(CONFIG_MAPS, "", "default")
        assert set(await desk.names(CONFIG_MAPS)) >= {"a", "b"}


async def test_admission_has_seen_the_object_that_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with desk_for(tmp_path) as desk:
        await desk.create(CONFIG_MAPS, {"metadata": {"name": "a"}})
        slow = SlowAdmission(desk, ["a"])
        monkeypatch.setattr(Admission, "validate", lambda *given: slow.validate(*given))
        await desk.kube.delete(CONFIG_MAPS, "a", "default")
        assert "a" not in await desk.names(CONFIG_MAPS)
        assert len(set(slow.judged)) == 2, "the first object and the second"

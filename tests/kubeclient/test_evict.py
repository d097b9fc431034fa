"""Evictions, as a real API server takes them."""

from pathlib import Path

import pytest

from kubeclient.errors import Conflict, NotFound
from kubeclient.resources import PODS
from tests.kubeclient.api import api

POD = {
    "metadata": {"name": "p", "namespace": "default"},
    "spec": {"containers": [{"name": "c", "image": "pause"}], "terminationGracePeriodSeconds": 0},
}


async def test_a_pod_goes_and_another_one_of_its_name_stays(tmp_path: Path) -> None:
    async with api(tmp_path) as kube:
        before = await kube.create(PODS, POD)
        await kube.evict(before)
        with pytest.raises(NotFound):
            await kube.get(PODS, "p", "default")
        after = await kube.create(PODS, POD)
        with pytest.raises(Conflict):
            await kube.evict(before)
        assert (await kube.get(PODS, "p", "default"))["metadata"]["uid"] == after["metadata"]["uid"]

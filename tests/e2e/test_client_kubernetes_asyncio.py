"""kubernetes_asyncio: the official client's calls on asyncio."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gpupool.testing import Cluster
from tests.e2e.objects import config_map, pod, shell

pytestmark = [
    pytest.mark.clients,
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),  # theirs
]


@pytest.fixture(scope="module")
def library() -> Any:
    """Imported late: it takes seconds."""
    pytest.importorskip("kubernetes_asyncio")
    import kubernetes_asyncio
    import kubernetes_asyncio.stream
    import kubernetes_asyncio.watch

    return kubernetes_asyncio


@pytest.fixture
async def configuration(library: Any, cluster: Cluster) -> Any:
    made = library.client.Configuration()
    path = str(cluster.kubeconfig)
    await library.config.load_kube_config(path, client_configuration=made)
    return made


@pytest.fixture
async def core(library: Any, configuration: Any) -> AsyncIterator[Any]:
    async with library.client.ApiClient(configuration) as connection:
        yield library.client.CoreV1Api(connection)


async def running(library: Any, core: Any, namespace: str, name: str) -> None:
    selector = f"metadata.name={name}"
    call = core.list_namespaced_pod
    watch = library.watch.Watch()
    async with watch.stream(call, namespace, field_selector=selector, timeout_seconds=60) as events:
        async for event in events:
            if event["object"].status.phase == "Running":
                return
    pytest.fail(f"{name} does not run")


async def test_objects_are_made_read_patched_and_deleted(core: Any, namespace: str) -> None:
    await core.create_namespaced_config_map(namespace, config_map("c", a="1"))
    await core.patch_namespaced_config_map("c", namespace, {"data": {"b": "2"}})
    found = await core.read_namespaced_config_map("c", namespace)
    assert found.data == {"a": "1", "b": "2"}
    await core.delete_namespaced_config_map("c", namespace)
    listed = await core.list_namespaced_config_map(namespace)
    assert "c" not in [item.metadata.name for item in listed.items]


async def test_a_watch_sees_what_happens(library: Any, core: Any, namespace: str) -> None:
    seen = []
    call = core.list_namespaced_config_map
    async with library.watch.Watch().stream(call, namespace, timeout_seconds=10) as events:
        await core.create_namespaced_config_map(namespace, config_map("c"))
        async for event in events:
            if event["object"].metadata.name != "c":
                continue
            seen.append(event["type"])
            if event["type"] == "ADDED":
                await core.delete_namespaced_config_map("c", namespace)
            if event["type"] == "DELETED":
                break
    assert seen == ["ADDED", "DELETED"]


async def test_exec_and_logs(library: Any, configuration: Any, core: Any, namespace: str) -> None:
    await core.create_namespaced_pod(namespace, pod("box", shell("echo ready; sleep 1000")))
    await running(library, core, namespace, "box")
    async with library.stream.WsApiClient(configuration) as connection:
        streams = library.client.CoreV1Api(connection)
        out = await streams.connect_get_namespaced_pod_exec(
            "box", namespace, command=["echo", "hi"], stdout=True, stderr=True
        )
    assert out == "hi\n"
    # It runs before it has said anything, so the log is followed for as long as the word is.
    log = core.read_namespaced_pod_log("box", namespace, follow=True, limit_bytes=6)
    assert await log == "ready\n"


async def test_many_at_a_time(core: Any, namespace: str) -> None:
    await asyncio.gather(
        *(core.create_namespaced_config_map(namespace, config_map(f"c{n}")) for n in range(50))
    )
    listed = await core.list_namespaced_config_map(namespace)
    assert len(listed.items) == 51

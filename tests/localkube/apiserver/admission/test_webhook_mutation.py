"""What webhooks make of objects, and who sees it afterwards."""

from collections.abc import AsyncIterator

import pytest

from kubeclient.objects import Obj
from localkube.apiserver.admission.attributes import Operation
from localkube.apiserver.status import ApiError
from tests.localkube.apiserver.admission.small_cluster import (
    container,
    pod,
    refused,
    write,
)
from tests.localkube.apiserver.admission.webhook_server import (
    patching,
    serving,
)
from tests.localkube.apiserver.admission.webhook_subject import (
    LABELLED,
    MUTATING,
    Subject,
    a_subject,
    config_map,
    configure,
    hook,
)


@pytest.fixture
async def subject() -> AsyncIterator[Subject]:
    async with a_subject() as found:
        yield found


async def test_a_patch_changes_the_object_in_place_and_warnings_are_passed_on(
    subject: Subject,
) -> None:
    async with serving(label=lambda _: LABELLED | {"warnings": ["careful"]}) as server:
        configure(subject.cluster, MUTATING, hook(server, "label"))
        thing = config_map()
        attributes = write("configmaps", thing)
        assert (await subject.mutate(attributes)).changed
    assert thing["metadata"]["labels"] == {"m": "1"}
    assert attributes.warnings == ["careful"]


async def test_webhooks_see_what_those_before_them_did(subject: Subject) -> None:
    def count(request: Obj) -> Obj:
        seen = int(request["object"]["data"].get("n", "0"))
        return patching({"op": "add", "path": "/data/n", "value": str(seen + 1)})

    async with serving(count=count) as server:
        configure(subject.cluster, MUTATING, hook(server, "count"), hook(server, "count", "b.b.c"))
        configure(subject.cluster, MUTATING, hook(server, "count"), name="i")
        thing = config_map()
        await subject.mutate(write("configmaps", thing))
    assert thing["data"]["n"] == "3"


@pytest.mark.parametrize(
    "patch",
    [
        patching({"op": "remove", "path": "/nope/x"}),
        patching({"op": "add", "path": "/data", "value": 5}),
    ],
)
async def test_a_patch_that_makes_no_sense_fails_even_where_failures_are_ignored(
    patch: Obj, subject: Subject
) -> None:
    async with serving(bad=lambda _: patch) as server:
        configure(subject.cluster, MUTATING, hook(server, "bad", failurePolicy="Ignore"))
        thing = config_map()
        with refused(500):
            await subject.mutate(write("configmaps", thing))
    assert thing == config_map()


async def test_what_is_deleted_cannot_be_patched(subject: Subject) -> None:
    async with serving(label=lambda _: LABELLED) as server:
        configure(subject.cluster, MUTATING, hook(server, "label"))
        with refused(500) as error:
            await subject.mutate(write("configmaps", None, Operation.DELETE, old=config_map()))
    assert error.value.status["message"] == (
        'Internal error occurred: admission webhook "a.b.c" attempted to modify the object, '
        "which is not supported for this operation"
    )


SIDECAR = patching({"op": "add", "path": "/spec/containers/-", "value": container("sidecar")})


async def test_what_a_webhook_adds_goes_through_the_plugins_too(subject: Subject) -> None:
    limits = [{"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "1"}}]
    subject.cluster.put("limitranges", "l", "ns", spec={"limits": limits})
    async with serving(inject=lambda _: SIDECAR) as server:
        configure(subject.cluster, MUTATING, hook(server, "inject"))
        thing = (await subject.admission.mutate(write("pods", pod()))).obj or {}
        assert len(server.reviews) == 1
    own, sidecar = thing["spec"]["containers"]
    assert sidecar["resources"] == own["resources"]
    assert sidecar["volumeMounts"] == own["volumeMounts"]
    assert sidecar["terminationMessagePath"] == "/dev/termination-log"


@pytest.mark.parametrize(
    ("policy", "calls"),
    [("Never", ["first", "second"]), ("IfNeeded", ["first", "second", "first"])],
)
async def test_webhooks_that_ask_for_it_see_later_changes(
    policy: str, calls: list[str], subject: Subject
) -> None:
    seen: list[str] = []

    def first(_: Obj) -> Obj:
        seen.append("first")
        return {}

    def second(_: Obj) -> Obj:
        seen.append("second")
        return LABELLED

    async with serving(first=first, second=second) as server:
        configure(
            subject.cluster,
            MUTATING,
            hook(server, "first", "a.a.a", reinvocationPolicy=policy),
            hook(server, "second", "b.b.b", reinvocationPolicy=policy),
        )
        await subject.admission.mutate(write("configmaps", config_map()))
    assert seen == calls


async def test_without_webhooks_nothing_is_called_and_little_is_done(subject: Subject) -> None:
    thing = pod()
    attributes = write("pods", thing)
    admission = subject.admission
    assert (await admission.mutate(attributes)).obj is thing
    await admission.validate(attributes)
    admission.charge(attributes)
    with pytest.raises(ApiError):
        await admission.mutate(write("pods", pod(), namespace="gone"))


@pytest.mark.parametrize("subresource", ["eviction", "binding", "exec"])
@pytest.mark.parametrize("operation", list(Operation))
async def test_what_is_sent_to_a_subresource_is_not_taken_for_a_pod(
    subresource: str, operation: Operation, subject: Subject
) -> None:
    body = {"apiVersion": "v1", "kind": "Other", "metadata": {"name": "p", "namespace": "ns"}}
    sent = dict(body)
    attributes = write("pods", sent, operation, old=pod(), subresource=subresource)
    await subject.admission.mutate(attributes)
    await subject.admission.validate(attributes)
    subject.admission.charge(attributes)
    assert sent == body

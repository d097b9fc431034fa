"""How the API server comes to call the webhook: registration, certificates, and what may fail."""

import asyncio
import contextlib
import datetime
from pathlib import Path

import pytest
from aiohttp.test_utils import TestClient, TestServer
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from gpupool.admission import authority as authority_module
from gpupool.admission import identity as identity_module
from gpupool.admission import run
from gpupool.admission.authority import BadAuthority, new_authority, shared_authority
from gpupool.admission.cards import ClusterCards
from gpupool.admission.identity import Identity
from gpupool.admission.registration import Reach, register
from gpupool.admission.review import BadReview, Rules, review_pod
from gpupool.admission.run import AdmissionSettings, Cards, run_admission
from gpupool.admission.server import application
from gpupool.contract.inventory import inventory_text
from gpupool.core.gpu import Card, Inventory
from kubeclient.client import Kube
from kubeclient.mirror import Mirror
from kubeclient.objects import Obj
from kubeclient.resources import (
    MUTATING_WEBHOOKS,
    NODES,
    SECRETS,
    VALIDATING_WEBHOOKS,
)
from tests.admission.server import api_server
from tests.scheduler.unreliable import Fault, unreliable

NOW = datetime.datetime.now(datetime.UTC)
SERVICE = AdmissionSettings(Rules(frozenset()), service="gpupool-admission", namespace="gpus")


def gpu_node(name: str) -> Obj:
    card = Card(0, f"GPU-{name}", "Tesla V100-SXM2-16GB", 16130)
    annotations = {"gpupool.io/inventory": inventory_text(Inventory((card,)))}
    return {"metadata": {"name": name, "labels": {"cgpu": "true"}, "annotations": annotations}}


def test_behind_a_service_the_certificate_is_for_its_names() -> None:
    assert run._names(SERVICE) == [
        "gpupool-admission.gpus.svc",
        "gpupool-admission.gpus.svc.cluster.local",
    ]
    assert run._reach(SERVICE, 8443) == Reach(service="gpupool-admission", namespace="gpus")


async def test_behind_a_service_the_api_server_is_told_its_name(tmp_path: Path) -> None:
    async with api_server(tmp_path) as kube:
        reach = run._reach(SERVICE, 8443)
        await register(kube, reach, new_authority(NOW).bundle_pem, ["scheduler"])
        for resource, path in ((MUTATING_WEBHOOKS, "/pods"), (VALIDATING_WEBHOOKS, "/allocations")):
            found = await kube.get(resource, "gpupool-admission")
            webhook = found["webhooks"][0]
            assert webhook["clientConfig"]["service"] == {
                "name": "gpupool-admission",
                "namespace": "gpus",
                "path": path,
                "port": 443,
            }


async def test_a_registration_that_fails_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(run, "_RETRY_S", 0.0)
    async with api_server(tmp_path) as kube:
        way = unreliable(kube)
        faults = [Fault.BUSY, Fault.LOST_REQUEST]
        way.choose = lambda _method, path: (
            faults.pop() if "webhookconfigurations" in path and faults else Fault.NONE
        )
        registered: asyncio.Queue[int] = asyncio.Queue()
        settings = AdmissionSettings(Rules(frozenset()))
        running = asyncio.create_task(
            run_admission(way.kube, settings, ready=registered.put_nowait)
        )
        async with asyncio.timeout(60):
            port = await registered.get()
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        found = await kube.get(MUTATING_WEBHOOKS, "gpupool-admission")
    assert found["webhooks"][0]["clientConfig"]["url"] == f"https://127.0.0.1:{port}/pods"
    assert caplog.messages.count("not registered, trying again") == 2


async def test_cards_of_a_deleted_node_are_not_offered_any_more(tmp_path: Path) -> None:
    async with api_server(tmp_path) as kube:
        cards = Cards(Mirror(kube, NODES))
        assert not cards.now().largest_units
        node = gpu_node("n")
        cards._take(None, node)
        assert cards.now().largest_units
        cards._take(node, None)
        cards._take(None, None)
        assert not cards.now().largest_units


async def test_a_server_certificate_is_renewed_while_its_authority_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with api_server(tmp_path) as kube:
        identity = Identity(kube, "kube-system", "gpupool-admission", ["127.0.0.1"])
        bundle_pem = await identity.refresh()
        first = identity._shown
        assert first is not None
        assert await identity.refresh() == bundle_pem
        assert identity._shown is first
        monkeypatch.setattr(identity_module, "is_due", lambda _certificate, _now: True)
        assert await identity.refresh() == bundle_pem
        second = identity._shown
        assert second is not None
        assert second.certificate != first.certificate
        assert second.authority == first.authority


async def test_of_two_replicas_that_renew_the_authority_the_faster_one_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with api_server(tmp_path) as kube:
        old = await _shared(kube)
        monkeypatch.setattr(authority_module, "is_due", lambda found, _: found == old.certificate)
        way = unreliable(kube)
        way.choose = lambda method, _path: Fault.ASKED_TWICE if method == "PUT" else Fault.NONE
        # The second request meets what the first one wrote: to the caller, another was faster.
        found = await _shared(way.kube)
        assert found.certificate != old.certificate
        assert found.bundle_pem == (await _shared(kube)).bundle_pem


async def _shared(kube: Kube) -> authority_module.Authority:
    return await shared_authority(kube, "kube-system", "gpupool-admission", NOW)


async def test_of_two_replicas_that_make_the_authority_the_faster_one_wins(tmp_path: Path) -> None:
    async with api_server(tmp_path) as kube:
        way = unreliable(kube)
        way.choose = lambda method, _path: Fault.ASKED_TWICE if method == "POST" else Fault.NONE
        assert (await _shared(way.kube)).bundle_pem == (await _shared(kube)).bundle_pem


async def test_a_key_of_another_kind_is_named(tmp_path: Path) -> None:
    pem = ed25519.Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    metadata = {"name": "gpupool-admission", "namespace": "kube-system"}
    async with api_server(tmp_path) as kube:
        await kube.create(SECRETS, {"metadata": metadata, "stringData": {"tls.key": pem.decode()}})
        with pytest.raises(BadAuthority, match="a key of type Ed25519PrivateKey"):
            await _shared(kube)


async def test_what_is_no_review_is_refused_with_400(caplog: pytest.LogCaptureFixture) -> None:
    def refuse(_review: Obj) -> Obj:
        raise BadReview("the body is not an AdmissionReview")

    async with TestClient(TestServer(application({"/pods": refuse}))) as client:
        for body in (b"no JSON", b"{}"):
            async with client.post("/pods", data=body) as answer:
                assert answer.status == 400
        async with client.get("/healthz") as answer:
            assert await answer.text() == "ok"
    # Without the access log, which is there if a test before has set the level of the root logger.
    ours = [each.message for each in caplog.records if each.name.startswith("gpupool")]
    assert ours == ["not a review"] * 2


@pytest.mark.parametrize(
    ("review", "words"),
    [
        ({}, "not an AdmissionReview"),
        ({"request": {"object": {}}, "apiVersion": "v1beta1"}, "apiVersion v1beta1"),
        (
            {"request": {"object": {}}, "apiVersion": "admission.k8s.io/v1"},
            "has no uid, or its object has no metadata",
        ),
    ],
)
def test_a_review_of_another_form_is_refused_in_words(review: Obj, words: str) -> None:
    with pytest.raises(BadReview, match=words):
        review_pod(review, Rules(frozenset()), ClusterCards())

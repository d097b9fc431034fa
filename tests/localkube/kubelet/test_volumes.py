import base64
import json
from dataclasses import replace
from pathlib import Path

import pytest

from kubeclient.objects import Obj
from kubeclient.resources import CONFIG_MAPS, PODS, SECRETS, VOLUME_CLAIMS, VOLUMES
from localkube.kubelet.volume_files import BadVolume, VolumeFile, writing
from tests.faults.loop_watchdog import Watchdog
from tests.localkube.kubelet.world import (
    World,
    container,
    is_ready,
    phase_is,
    settings,
    shell,
    world,
)

AT = "${LOCALKUBE_ROOT:-}"  # where mount paths begin, with or without a view of the container's own
FOREVER = "sleep 1000"


def mounted(volume: Obj, path: str = "/v", **more: object) -> dict[str, object]:
    return {
        "volumes": [{"name": "v", **volume}],
        "container": {"volumeMounts": [{"name": "v", "mountPath": path, **more}]},
    }


async def said(here: World, script: str, volume: Obj, **more: object) -> str:
    obj = shell("p", script, restartPolicy="Never", **mounted(volume, **more))  # type: ignore[arg-type]
    found = await here.run(obj, lambda p: p["status"]["phase"] in ("Succeeded", "Failed"))
    return (await here.log(found)).decode()


async def config(here: World, **data: str) -> None:
    metadata = {"name": "conf", "namespace": "default"}
    await here.kube.create(CONFIG_MAPS, {"metadata": metadata, "data": data})


async def test_config_maps_are_files(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        await config(here, a="1", b="2")
        volume = {"configMap": {"name": "conf"}}
        assert await said(here, f"cd {AT}/v; ls; cat a b", volume) == "a\nb\n12"


async def test_a_config_map_of_many_keys_keeps_nobody_waiting(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        await config(here, **{f"k{number}": "" for number in range(10_000)})
        volume = {"configMap": {"name": "conf"}}
        with Watchdog().watching() as watchdog:
            assert await said(here, f"ls {AT}/v | wc -l", volume) == "10000\n"
        assert not watchdog.stalls, "\n".join(watchdog.stalls)


async def test_many_volumes_keep_nobody_waiting(tmp_path: Path) -> None:
    volumes = [{"name": f"v{number}", "emptyDir": {}} for number in range(1_500)]
    async with world(tmp_path) as here:
        obj = shell("p", "echo here", restartPolicy="Never", volumes=volumes)
        with Watchdog().watching() as watchdog:
            found = await here.run(obj, phase_is("Succeeded"))
        assert await here.log(found) == b"here\n"
        assert not watchdog.stalls, "\n".join(watchdog.stalls)


def test_a_path_of_very_many_parts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadVolume, match="more than 100 parts"):
        list(writing(tmp_path, {"a/" * 500 + "b": VolumeFile(b"", 0o644)}))


def test_what_others_put_into_a_volume_goes_however_deep_it_lies(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "theirs").write_text("x")
    (tmp_path / "a" / "link").symlink_to(tmp_path)
    (tmp_path / "a" / "b" / "ours").write_text("x")
    list(writing(tmp_path, {"a/b/ours": VolumeFile(b"x", 0o644)}))
    found = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*"))
    assert found == ["a", "a/b", "a/b/ours"]


async def test_items_choose_names_and_modes(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        await config(here, a="1", b="2")
        items = [{"key": "a", "path": "deep/er", "mode": 0o400}]
        script = f"cd {AT}/v; find . -type f; stat -c %a deep/er"
        volume = {"configMap": {"name": "conf", "items": items}}
        assert await said(here, script, volume) == "./deep/er\n400\n"


async def test_a_part_of_a_volume_can_be_mounted(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        await config(here, a="1", b="2")
        volume = {"configMap": {"name": "conf"}}
        assert await said(here, f"cat {AT}/v", volume, subPath="b") == "2"


async def test_secrets_are_decoded(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        metadata = {"name": "s", "namespace": "default"}
        data = {"key": base64.b64encode(b"hidden").decode()}
        await here.kube.create(SECRETS, {"metadata": metadata, "data": data})
        volume = {"secret": {"secretName": "s"}}
        assert await said(here, f"cat {AT}/v/key", volume) == "hidden"


async def test_the_pod_can_read_about_itself(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        items = [
            {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}},
            {"path": "annotations", "fieldRef": {"fieldPath": "metadata.annotations"}},
            {
                "path": "cpu",
                "resourceFieldRef": {"containerName": "c", "resource": "limits.cpu"},
            },
        ]
        volume = {"downwardAPI": {"items": items}}
        spec = mounted(volume)
        obj = shell(
            "p",
            f"cd {AT}/v; cat name; echo; cat annotations; echo; cat cpu",
            restartPolicy="Never",
            annotations={"x": 'a "b"'},
            **spec,
        )
        found = await here.run(obj, phase_is("Succeeded"))
        assert (await here.log(found)).decode() == 'p\nx="a \\"b\\""\n8'


async def test_a_service_accounts_token_and_the_root_certificate(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        place = f"{AT}/var/run/secrets/kubernetes.io/serviceaccount"
        script = f"cd {place}; cat namespace ca.crt; echo; cut -d. -f2 token"
        obj = shell("p", script, restartPolicy="Never", automountServiceAccountToken=True)
        found = await here.run(obj, phase_is("Succeeded"))
        first, claims = (await here.log(found)).decode().splitlines()
        assert first == "defaulta certificate"
        told = json.loads(base64.urlsafe_b64decode(claims + "=="))
        assert told["sub"] == "system:serviceaccount:default:default"
        assert told["kubernetes.io"]["pod"]["uid"] == found["metadata"]["uid"]


async def test_a_pod_waits_for_a_missing_object(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        await here.create(shell("p", FOREVER, **mounted({"configMap": {"name": "conf"}})))
        event = await here.until_event("FailedMount", "p")
        assert event["message"] == (
            'MountVolume.SetUp failed for volume "v" : configmap "conf" not found'
        )
        found = await here.until("p", lambda p: bool(container(p)))
        assert container(found)["state"]["waiting"]["reason"] == "ContainerCreating"
        await config(here, a="1")
        await here.until("p", is_ready)


async def test_a_pod_does_not_wait_for_an_optional_object(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        volume = {"configMap": {"name": "conf", "optional": True}}
        assert await said(here, f"ls {AT}/v", volume) == ""


async def test_a_changed_object_changes_the_files(tmp_path: Path) -> None:
    quick = replace(settings(tmp_path), refresh_s=0.05)
    async with world(tmp_path, quick) as here:
        await config(here, a="1", b="2")
        script = f"until grep -q 3 {AT}/v/a && [ ! -e {AT}/v/b ]; do sleep 0.05; done; echo seen"
        obj = shell("p", script, restartPolicy="Never", **mounted({"configMap": {"name": "conf"}}))
        await here.run(obj)
        change = {"data": {"a": "3", "b": None}}
        await here.kube.patch(CONFIG_MAPS.path("default", "conf"), change)
        found = await here.until("p", phase_is("Succeeded"))
        assert await here.log(found) == b"seen\n"


async def test_a_downward_volume_follows_changes_of_its_pod_at_once(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        field = {"fieldPath": "metadata.annotations['x']"}
        volume = {"downwardAPI": {"items": [{"path": "x", "fieldRef": field}]}}
        script = f"until grep -q 2 {AT}/v/x; do sleep 0.05; done; echo seen"
        obj = shell("p", script, restartPolicy="Never", annotations={"x": "1"}, **mounted(volume))
        await here.run(obj)
        change = {"metadata": {"annotations": {"x": "2"}}}
        await here.kube.patch(PODS.path("default", "p"), change)
        found = await here.until("p", phase_is("Succeeded"))
        assert await here.log(found) == b"seen\n"


async def test_a_host_path_is_the_nodes_not_the_machines(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "file").write_text("mine")
    async with world(tmp_path) as here:
        volume = {"hostPath": {"path": f"/{secret}"}}
        assert await said(here, f"ls {AT}/v; touch {AT}/v/x", volume) == ""
        event = await here.until_event("HostPathSimulated", "p")
        text = f"hostPath {secret} is a directory of the simulated node, not of this machine"
        assert event["message"] == text
        assert [path.name for path in secret.iterdir()] == ["file"]


async def test_an_allowed_host_path_is_the_machines(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "file").write_text("ours")
    allowed = replace(settings(tmp_path), host_paths=(shared,))
    async with world(tmp_path, allowed) as here:
        assert await said(here, f"cat {AT}/v/file", {"hostPath": {"path": str(shared)}}) == "ours"


async def test_the_type_of_a_host_path_is_checked(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        volume = {"hostPath": {"path": "/opt/thing", "type": "Directory"}}
        await here.create(shell("p", FOREVER, **mounted(volume)))
        event = await here.until_event("FailedMount", "p")
        assert event["message"].endswith(
            "hostPath type check failed: /opt/thing is not a directory"
        )


async def test_a_kind_that_is_not_supported_is_refused(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        volume = {"nfs": {"server": "example.com", "path": "/"}}
        await here.create(shell("p", FOREVER, **mounted(volume)))
        event = await here.until_event("FailedMount", "p")
        assert event["message"].endswith("volumes of type nfs are not supported on local nodes")


async def test_claims_keep_their_files(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        await _bound_claim(here)
        volume = {"persistentVolumeClaim": {"claimName": "disk"}}
        script = f"cat {AT}/v/x; echo $HOSTNAME > {AT}/v/x"
        for name, before in (("first", b""), ("second", b"first\n")):
            obj = shell(name, script, restartPolicy="Never", **mounted(volume))
            found = await here.run(obj, phase_is("Succeeded"))
            assert (await here.log(found)).endswith(before)


async def _bound_claim(here: World) -> None:
    storage = {"storage": "1Gi"}
    modes = {"accessModes": ["ReadWriteOnce"]}
    volume = {
        "metadata": {"name": "pv"},
        "spec": {**modes, "capacity": storage, "hostPath": {"path": "/somewhere"}},
    }
    await here.kube.create(VOLUMES, volume)
    claim = {
        "metadata": {"name": "disk", "namespace": "default"},
        "spec": {**modes, "resources": {"requests": storage}, "volumeName": "pv"},
    }
    await here.kube.create(VOLUME_CLAIMS, claim)
    path = VOLUME_CLAIMS.path("default", "disk", "status")
    await here.kube.patch(path, {"status": {"phase": "Bound"}})


@pytest.mark.parametrize("path", ["../out", "/etc/out", "a/../../out"])
def test_no_file_leaves_its_volume(tmp_path: Path, path: str) -> None:
    volume = tmp_path / "volume"
    volume.mkdir()
    with pytest.raises(BadVolume):
        list(writing(volume, {path: VolumeFile(b"x", 0o644)}))
    assert [entry.name for entry in tmp_path.iterdir()] == ["volume"]


async def test_a_source_that_is_named_very_often_fills_no_memory(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        await config(here, large="x" * 1_000_000)
        sources = [
            {"configMap": {"name": "conf", "items": [{"key": "large", "path": f"p{number}"}]}}
            for number in range(100)
        ]
        await here.create(shell("p", "true", **mounted({"projected": {"sources": sources}})))
        event = await here.until_event("FailedMount", "p")
    assert "its sources have more than 33554432 bytes together" in event["message"]

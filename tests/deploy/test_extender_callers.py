"""Who the extender of the chart answers: kube-scheduler, by a certificate that the chart makes."""

import base64
import json
import ssl
from pathlib import Path

import aiohttp
import pytest
import yaml
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.x509 import load_pem_x509_certificate

from gpupool.callers import ServerTls, TlsFiles
from gpupool.health import Address, serving
from gpupool.testing import Cluster
from kubeclient.objects import Obj
from testbed.find_kubectl import ensure_kubectl
from tests.deploy.test_chart import rendered, upgraded
from tests.e2e.kubectl import Kubectl

pytestmark = pytest.mark.clients

SERVER, CLIENT = "gpupool-extender", "gpupool-extender-client"


def made(*flags: str) -> dict[tuple[str, str], Obj]:
    objects = yaml.safe_load_all(rendered("extender", *flags))
    return {(each["kind"], each["metadata"]["name"]): each for each in objects if each}


def pod_of(objects: dict[tuple[str, str], Obj]) -> Obj:
    spec: Obj = objects["Deployment", SERVER]["spec"]["template"]["spec"]
    return spec


def volumes(spec: Obj) -> dict[str, Obj]:
    return {each["name"]: each.get("secret", {}) for each in spec["volumes"]}


def written(secret: Obj, folder: Path) -> dict[str, str]:
    files = {}
    for key, text in secret["data"].items():
        file = folder / f"{secret['metadata']['name']}-{key}"
        file.write_bytes(base64.b64decode(text))
        files[key] = str(file)
    return files


async def test_the_certificate_of_the_chart_lets_kube_scheduler_in_and_nobody_else(
    tmp_path: Path,
) -> None:
    objects = made()
    server = written(objects["Secret", SERVER], tmp_path)
    client = written(objects["Secret", CLIENT], tmp_path)
    assert set(client) == {"tls.crt", "tls.key", "ca.crt"}
    tls = ServerTls(TlsFiles(server["tls.crt"], server["tls.key"], client["ca.crt"]))
    app = web.Application(middlewares=[tls.guard(lambda _: False)])
    caller = ssl.create_default_context(cafile=server["tls.crt"])
    name = "gpupool-extender.kube-system.svc"
    async with serving(app, Address("127.0.0.1", 0), tls.context) as address:

        async def status() -> int:
            connector = aiohttp.TCPConnector(ssl=caller)
            async with aiohttp.ClientSession(connector=connector) as session:
                url = f"https://127.0.0.1:{address.port}/gpushare-scheduler/inspect"
                async with session.get(url, server_hostname=name) as answer:
                    return answer.status

        assert await status() == 401
        caller.load_cert_chain(client["tls.crt"], client["tls.key"])
        assert await status() == 404, "let in; there is nothing to find"


def test_the_keys_of_the_chart_make_handshakes_cheap(tmp_path: Path) -> None:
    """kube-scheduler keeps two idle connections, and makes new ones for all further Bindings."""
    objects = made()
    for name in (SERVER, CLIENT):
        for key, file in written(objects["Secret", name], tmp_path).items():
            if key.endswith(".crt"):
                shown = load_pem_x509_certificate(Path(file).read_bytes()).public_key()
                assert isinstance(shown, EllipticCurvePublicKey), (name, key)
                assert shown.curve.name == "secp256r1"


def test_the_extender_sees_the_authority_and_not_the_key_of_kube_scheduler() -> None:
    spec = pod_of(made())
    (container,) = spec["containers"]
    assert "--client-ca=/etc/gpupool/callers/ca.crt" in container["args"]
    assert volumes(spec)["callers"] == {
        "secretName": CLIENT,
        "defaultMode": 0o444,
        "items": [{"key": "ca.crt", "path": "ca.crt"}],
    }


def test_an_open_extender_has_no_authority_but_its_certificate_is_made() -> None:
    objects = made("--set=extender.knownCallersOnly=false")
    spec = pod_of(objects)
    assert "--client-ca" not in json.dumps(spec)
    assert "callers" not in volumes(spec)
    assert ("Secret", CLIENT) in objects


def test_secrets_of_your_own_take_the_place_of_those_of_the_chart() -> None:
    objects = made("--set=extender.serverSecret=mine", "--set=extender.clientSecret=theirs")
    assert ("Secret", SERVER) not in objects
    assert ("Secret", CLIENT) not in objects
    found = volumes(pod_of(objects))
    assert (found["tls"]["secretName"], found["callers"]["secretName"]) == ("mine", "theirs")


def test_an_upgrade_does_not_shut_out_a_kube_scheduler_that_shows_nothing(tmp_path: Path) -> None:
    program = ensure_kubectl()
    if program is None:
        pytest.skip("NO KUBECTL: the upgrade was not tried.")
    with Cluster() as cluster:
        kubectl = Kubectl(program, cluster.kubeconfig, tmp_path, "kube-system")

        open_one = made("--set=extender.knownCallersOnly=false")
        kubectl("apply", "-f", "-", stdin=yaml.safe_dump(open_one["Deployment", SERVER]))
        assert "Upgrade with --set extender.knownCallersOnly=false first" in upgraded(cluster)
        assert "--client-ca" not in upgraded(cluster, "--set=extender.knownCallersOnly=false")

        secret = yaml.safe_dump(open_one["Secret", CLIENT])
        kubectl("apply", "-f", "-", stdin=secret)
        kept = open_one["Secret", CLIENT]["data"]["tls.key"]
        assert kept in upgraded(cluster), "the certificate that kube-scheduler has now"

        kubectl("delete", "secret", CLIENT)
        kubectl("apply", "-f", "-", stdin=yaml.safe_dump(made()["Deployment", SERVER]))
        assert "--client-ca" in upgraded(cluster), "who deletes it wants a new one"

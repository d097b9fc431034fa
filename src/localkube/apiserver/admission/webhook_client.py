"""HTTPS to webhooks: their own certificates, a time limit, no redirects, answers of bounded size.

NotReached    no usable answer came; says why in the words of Kubernetes' own client

aiohttp is imported at the first call: it takes as long to load as all the rest of the server, and
most clusters have no webhooks.
"""

import errno
import ipaddress
import ssl
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import orjson

from kubeclient.objects import Obj
from localkube.apiserver.admission.attributes import ClusterView
from localkube.apiserver.admission.webhook_config import Callee, Service

if TYPE_CHECKING:
    import aiohttp

MAX_ANSWER_BYTES = 3 * 1024 * 1024
_SHOWN_BYTES = 1024
_SERVICE_LABEL = "kubernetes.io/service-name"
_HEADERS = {
    "Accept": "application/json, */*",
    "Content-Type": "application/json",
    "User-Agent": "kube-apiserver-admission",
}


class NotReached(Exception):
    pass


@dataclass(frozen=True, slots=True)
class Destination:
    """`shown` is how texts name it; the connection goes to `url`, checked against `host`."""

    url: str
    shown: str
    host: str | None = None


class WebhookClient:
    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def post(self, callee: Callee, document: Obj, cluster: ClusterView) -> Any:
        """The parsed answer. Raises NotReached."""
        import aiohttp

        to = _destination(callee, cluster)
        try:
            async with self._opened().post(
                to.url,
                data=orjson.dumps(document),
                headers=_HEADERS | ({"Host": urlsplit(to.shown).netloc} if to.host else {}),
                ssl=_trust(callee.ca_pem),
                # The connection goes to a loopback address, but the certificate names the service.
                server_hostname=to.host,
                timeout=aiohttp.ClientTimeout(total=callee.timeout_s),
                allow_redirects=False,
            ) as response:
                body = await _read(response)
        except TimeoutError:
            raise NotReached(f'Post "{to.shown}": context deadline exceeded') from None
        except (aiohttp.ClientError, OSError) as error:
            raise NotReached(f'Post "{to.shown}": {_reason(error)}') from None
        return _parsed(response.status, body)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _opened(self) -> "aiohttp.ClientSession":
        import aiohttp

        if self._session is None:
            # Requests hold whole objects, even Secrets: no proxy from the environment, and no
            # cookies.
            self._session = aiohttp.ClientSession(
                cookie_jar=aiohttp.DummyCookieJar(), trust_env=False
            )
        return self._session


def _destination(callee: Callee, cluster: ClusterView) -> Destination:
    query = f"timeout={callee.timeout_s}s"
    if callee.service is None:
        parts = urlsplit(callee.url)
        if parts.scheme != "https" or not parts.hostname:
            raise NotReached(f"unsupported URL {callee.url}: only https is called")
        url = f"https://{parts.netloc}{parts.path or '/'}?{query}"
        return Destination(url, url)
    service = callee.service
    host = f"{service.name}.{service.namespace}.svc"
    shown = f"https://{host}:{service.port}{service.path}?{query}"
    address = _service_address(service, cluster, shown)
    return Destination(f"https://{address}{service.path}?{query}", shown, host)


def _service_address(service: Service, cluster: ClusterView, shown: str) -> str:
    """Through the service's endpoints to a process of this machine; nowhere else."""
    found = cluster.get("services", service.namespace, service.name)
    if found is None:
        raise NotReached(f'Post "{shown}": service "{service.name}" not found')
    ports = found["spec"].get("ports") or ()
    port = next((each for each in ports if each.get("port") == service.port), None)
    if port is None:
        raise NotReached(
            f'Post "{shown}": no service port {service.port} found for service "{service.name}"'
        )
    for each in cluster.list("endpointslices.discovery.k8s.io", service.namespace):
        labels = each["metadata"].get("labels") or {}
        if labels.get(_SERVICE_LABEL) == service.name:
            address = _endpoint(each, port.get("name", ""))
            if address:
                return address
    raise NotReached(f'Post "{shown}": no endpoints available for service "{service.name}"')


def _endpoint(endpoint_slice: Obj, port_name: str) -> str | None:
    ports = endpoint_slice.get("ports") or ()
    number = next((p.get("port") for p in ports if (p.get("name") or "") == port_name), None)
    for endpoint in endpoint_slice.get("endpoints") or ():
        if (endpoint.get("conditions") or {}).get("ready", True) is False or not number:
            continue
        for address in endpoint.get("addresses") or ():
            if _is_loopback(address):
                return f"[{address}]:{number}" if ":" in address else f"{address}:{number}"
    return None


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


@lru_cache(maxsize=64)
def _trust(ca_pem: str) -> ssl.SSLContext:
    """Only the webhook's own authorities if it names any, those of the machine otherwise."""
    try:
        return ssl.create_default_context(cadata=ca_pem or None)
    except ssl.SSLError as error:
        raise NotReached(f"unable to load root certificates: {error.reason}") from None


async def _read(response: "aiohttp.ClientResponse") -> bytes:
    body = await response.content.read(MAX_ANSWER_BYTES + 1)
    while len(body) <= MAX_ANSWER_BYTES:
        more = await response.content.read(MAX_ANSWER_BYTES + 1 - len(body))
        if not more:
            return body
        body += more
    raise NotReached(f"the answer is larger than {MAX_ANSWER_BYTES} bytes")


def _parsed(status: int, body: bytes) -> Any:
    text = body[:_SHOWN_BYTES].decode(errors="replace").strip()
    if status == 404:
        raise NotReached("the server could not find the requested resource")
    if status >= 500:
        raise NotReached(
            f'an error on the server ("{text}") has prevented the request from succeeding'
        )
    if not 200 <= status < 300:
        raise NotReached(text or f"the server answered with the status code {status}")
    try:
        return orjson.loads(body)
    except ValueError as error:
        raise NotReached(f"couldn't get version/kind; json parse error: {error}") from None


def _reason(error: Exception) -> str:
    import aiohttp

    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        inner = error.certificate_error
        detail = getattr(inner, "verify_message", "") or str(inner)
        return f"tls: failed to verify certificate: x509: {detail}"
    if isinstance(error, aiohttp.ClientConnectorError):
        where = f"dial tcp {error.host}:{error.port}"
        if error.os_error.errno == errno.ECONNREFUSED:
            return f"{where}: connect: connection refused"
        return f"{where}: {error.os_error.strerror or error.os_error}"
    return str(error) or type(error).__name__

"""Every namespace has a ServiceAccount "default" and the cluster's CA in kube-root-ca.crt."""

from collections.abc import Iterable

from kubeclient.errors import AlreadyExists, NotFound, Refused
from kubeclient.mirror import Key
from kubeclient.objects import Obj
from kubeclient.resources import CONFIG_MAPS, NAMESPACES, SERVICE_ACCOUNTS, Resource
from localkube.controllers.run import Context, Controller, KeysOf, Watch

ROOT_CA = "kube-root-ca.crt"
_WHY = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal "
    "endpoints such as the internal service IP or kubernetes.default.svc. No other usage is "
    "guaranteed across distributions of Kubernetes clusters."
)


def controller(ca_pem: str) -> Controller:
    async def reconcile(key: Key, context: Context) -> float | None:
        name = key[1]
        namespace = context.of(NAMESPACES).get(name)
        if namespace is None or "deletionTimestamp" in namespace["metadata"]:
            return None
        if context.of(SERVICE_ACCOUNTS).get("default", name) is None:
            await _create(context, SERVICE_ACCOUNTS, _object("ServiceAccount", "default", name))
        bundle = context.of(CONFIG_MAPS).get(ROOT_CA, name)
        if bundle is None:
            wanted = _object("ConfigMap", ROOT_CA, name)
            wanted["metadata"]["annotations"] = {"kubernetes.io/description": _WHY}
            wanted["data"] = {"ca.crt": ca_pem}
            await _create(context, CONFIG_MAPS, wanted)
        elif bundle.get("data") != {"ca.crt": ca_pem}:
            await context.kube.patch(CONFIG_MAPS.path(name, ROOT_CA), {"data": {"ca.crt": ca_pem}})
        return None

    watches = (
        Watch(NAMESPACES),
        Watch(SERVICE_ACCOUNTS, _namespace_if("default")),
        Watch(CONFIG_MAPS, _namespace_if(ROOT_CA)),
    )
    return Controller("serviceaccount-controller", watches, reconcile)


def _namespace_if(name: str) -> KeysOf:
    def keys(obj: Obj, _: Context) -> Iterable[Key]:
        metadata = obj["metadata"]
        return [("", metadata["namespace"])] if metadata["name"] == name else []

    return keys


def _object(kind: str, name: str, namespace: str) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
    }


async def _create(context: Context, resource: Resource, obj: Obj) -> None:
    try:
        await context.kube.create(resource, obj)
    except (AlreadyExists, NotFound):
        pass  # somebody else created it, or the namespace is gone
    except Refused as error:
        if error.code != 403:  # the namespace is being deleted
            raise

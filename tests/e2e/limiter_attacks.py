"""Parts of manifests that try to switch the limiter off, for the local cluster and real ones."""

from collections.abc import Callable

from kubeclient.objects import Obj

Change = Callable[[Obj, Obj], None]  # of the pod's spec, and of its one container

SHARE_MIB = 1075  # one of the 15 units of a V100
OVER, INSIDE = "something else is mounted over it", "it is mounted inside another volume"
_FORGED = "forged"
# Prints the results of cuInit, of a context and of an allocation of 8 GiB, and the memory of the
# card.
TAKE = """
import ctypes
cuda, at, context, total = (
    ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64(), ctypes.c_void_p(), ctypes.c_size_t()
)
print(cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), end=" ")
cuda.cuCtxSetCurrent(context)
print(cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(8 << 30)), end=" ")
cuda.cuDeviceTotalMem_v2(ctypes.byref(total), 0)
print(total.value >> 20, flush=True)
"""


def forged_files() -> Obj:
    """A limit file and settings, as somebody would like them."""
    content = {
        "limits": "unlimited\n",
        "limiter.conf": "limits=/own/limits\nlimits_mount=\n",
        "nothing": "",
    }
    metadata = {"name": _FORGED}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": content}


def message(path: str) -> Change:
    """The file for the container's last message, which the container can write."""

    def change(_spec: Obj, container: Obj) -> None:
        container["terminationMessagePath"] = path

    return change


def mount(path: str, **more: str) -> Change:
    """The forged files at this path."""

    def change(spec: Obj, container: Obj) -> None:
        volume = {"name": _FORGED, "configMap": {"name": _FORGED}}
        spec["volumes"] = [*spec.get("volumes", ()), volume]
        mounted = {"name": _FORGED, "mountPath": path, **more}
        container["volumeMounts"] = [*container.get("volumeMounts", ()), mounted]

    return change


def empty(path: str) -> Change:
    """An empty volume at this path."""

    def change(spec: Obj, container: Obj) -> None:
        spec["volumes"] = [*spec.get("volumes", ()), {"name": "empty", "emptyDir": {}}]
        mounted = {"name": "empty", "mountPath": path}
        container["volumeMounts"] = [*container.get("volumeMounts", ()), mounted]

    return change

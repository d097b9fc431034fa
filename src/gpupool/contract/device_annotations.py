"""Annotations by which other programs give devices to the containers of a pod.

With NVIDIA's NRI plugin, a pod whose annotation names a card gets that card, whoever wrote the
annotation and whoever holds the card. The operator's own pods ask for the management devices in the
same way: these the plugin gives only to the namespaces of the operator, so they are left alone in
the plugin's own annotations.
"""

from collections.abc import Mapping

from gpupool.contract.names import (
    CDI_MANAGEMENT,
    GROUP_CDI,
    GROUP_NVIDIA_CDI,
    PREFIX_NVIDIA_CONTAINER,
)

DEVICE_GROUPS = (GROUP_CDI, GROUP_NVIDIA_CDI)  # the group itself, or <group>/<anything>
# Of the keys with this prefix, users may write these: how much of a card, not which one.
_ASKS = (".gpu-memory.request", ".gpu-memory.limit", ".gpu-compute.mode", ".gpu-compute.portion")


def names_devices(key: str, value: str) -> bool:
    """Whether the annotation gives devices to a container."""
    if key.startswith(PREFIX_NVIDIA_CONTAINER):
        return not key.endswith(_ASKS)
    group = key.partition("/")[0]
    return group == GROUP_CDI or (group == GROUP_NVIDIA_CDI and not _is_management(value))


def device_annotations(annotations: Mapping[str, str]) -> list[str]:
    """Their keys, sorted."""
    return sorted(key for key, value in annotations.items() if names_devices(key, value))


def _is_management(value: str) -> bool:
    devices = [device.strip() for device in value.split(",")]
    return all(device.startswith(f"{CDI_MANAGEMENT}=") for device in devices)

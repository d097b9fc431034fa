"""The checkpoint: a file with the device grants of a node, in the format of the real kubelet.

It is written to a new file, which then replaces the old one, so a kubelet that is killed leaves the
old content or the new one, never a part. A file that is damaged nevertheless (the checksum tells)
is ignored with a warning: plugins register again, and pods ask for devices again. Pods with plugins
can write it, too, with the right checksum: so what is in it may be anything."""

import base64
import logging
import os
import zlib
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import msgspec
import orjson

from kubeclient.kubeletapi.messages import ContainerAllocateResponse
from kubeclient.wire import decode, encode
from localkube.kubelet.beneath import opened, read_in, replace_in
from localkube.kubelet.devices.grants import Grant

log = logging.getLogger(__name__)

NAME = "kubelet_internal_checkpoint"
_MAX_BYTES = 64 * 1024 * 1024
_NO_NUMA = "-1"


class _Entry(msgspec.Struct, frozen=True):
    pod: str = msgspec.field(name="PodUID")
    container: str = msgspec.field(name="ContainerName")
    resource: str = msgspec.field(name="ResourceName")
    ids: dict[str, tuple[str, ...]] = msgspec.field(name="DeviceIDs")
    response: str = msgspec.field(name="AllocResp")


class _Data(msgspec.Struct, frozen=True):
    entries: tuple[_Entry, ...] = msgspec.field(name="PodDeviceEntries")
    registered: dict[str, tuple[str, ...]] = msgspec.field(name="RegisteredDevices")


def write(directory: Path, grants: Iterable[Grant], registered: Mapping[str, list[str]]) -> None:
    data = {
        "PodDeviceEntries": [_entry(grant) for grant in grants],
        "RegisteredDevices": registered,
    }
    text = orjson.dumps({"Data": data, "Checksum": _sum(data)})
    with _open(directory) as place:
        replace_in(place, NAME, text, 0o600)


def read(directory: Path) -> tuple[list[Grant], list[str]]:
    """The grants, and the resources that had plugins."""
    path = directory / NAME
    try:
        with _open(directory) as place:
            text = read_in(place, NAME, _MAX_BYTES + 1)
        if text is None:
            return [], []
        if len(text) > _MAX_BYTES:
            raise ValueError(f"more than {_MAX_BYTES} bytes")
        found = orjson.loads(text)
        if found["Checksum"] != _sum(found["Data"]):
            raise ValueError("wrong checksum")
        data = msgspec.convert(found["Data"], _Data)
        return [_grant(entry) for entry in data.entries], list(data.registered)
    except (OSError, ValueError, KeyError, TypeError, msgspec.ValidationError) as error:
        log.warning("damaged checkpoint of devices", extra={"file": path, "error": repr(error)})
        return [], []


def _open(directory: Path) -> AbstractContextManager[int]:
    """Pods with plugins write there, too: no link of theirs is followed."""
    return opened(os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))


def _sum(data: Any) -> int:
    # Sorted, so that the sum depends on the content only, not on the order of the keys.
    return zlib.crc32(orjson.dumps(data, option=orjson.OPT_SORT_KEYS))


def _entry(grant: Grant) -> dict[str, Any]:
    return {
        "PodUID": grant.pod,
        "ContainerName": grant.container,
        "ResourceName": grant.resource,
        "DeviceIDs": {_NO_NUMA: grant.ids},
        "AllocResp": base64.b64encode(encode(grant.response)).decode(),
    }


def _grant(entry: _Entry) -> Grant:
    return Grant(
        entry.pod,
        entry.container,
        entry.resource,
        tuple(id for ids in entry.ids.values() for id in ids),
        decode(ContainerAllocateResponse, base64.b64decode(entry.response)),
    )

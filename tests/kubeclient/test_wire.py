"""Our codec against the protobuf library's."""

import importlib.util
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubeclient.kubeletapi import messages
from kubeclient.nri import messages as nri
from kubeclient.wire import BadMessage, decode, encode

KINDS: tuple[type[Any], ...] = (
    messages.RegisterRequest,
    messages.ListAndWatchResponse,
    messages.PreferredAllocationRequest,
    messages.AllocateResponse,
    messages.ListPodResourcesResponse,
    nri.Request,
    nri.Response,
    nri.RegisterPluginRequest,
    nri.ConfigureRequest,
    nri.ConfigureResponse,
    nri.PodSandbox,
    nri.Container,
    nri.SynchronizeResponse,
    nri.CreateContainerResponse,
)
PROTOS = {messages: "kubeletapi/deviceplugin.proto", nri: "nri/nri.proto"}


TEXTS = st.text(st.sampled_from("a-é\0"), max_size=3)
NUMBERS = st.sampled_from((0, 1, -1, 127, 128, 2**31 - 1, -(2**31)))


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Small values of what a message's attributes can be."""
    if get_origin(hint) is tuple:
        return st.lists(values(get_args(hint)[0]), max_size=2).map(tuple)
    if get_origin(hint) is Mapping:
        return st.dictionaries(TEXTS, TEXTS, max_size=3)
    if get_origin(hint) is UnionType:
        return st.none() | values(get_args(hint)[0])
    simple = {str: TEXTS, bytes: st.binary(max_size=3), bool: st.booleans(), int: NUMBERS}
    return simple[hint] if hint in simple else messages_of(hint)


@cache  # making a strategy takes longer than drawing from it
def messages_of(kind: Any) -> st.SearchStrategy[Any]:
    hints = get_type_hints(kind)
    return st.builds(kind, **{row.name: values(hints[row.name]) for row in fields(kind)})


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """By the name of our module: what the protobuf compiler makes of the same messages."""
    return {
        ours.__name__: compiled(Path(__file__).parent / proto, tmp_path_factory.mktemp("proto"))
        for ours, proto in PROTOS.items()
    }


def compiled(proto: Path, out: Path) -> Any:
    from grpc_tools import protoc

    code = protoc.main(["", f"-I{proto.parent}", f"--python_out={out}", str(proto)])
    assert code == 0
    spec = importlib.util.spec_from_file_location(proto.stem, out / f"{proto.stem}_pb2.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_what_we_write_the_protobuf_library_reads_and_back(
    reference: dict[str, Any], kind: Any, data: st.DataObject
) -> None:
    message = data.draw(messages_of(kind))
    theirs = getattr(reference[kind.__module__], kind.__name__).FromString(encode(message))
    raw = theirs.SerializeToString()
    assert len(raw) == len(encode(message))  # the order within a map is free
    assert decode(kind, raw) == message


@pytest.mark.parametrize("kind", KINDS)
@given(raw=st.binary(max_size=64))
def test_bytes_of_anything_give_a_message_or_a_complaint(kind: type[Any], raw: bytes) -> None:
    try:
        message = decode(kind, raw)
    except BadMessage:
        return
    assert isinstance(message, kind)


def test_a_register_request_is_these_bytes() -> None:
    request = messages.RegisterRequest("v1beta1", "x.sock", "a.b/c")
    assert encode(request) == b"\x0a\x07v1beta1\x12\x06x.sock\x1a\x05a.b/c"


def test_fields_of_newer_versions_are_skipped() -> None:
    newer = encode(messages.CdiDevice("a.b/c=d")) + b"\x7a\x02hi\x80\x01\x05\x8d\x01\0\0\0\0"
    assert decode(messages.CdiDevice, newer) == messages.CdiDevice("a.b/c=d")


def test_a_message_that_was_cut_is_refused() -> None:
    raw = encode(messages.CdiDevice("a.b/c=d"))
    with pytest.raises(BadMessage, match="ends within field 1"):
        decode(messages.CdiDevice, raw[:-1])


def test_a_field_of_another_type_is_refused() -> None:
    with pytest.raises(BadMessage, match=r"CdiDevice\.name: wire type 0, wanted 2"):
        decode(messages.CdiDevice, b"\x08\x01")

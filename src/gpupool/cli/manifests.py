"""Reads manifests for commands: from a file or standard input, as kubectl does."""

import re
import sys
from collections.abc import Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpupool.cli.numbers import told

if TYPE_CHECKING:
    from gpupool.contract.manifests import PodTemplate
    from kubeclient.client import Kube
    from kubeclient.errors import Refused
    from kubeclient.objects import Obj

_WITH_PODS = ("Pod", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob")
_MOST_BYTES = 8 << 20
_BAD, _FORBIDDEN, _INVALID = 400, 403, 422
# In what an API server says to a user without this right. Quotas and LimitRanges forbid, too.
_NO_RIGHT = 'cannot create resource "pods"'
_MOST_VALUES = 1_000_000


def read_pod_templates(file: Path, namespace: str) -> "list[PodTemplate]":
    """The pods that the objects of the file would make; "-" is standard input."""
    from gpupool.contract.manifests import objects_of, pod_templates
    from gpupool.contract.yaml_document import read_documents

    source = "standard input" if str(file) == "-" else str(file)
    found = read_documents(_text(file, source), _MOST_BYTES, _MOST_VALUES)
    if isinstance(found, tuple):
        raise click.ClickException("\n".join(problem.line(source) for problem in found))
    objects = [obj for document in found for obj in objects_of(document.data)]
    _check_spelling(objects, source)
    _check_counts(objects, source)
    templates = pod_templates(objects, namespace)
    if not templates:
        kinds = ", ".join(sorted(set(map(_described, objects))))
        if not kinds:
            kinds = _of_no_object([document.data for document in found])
        raise click.ClickException(
            f"{source}: wanted a Pod or a workload such as a Deployment, "
            f"found {kinds or 'nothing'}."
        )
    return templates


def _of_no_object(documents: "list[object]") -> str:
    if any(isinstance(each, dict) for each in documents):
        return "a list without objects"
    return "a value that is no object" if any(documents) else ""


def _check_spelling(objects: "list[Obj]", source: str) -> None:
    """Old documents have `kind: pod`, which no API server takes."""
    known = {kind.lower(): kind for kind in _WITH_PODS}
    for obj in objects:
        found = str(obj.get("kind") or "")
        wanted = known.get(found.lower(), found)
        if found != wanted:
            raise click.ClickException(
                f"{source}: wanted kind: {wanted}, found {found}. "
                "The API server knows kinds only with their capital letters."
            )


def _check_counts(objects: "list[Obj]", source: str) -> None:
    """The dry run asks about a pod alone: nobody else would say it of the workload."""
    from gpupool.contract.manifests import wrong_count

    for obj in objects:
        wrong = wrong_count(obj)
        if wrong is not None:
            field, found = wrong
            raise click.ClickException(
                f"{source}: {_shown(obj)}: {field}: wanted a whole number from 0 on, "
                f'found "{told(str(found))}".'
            )


def _shown(obj: "Obj") -> str:
    metadata = obj.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return f"{obj['kind']} {told(str(name or 'without a name'))}"


def _described(obj: "Obj") -> str:
    kind = str(obj.get("kind") or "an object of no kind")
    return f"{kind} without containers" if kind in _WITH_PODS else kind


def _text(file: Path, source: str) -> str:
    try:
        if str(file) == "-":
            raw = sys.stdin.buffer.read(_MOST_BYTES + 1)
        else:
            with file.open("rb") as opened:
                raw = opened.read(_MOST_BYTES + 1)
        text = raw.decode("utf-8-sig")
    except OSError as error:
        words = f"wanted a manifest that you may read, found: {error.strerror}"
        raise click.ClickException(f"{source}: {words}.") from error
    except UnicodeDecodeError as error:
        from kubeclient.yaml_text import not_utf8

        raise click.ClickException(f"{source}: {not_utf8(error)}") from error
    # JSON may have tabs between its tokens, YAML may not; inside of its texts they are escaped.
    return text.replace("\t", " ") if text.lstrip().startswith("{") else text


async def completed(kube: "Kube", template: "PodTemplate") -> "Obj":
    """The pod as the API server would create it: with defaults and with what admission adds. A dry
    run, so nothing is created. Raises KubeError, in the words that `kubectl apply` would show."""
    from kubeclient.resources import PODS

    metadata = template.pod["metadata"]
    # A generated name: a pod of this name may exist already.
    named = {**metadata, "generateName": f"{metadata['name']}-"}
    del named["name"]
    pod = {**template.pod, "metadata": named}
    return await kube.create(PODS, pod, query={"dryRun": "All"})


async def all_completed(kube: "Kube", templates: "Sequence[PodTemplate]") -> "list[Obj]":
    """Raises ClickException that names the one that the API server would refuse."""
    from kubeclient.errors import Refused

    made = []
    for template in templates:
        try:
            made.append(await completed(kube, template))
        except Refused as error:
            has_right = _NO_RIGHT not in str(error)  # who has none is told so in other words
            if not has_right or error.code not in (_BAD, _FORBIDDEN, _INVALID):
                raise
            metadata = template.pod["metadata"]
            name = f"{metadata['namespace']}/{metadata['name']}"
            whose = name if template.kind == "Pod" else f"A pod of {template.kind} {name}"
            words = refusal_words(template, error).rstrip(".")
            raise click.ClickException(f"{whose} would be refused: {words}.") from error
    return made


def as_created(template: "PodTemplate") -> "Obj":
    """What the API server would do to a pod, as far as decisions depend on it, where there is no
    server: behind a snapshot. Raises ClickException for what it would refuse to read."""
    from gpupool.contract.object_shapes import wrong_pod

    pod = template.pod
    metadata = pod["metadata"]
    if wrong := wrong_pod(pod):
        whose = f"{template.kind} {metadata['namespace']}/{metadata['name']}"
        raise click.ClickException(f"{whose}: {wrong} in its pod.")
    spec = pod["spec"]
    asking = {
        part: [_with_requests(each) for each in spec.get(part) or ()]
        for part in ("containers", "initContainers")
    }
    by_containers = {
        name
        for each in (*asking["containers"], *asking["initContainers"])
        for name in (each.get("resources") or {}).get("requests") or ()
    }
    return {**pod, "spec": {**_with_requests(spec, by_containers), **asking}}


def _with_requests(asking: "Obj", asked_inside: Set[str] = frozenset()) -> "Obj":
    """Of a container or a pod: a request that is missing is as large as the limit, and of a pod
    what its containers ask for, if they do. Manifests may have plain numbers."""
    resources = asking.get("resources")
    if not resources:
        return asking
    limits = resources.get("limits") or {}
    asked = {name: amount for name, amount in limits.items() if name not in asked_inside}
    asked |= resources.get("requests") or {}
    requests = {name: str(amount) for name, amount in asked.items()}
    return {**asking, "resources": {**resources, "requests": requests}}


def refusal_words(template: "PodTemplate", error: "Refused") -> str:
    """The dry run gave the pod a name of its own, or had not yet when it was refused. The user has
    seen neither."""
    name = template.pod["metadata"]["name"]
    return re.sub(rf'"{re.escape(name)}-([a-z0-9]{{5}})?"', lambda _: f'"{name}"', str(error))

"""What can be done to a workload: scale, restart, suspend, resume, run a CronJob now, delete."""

import datetime
import secrets
from collections.abc import Callable, Mapping

from gpupool.console.parts.action import Done, Question
from gpupool.console.parts.form import Field, FieldKind
from gpupool.console.parts.kinds import Doing
from gpupool.console.rights import Right
from gpupool.console.rows.workloads import WorkloadRow
from gpupool.console.visit import Visit
from gpupool.console.words import word
from kubeclient.objects import Obj
from kubeclient.resources import CRON_JOBS, JOBS, Resource

_RESTARTED = "kubectl.kubernetes.io/restartedAt"  # as `kubectl rollout restart` does it
_BY_HAND = "cronjob.kubernetes.io/instantiate"  # as `kubectl create job --from` does it
_MOST_REPLICAS = 100_000


def may(verb: str, *resources: Resource) -> Callable[[str], tuple[Right, ...]]:
    def rights(namespace: str) -> tuple[Right, ...]:
        return tuple(Right(verb, resource, namespace) for resource in resources)

    return rights


def scale(resource: Resource) -> Doing:
    async def ask(visit: Visit) -> Question:
        t, namespace, name = visit.t, visit.names["namespace"], visit.names["name"]
        now = (await visit.kube.get(resource, name, namespace))["spec"].get("replicas", 1)
        kind = resource.kind.lower()
        return Question(
            title=t("Scale {name}", name=name),
            button=t("Scale"),
            fields=(
                Field(
                    "replicas",
                    t("Pods wanted"),
                    FieldKind.NUMBER,
                    value=str(now),
                    is_required=True,
                    least=0,
                    most=_MOST_REPLICAS,
                ),
            ),
            command=f"kubectl scale {kind} {name} --replicas=N --namespace {namespace}",
        )

    async def do(visit: Visit, values: Mapping[str, str]) -> Done:
        wanted = int(values["replicas"])
        await _patch(resource, visit, {"spec": {"replicas": wanted}})
        words = visit.t("{name} is to have {count} pods.", name=visit.names["name"], count=wanted)
        return _back(resource, visit, words)

    return Doing("scale", word("Scale"), may("patch", resource), ask, do)


def restart(resource: Resource) -> Doing:
    async def ask(visit: Visit) -> Question:
        t, namespace, name = visit.t, visit.names["namespace"], visit.names["name"]
        kind = resource.kind.lower()
        return Question(
            title=t("Restart {name}", name=name),
            sentence=t("Its pods are replaced one after another."),
            button=t("Restart {name}", name=name),
            command=f"kubectl rollout restart {kind} {name} --namespace {namespace}",
        )

    async def do(visit: Visit, _: Mapping[str, str]) -> Done:
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        annotations = {"metadata": {"annotations": {_RESTARTED: now}}}
        await _patch(resource, visit, {"spec": {"template": annotations}})
        words = visit.t("The pods of {name} are being replaced.", name=visit.names["name"])
        return _back(resource, visit, words)

    return Doing("restart", word("Restart"), may("patch", resource), ask, do)


def suspend(resource: Resource, meaning: str) -> Doing:
    return _set_suspended(resource, True, meaning)


def resume(resource: Resource, meaning: str) -> Doing:
    return _set_suspended(resource, False, meaning)


def _set_suspended(resource: Resource, wanted: bool, meaning: str) -> Doing:
    label = word("Suspend") if wanted else word("Resume")

    async def ask(visit: Visit) -> Question:
        t, namespace, name = visit.t, visit.names["namespace"], visit.names["name"]
        kind, patch = resource.kind.lower(), f'{{"spec":{{"suspend":{str(wanted).lower()}}}}}'
        return Question(
            title=t("Suspend {name}", name=name) if wanted else t("Resume {name}", name=name),
            sentence=t(meaning),
            button=t(label),
            command=f"kubectl patch {kind} {name} --namespace {namespace} -p '{patch}'",
        )

    async def do(visit: Visit, _: Mapping[str, str]) -> Done:
        t, name = visit.t, visit.names["name"]
        await _patch(resource, visit, {"spec": {"suspend": wanted}})
        words = t("{name} is suspended.", name=name) if wanted else t("{name} goes on.", name=name)
        return _back(resource, visit, words)

    def fits(row: WorkloadRow) -> bool:
        return row.is_suspended is not wanted and not row.outcome

    key = "suspend" if wanted else "resume"
    return Doing(key, label, may("patch", resource), ask, do, fits)


def run_now() -> Doing:
    """Of a CronJob."""

    async def ask(visit: Visit) -> Question:
        t, namespace, name = visit.t, visit.names["namespace"], visit.names["name"]
        return Question(
            title=t("Run {name} now", name=name),
            sentence=t("It makes one Job at once. Its schedule stays as it is."),
            button=t("Run now"),
            command=f"kubectl create job NAME --from=cronjob/{name} --namespace {namespace}",
        )

    async def do(visit: Visit, _: Mapping[str, str]) -> Done:
        namespace, name = visit.names["namespace"], visit.names["name"]
        job = job_of(await visit.kube.get(CRON_JOBS, name, namespace), secrets.token_hex(3))
        made = (await visit.kube.create(JOBS, job))["metadata"]["name"]
        return Done(
            visit.link(JOBS.plural, namespace, made), visit.t("Job {name} is made.", name=made)
        )

    def rights(namespace: str) -> tuple[Right, ...]:
        return (Right("get", CRON_JOBS, namespace), Right("create", JOBS, namespace))

    return Doing("run", word("Run now"), rights, ask, do)


def job_of(cron_job: Obj, mark: str) -> Obj:
    """The Job that a CronJob makes when somebody runs it by hand."""
    metadata, template = cron_job["metadata"], cron_job["spec"]["jobTemplate"]
    of_job = template.get("metadata") or {}
    owner = {
        "apiVersion": CRON_JOBS.api_version,
        "kind": CRON_JOBS.kind,
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "metadata": {
            "name": f"{metadata['name']}-{mark}",  # of a CronJob has at most 52 letters
            "namespace": metadata["namespace"],
            "labels": of_job.get("labels") or {},
            "annotations": {**(of_job.get("annotations") or {}), _BY_HAND: "manual"},
            "ownerReferences": [owner],
        },
        "spec": template["spec"],
    }


def delete(resource: Resource, meaning: str) -> Doing:
    """`meaning`: what goes with it, and what stays."""

    async def ask(visit: Visit) -> Question:
        t, namespace, name = visit.t, visit.names["namespace"], visit.names["name"]
        kind = resource.kind.lower()
        return Question(
            title=t("Delete {name}", name=name),
            sentence=t(meaning),
            button=t("Delete {name}", name=name),
            is_dangerous=True,
            typed_name=name,
            command=f"kubectl delete {kind} {name} --namespace {namespace}",
        )

    async def do(visit: Visit, _: Mapping[str, str]) -> Done:
        namespace, name = visit.names["namespace"], visit.names["name"]
        options = {"propagationPolicy": "Background"}
        await visit.kube.delete(resource, name, namespace, options=options)
        words = visit.t("{name} is being deleted.", name=name)
        return Done(visit.link(resource.plural), words, is_gone=True)

    return Doing("delete", word("Delete"), may("delete", resource), ask, do, is_dangerous=True)


def _back(resource: Resource, visit: Visit, words: str) -> Done:
    at = (resource.plural, visit.names["namespace"], visit.names["name"])
    return Done(visit.link(*at), words)


async def _patch(resource: Resource, visit: Visit, patch: object) -> None:
    path = resource.path(visit.names["namespace"], visit.names["name"])
    await visit.kube.patch(path, patch)

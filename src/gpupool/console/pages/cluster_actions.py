"""What can be done to clusters of this machine: create, start, stop, delete.

Each is a command of gpupool, run as the owner of the console. See decision 37.
"""

import asyncio
from collections.abc import Mapping
from functools import partial

from gpupool.console.cluster_jobs import Verb
from gpupool.console.own_clusters import OwnClusters
from gpupool.console.pages.cluster_form import (
    POOLS,
    cluster_fields,
    cluster_file,
    quota_words,
    shared_words,
)
from gpupool.console.pages.clusters import needed
from gpupool.console.parts.action import Action, Done, Question
from gpupool.console.parts.form import Invalid
from gpupool.console.parts.missing import NoSuchThing
from gpupool.console.platform import Known, Quota
from gpupool.console.rights import Right
from gpupool.console.visit import Visit


def _no_rights(_: Visit) -> tuple[Right, ...]:
    """None of a cluster: whoever has the key is the owner of the console."""
    return ()


def _maker(visit: Visit) -> OwnClusters:
    """Raises NoSuchThing."""
    own = needed(visit)
    if not own.platform.program:
        raise NoSuchThing(visit.t("No clusters can be made on this machine."))
    return own


async def _local(visit: Visit) -> tuple[OwnClusters, Known]:
    """Raises NoSuchThing."""
    own, name = _maker(visit), visit.names["name"]
    for each in await own.known():
        if each.is_local and each.name == name:
            return own, each
    raise NoSuchThing(visit.t('cluster "{name}"', name=name))


async def _quotas(own: OwnClusters) -> dict[str, Quota]:
    return {each.name: each for each in await asyncio.to_thread(own.platform.quotas)}


async def _ask_create(visit: Visit) -> Question:
    t, own = visit.t, _maker(visit)
    quotas = await _quotas(own)
    used = sum(each.is_local for each in await own.known())
    clusters = quotas["clusters"].limit
    limits = {name: quotas[name].limit for name in ("nodes-per-cluster", "routes-per-cluster")}
    return Question(
        title=t("Create cluster"),
        sentence=t(
            "It runs on this machine. Clusters: {used} of {clusters}; nodes in a cluster: at most "
            "{nodes}.",
            used=used,
            clusters=clusters,
            nodes=min(limits.values()),
        ),
        button=t("Create cluster"),
        fields=cluster_fields(t, visit.machines, await own.machines()),
        command="gpupool up --name NAME --config FILE",
        cancel=visit.link("clusters"),
        extra={"limits": limits, "shared": shared_words(t, quotas), "pools": POOLS},
    )


async def _create(visit: Visit, values: Mapping[str, str]) -> Done:
    t, own = visit.t, _maker(visit)
    quotas = await _quotas(own)
    file = cluster_file(t, values, quotas, await own.machines())
    local = {each.name for each in await own.known() if each.is_local}
    making = {job.name for job in own.jobs.all() if job.is_running and job.verb is Verb.CREATE}
    name = values["name"]
    if name in local | making:
        raise Invalid({"name": t("There is another cluster of this name.")})
    if len(local | making) >= quotas["clusters"].limit:
        raise Invalid({"": quota_words(t, quotas["clusters"], len(local | making) + 1)})
    _begin(own, name, Verb.CREATE, "up", config=file)
    return Done(visit.link("clusters"), t("Cluster {name} is being created.", name=name))


def _begin(own: OwnClusters, name: str, verb: Verb, *words: str, config: str = "") -> None:
    """Raises Invalid."""
    try:
        own.jobs.begin(name, verb, *words, "--name", name, config=config)
    except OSError as error:  # a full disk, or no more processes
        raise Invalid({"": str(error)}) from error


async def _ask_start(visit: Visit) -> Question:
    t, (_, cluster) = visit.t, await _local(visit)
    return Question(
        title=t("Start cluster {name}", name=cluster.name),
        sentence=t("It comes back with all its objects."),
        button=t("Start"),
        command=f"gpupool up --name {cluster.name}",
    )


async def _ask_stop(visit: Visit) -> Question:
    t, (_, cluster) = visit.t, await _local(visit)
    return Question(
        title=t("Stop cluster {name}", name=cluster.name),
        sentence=t("Its pods stop too. Its data stays, for the next start."),
        button=t("Stop"),
        command=f"gpupool down --name {cluster.name}",
    )


async def _ask_delete(visit: Visit) -> Question:
    t, (_, cluster) = visit.t, await _local(visit)
    return Question(
        title=t("Delete cluster {name}", name=cluster.name),
        sentence=t("It stops, and all its data is deleted: objects, keys, kubeconfig, log."),
        button=t("Delete cluster {name}", name=cluster.name),
        is_dangerous=True,
        typed_name=cluster.name,
        command=f"gpupool reset --name {cluster.name} --yes",
    )


_COMMANDS = {
    Verb.START: ("up",),
    Verb.STOP: ("down",),
    Verb.DELETE: ("reset", "--yes"),
}


async def _run(verb: Verb, visit: Visit, _: Mapping[str, str]) -> Done:
    t, (own, cluster) = visit.t, await _local(visit)
    job = own.jobs.of(cluster.name)
    if job is not None and job.is_running:
        raise Invalid({"": t("Another command works on this cluster.")})
    _begin(own, cluster.name, verb, *_COMMANDS[verb])
    words = {
        Verb.START: t("Cluster {name} is being started.", name=cluster.name),
        Verb.STOP: t("Cluster {name} is being stopped.", name=cluster.name),
        Verb.DELETE: t("Cluster {name} is being deleted.", name=cluster.name),
    }
    # Not a page of this cluster: it may be the one that goes.
    return Done("/clusters", words[verb])


async def _ask_forget(visit: Visit) -> Question:
    t, name, own = visit.t, visit.names["name"], _maker(visit)
    job = own.jobs.of(name)
    return Question(
        title=t("Forget cluster {name}", name=name),
        sentence=job.text if job is not None else "",
        button=t("Forget"),
    )


async def _forget(visit: Visit, _: Mapping[str, str]) -> Done:
    own, name = _maker(visit), visit.names["name"]
    job = own.jobs.of(name)
    if job is not None and not job.is_running:
        own.jobs.forget(name)
    return Done("/clusters", visit.t("Cluster {name} is forgotten.", name=name))


def _at(path: str) -> str:
    return f"clusters/{{name}}/{path}"


ACTIONS = (
    Action(
        "create/cluster",
        "clusters",
        _no_rights,
        _ask_create,
        _create,
        template="cluster_create.html",
    ),
    Action(_at("start"), "clusters", _no_rights, _ask_start, partial(_run, Verb.START)),
    Action(_at("stop"), "clusters", _no_rights, _ask_stop, partial(_run, Verb.STOP)),
    Action(_at("delete"), "clusters", _no_rights, _ask_delete, partial(_run, Verb.DELETE)),
    Action(_at("forget"), "clusters", _no_rights, _ask_forget, _forget),
)

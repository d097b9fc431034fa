"""The pages and actions of the console: one module for each. This is the list of them.

How to add one: "A page of the console" in CONTRIBUTING.md.
"""

from gpupool.console.pages import (
    card_actions,
    checks,
    cluster_actions,
    clusters,
    configuration,
    create,
    create_form,
    edit,
    events,
    instances,
    map_heat,
    node,
    nodes,
    overview,
    pod,
    pod_logs,
    pod_terminal,
    pods,
    pool,
    pool_actions,
    pools,
    search,
    services,
    suggestions,
    waiting,
    workloads,
)
from gpupool.console.pages import map as gpu_map
from gpupool.console.parts.action import Action
from gpupool.console.parts.channel import Channel
from gpupool.console.parts.page import Page
from gpupool.console.words import word

# The first one is home.
PAGES: tuple[Page, ...] = (
    overview.PAGE,
    clusters.PAGE,
    instances.PAGE,
    gpu_map.PAGE,
    pools.PAGE,
    pool.PAGE,
    nodes.PAGE,
    *node.PAGES,
    *workloads.PAGES,
    pods.PAGE,
    pod.PAGE,
    pod_logs.PAGE,
    pod_terminal.PAGE,
    waiting.PAGE,
    *services.PAGES,
    *configuration.PAGES,
    events.PAGE,
    search.PAGE,
)
ACTIONS: tuple[Action, ...] = (
    *create.ACTIONS,
    *create_form.ACTIONS,
    *edit.ACTIONS,
    *cluster_actions.ACTIONS,
    *instances.ACTIONS,
    *pool_actions.ACTIONS,
    *node.ACTIONS,
    *card_actions.ACTIONS,
    *workloads.ACTIONS,
    *pod.ACTIONS,
    *services.ACTIONS,
    *configuration.ACTIONS,
)
CHANNELS: tuple[Channel, ...] = (
    *map_heat.CHANNELS,
    *pod_logs.CHANNELS,
    *pod_terminal.CHANNELS,
    *suggestions.CHANNELS,
    *checks.CHANNELS,
)

# The side bar: key of the entry, its name, and the page.
MENU: tuple[tuple[str, str, str], ...] = (
    ("clusters", word("Clusters"), "clusters"),
    ("overview", word("Overview"), "overview"),
    ("map", word("GPU map"), "map"),
    ("pools", word("Node pools"), "pools"),
    ("nodes", word("Nodes"), "nodes"),
    ("deployments", word("Deployments"), "deployments"),
    ("statefulsets", word("StatefulSets"), "statefulsets"),
    ("daemonsets", word("DaemonSets"), "daemonsets"),
    ("jobs", word("Jobs"), "jobs"),
    ("cronjobs", word("CronJobs"), "cronjobs"),
    ("pods", word("Pods"), "pods"),
    ("waiting", word("Waiting"), "waiting"),
    ("services", word("Services"), "services"),
    ("configmaps", word("ConfigMaps"), "configmaps"),
    ("secrets", word("Secrets"), "secrets"),
    ("events", word("Events"), "events"),
    ("create", word("Create from template"), "create"),
)

# Addresses without the cluster, for the one with which the console was started.
SHORT = (*(f"/{page.path}" for page in PAGES), *(f"/{action.path}" for action in ACTIONS))

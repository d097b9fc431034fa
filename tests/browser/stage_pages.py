"""Every page of the console, with the objects of the stage on it."""

from tests.browser.console_stage import Stage, nodes_of

LISTS = (
    "/overview",
    "/clusters",
    "/instances",
    "/map",
    "/map?view=heat",
    "/map?pod=team-a%2Ftrain-0",
    "/pools",
    "/nodes",
    "/deployments",
    "/statefulsets",
    "/daemonsets",
    "/jobs",
    "/cronjobs",
    "/pods",
    "/waiting",
    "/services",
    "/configmaps",
    "/secrets",
    "/events",
    "/search?q=train",
)
EMPTY = ("/pods?namespace=default", "/jobs?q=nothing-has-this-name", "/search?q=zzzz")
OBJECTS = (
    "/pools/cgpu",
    "/deployments/team-b/embed",
    "/statefulsets/team-a/train",
    "/daemonsets/team-b/exporter",
    "/jobs/research/convert",
    "/cronjobs/research/nightly-report",
    "/pods/team-a/train-0",
    "/pods/team-a/train-0/logs",
    "/pods/team-a/train-0/terminal",
    "/pods/team-a/two-cards",
    "/pods/team-a/eight-cards",
    "/pods/team-a/elsewhere",
    "/pods/team-a/picky",
    "/pods/team-a/processors",
    "/services/research/notebook",
    "/configmaps/research/training",
    "/secrets/research/registry",
)
FORMS = (
    "/create",
    "/create?sample=job",
    "/create?sample=configmap",
    "/create/form",
    "/create/service",
    "/create/pool",
    "/create/pool?preset=cgpu",
    "/create/cluster",
    "/create/instances",
    "/create/templates/mine/delete",
    "/clusters/training/start",
    "/clusters/training/stop",
    "/clusters/training/delete",
    "/clusters/training/forget",
    "/instances/trainer-1/remove",
    "/pools/cgpu/edit",
    "/pools/cgpu/scale",
    "/pools/cgpu/delete",
    "/deployments/team-b/embed/scale",
    "/deployments/team-b/embed/edit",
    "/deployments/team-b/embed/restart",
    "/deployments/team-b/embed/undo",
    "/deployments/team-b/embed/delete",
    "/cronjobs/research/nightly-report/run",
    "/cronjobs/research/nightly-report/suspend",
    "/jobs/research/convert/resume",
    "/pods/team-a/train-0/resize",
    "/pods/team-a/train-0/delete",
    "/pods/team-a/train-0/edit",
    "/services/research/notebook/change",
    "/secrets/research/registry/show",
)
NODE_FORMS = (
    *("", "/draining", "/labels", "/taints", "/cordon", "/uncordon", "/drain", "/drain/stop"),
    *("/cards/0/cordon", "/cards/2/uncordon", "/remove", "/edit"),
)
BROKEN = ("/pods/team-a/nobody", "/no-such-page")


def all_pages(stage: Stage) -> tuple[str, ...]:
    node = nodes_of(stage, "cgpu")[1]
    of_node = tuple(f"/nodes/{node}{form}" for form in NODE_FORMS)
    return (*LISTS, *EMPTY, *OBJECTS, *FORMS, *of_node, *BROKEN)

"""Which resources the namespace controller and the garbage collector know of."""

from pathlib import Path

from kubeclient.objects import Obj
from kubeclient.resources import CRDS, Resource
from localkube.controllers.api_resources import deletable_resources
from tests.localkube.controllers.desk import desk_for


def definition(plural: str, kind: str, *versions: str) -> Obj:
    listed = [
        {
            "name": version,
            "served": True,
            "storage": version == versions[0],
            "schema": {"openAPIV3Schema": {"type": "object"}},
        }
        for version in versions
    ]
    names = {"plural": plural, "kind": kind, "listKind": f"{kind}List"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": listed}
    return {"metadata": {"name": f"{plural}.example.com"}, "spec": spec}


async def test_a_kind_counts_that_is_not_in_the_version_its_group_prefers(tmp_path: Path) -> None:
    async with desk_for(tmp_path) as desk:
        await desk.create(CRDS, definition("toys", "Toy", "v1", "v1alpha1"))
        await desk.create(CRDS, definition("dolls", "Doll", "v1alpha1"))
        found = await deletable_resources(desk.kube)
    ours = [resource for resource in found if resource.group == "example.com"]
    assert ours == [
        Resource("example.com", "v1", "toys", "Toy"),
        Resource("example.com", "v1alpha1", "dolls", "Doll"),
    ]
    plurals = [(resource.group, resource.plural) for resource in found]
    assert len(plurals) == len(set(plurals))

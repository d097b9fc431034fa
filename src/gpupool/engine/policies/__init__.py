"""POLICIES: where a pod's GPU ask goes among the nodes that can take it. Pure; one file for each.

`POLICIES[name](mix)` makes a `Policy` for a mix of work (`mix.py`); a policy is these functions:

- `costs(columns, ask, nodes)`: a whole number for each node of `nodes`, lower is better; the engine
  takes the lowest, and of equal ones the first in the order of nodes. It depends on nothing but
  that node's own columns, so that only nodes that changed need be judged again;
- `cards(columns, ask, node)`: for a share, the cards on the chosen node, as indexes;
- `cost(columns, ask, node)`: what `costs` says of one node, if that can be had faster.

They are asked only about nodes on which the ask fits; what they say of others means nothing. A new
mix makes a new policy: costs that are kept from an older one are void.
"""

from collections.abc import Callable

from gpupool.engine.policies.best_fit import best_fit
from gpupool.engine.policies.fgd import fgd
from gpupool.engine.policies.mix import Mix
from gpupool.engine.policies.policy import Policy
from gpupool.engine.policies.residue import residue
from gpupool.engine.policies.spread import spread

POLICIES: dict[str, Callable[[Mix], Policy]] = {
    "residue": residue,
    "fgd": fgd,
    "best-fit": best_fit,
    "spread": spread,
}
DEFAULT = "residue"

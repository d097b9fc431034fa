"""POLICIES: which of the nodes that fit a pod gets it. Pure; one file for each policy.

`POLICIES[name](mix)` makes a `Policy` for a mix of work (`mix.py`); a policy is these functions:

- `costs(columns, ask, nodes)`: a whole number for each node, lower is better; the engine takes the
  lowest, and among equals the first node. The cost of a node must depend on nothing but that node's
  own columns: costs are cached until the node changes (`verdicts.py`);
- `cards(columns, ask, node)`: for a share, the cards on the chosen node, as indexes;
- `cost(columns, ask, node)`: the same as `costs` for one node, where that is faster.

They are called only for nodes on which the ask fits; results for other nodes mean nothing. A new
mix makes a new policy, and cached costs of the old one are not used any more.
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

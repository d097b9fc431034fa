"""The fixtures of local clusters, for commands that use them."""

from tests.local.conftest import cluster as cluster
from tests.local.conftest import home as home

"""The fixtures of local clusters: commands work on them too."""

from tests.local.conftest import cluster as cluster
from tests.local.conftest import home as home

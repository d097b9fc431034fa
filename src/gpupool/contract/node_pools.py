"""The NodePool resource of our own API group."""

from gpupool.contract.names import API_GROUP, API_VERSION, NODE_POOL_KIND, NODE_POOL_PLURAL
from kubeclient.resources import Resource

NODE_POOLS = Resource(API_GROUP, API_VERSION, NODE_POOL_PLURAL, NODE_POOL_KIND, namespaced=False)

"""OpenAPI documents: version 3 by group version, version 2 as one. kubectl explain reads them."""

from gpupool.localcluster.apiserver.openapi.service import OpenApi

__all__ = ["OpenApi"]

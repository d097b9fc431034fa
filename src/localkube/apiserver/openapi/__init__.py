"""OpenAPI documents: version 3 by group version, version 2 as one. kubectl explain reads them."""

from localkube.apiserver.openapi.service import OpenApi

__all__ = ["OpenApi"]

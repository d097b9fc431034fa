"""Edge: the kubelet's gRPC APIs for device plugins (v1beta1) and pod resources (v1), both sides."""

import os

# gRPC's C core writes a line to stderr whenever a peer disconnects, which is normal here. It reads
# its log level from the environment once, at import. A value that the user has set is kept.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")

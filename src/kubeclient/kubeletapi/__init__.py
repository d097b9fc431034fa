"""Edge: the kubelet's gRPC APIs for device plugins (v1beta1) and pod resources (v1), both sides."""

import os

# gRPC's C core writes a line to stderr whenever a peer goes away, which is our daily business, and
# reads how much to say from the environment once, when it is loaded. What is set stays.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")

"""How much one client, and all of them together, may take of the wire."""

import msgspec


class WireLimits(msgspec.Struct, frozen=True, kw_only=True):
    url_bytes: int = 8 * 1024
    headers: int = 100
    header_bytes: int = 32 * 1024
    body_bytes: int = 3 * 1024 * 1024
    unfinished_bytes: int = 128 * 1024 * 1024  # of all bodies that are still arriving
    message_bytes: int = 16 * 1024 * 1024  # one WebSocket message
    connections: int = 1_000
    head_timeout_s: float = 10.0  # TLS handshake; request line and headers
    body_timeout_s: float = 60.0
    idle_timeout_s: float = 300.0  # between two requests
    stall_timeout_s: float = 60.0  # a client that does not read what we send
    linger_s: float = 2.0  # how long we hear out a client that we have refused
    pong_s: float = 5.0  # how often a client that we do not read from gets a sign of life

    def shortest_s(self) -> float:
        return min(
            self.head_timeout_s,
            self.body_timeout_s,
            self.idle_timeout_s,
            self.stall_timeout_s,
            self.linger_s,
        )

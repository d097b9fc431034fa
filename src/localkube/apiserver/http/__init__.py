"""HTTP/1.1, WebSocket and SPDY on the wire."""

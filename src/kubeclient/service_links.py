"""Links to Services: which port a browser takes, and how the link is written."""

from kubeclient.objects import Obj


def tcp_ports(service: Obj) -> list[Obj]:
    """Not UDP ports of the same numbers, which may lead elsewhere."""
    ports = service["spec"].get("ports") or ()
    return [port for port in ports if port.get("protocol", "TCP") == "TCP"]


def link(port: Obj, host: str, number: int) -> str:
    """To this port of a Service, which is served at this host and number."""
    scheme = "https" if port["port"] == 443 or port.get("name") == "https" else "http"
    shown = f"[{host}]" if ":" in host else host
    usual = {"http": 80, "https": 443}[scheme]
    return f"{scheme}://{shown}" + ("" if number == usual else f":{number}")

"""Addresses and network interfaces of this machine."""

import fcntl
import socket
import struct
from contextlib import suppress

LOOPBACK = "127.0.0.1"
SIOCGIFADDR = 0x8915
ANYWHERE = "192.0.2.1"
"""A documentation address (RFC 5737): only its route is looked up, nothing is sent."""


def interface_addresses() -> dict[str, str]:
    """Return the IPv4 address of each interface that has one, loopback last."""
    found = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            with suppress(OSError):
                request = struct.pack("256s", name.encode()[:15])
                answer = fcntl.ioctl(probe.fileno(), SIOCGIFADDR, request)
                found[name] = socket.inet_ntoa(answer[20:24])
    return dict(sorted(found.items(), key=lambda item: is_loopback(item[1])))


def is_loopback(address: str) -> bool:
    return address.startswith("127.") or address == "::1"


def address_towards(peer: str) -> str:
    """Return the local address from which packets to ``peer`` leave."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((peer, 9))
        return str(probe.getsockname()[0])


def own_address(interface: str = "") -> str:
    """Return the address at which other machines most likely reach this one.

    In order: the address of ``interface``; the address of the host name, unless it is
    loopback; the address of the default route; the address of the first interface.
    """
    known = interface_addresses()
    if interface:
        if interface not in known:
            available = ", ".join(f"{name} ({address})" for name, address in known.items())
            raise OSError(f"no interface '{interface}' with an address; available: {available}")
        return known[interface]
    with suppress(OSError):
        named = socket.gethostbyname(socket.gethostname())
        if named in known.values() and not is_loopback(named):
            return named
    with suppress(OSError):
        return address_towards(ANYWHERE)
    return next(iter(known.values()), LOOPBACK)


def interface_of(address: str) -> str:
    """Return the interface of a local address; empty if there is none."""
    for name, own in interface_addresses().items():
        if own == address:
            return name
    return "lo" if is_loopback(address) else ""


def free_port(address: str) -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((address, 0))
        return int(probe.getsockname()[1])

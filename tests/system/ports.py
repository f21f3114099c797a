"""Ports for servers of a test's own, some of which cannot be given port 0."""

import contextlib
import random
import socket


def free_port(hosts=("127.0.0.1",)):
    """A port that is free on all of these addresses, and that the system gives to no outgoing connection: one of those
    would stand in the way of a server that begins to listen a moment later."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as numbers:
        low, high = map(int, numbers.read().split())
    candidates = [port for port in range(10000, 65000) if not low <= port <= high]
    # Where all of them are the system's, there is nothing better than one of these.
    candidates = candidates or range(low, high)
    for _ in range(100):
        port = random.choice(candidates)
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for host in hosts:
                stack.enter_context(socket.socket()).bind((host, port))
            return port
    raise OSError("no free port")


def listening(host, port, process="self"):
    """Whether a TCP socket listens on this IPv4 address, in the network of that process, without connecting to it."""
    wanted = f"{int.from_bytes(socket.inet_aton(host), 'little'):08X}:{port:04X}"
    with open(f"/proc/{process}/net/tcp", encoding="ascii") as table:
        rows = (line.split() for line in table)
        return any(row[1] == wanted and row[3] == "0A" for row in rows)

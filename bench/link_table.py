#!/usr/bin/env python3
"""What an update costs over a link with a delay; scripts/link-table builds what it needs and runs this.

usage: link_table.py LINK [RTT-IN-MS ...]

Two network namespaces are joined by LINK. The client is the original, the patched one with one file at a time, and the
patched one with eight; the server is the original each time, unpatched. Each table line is the time of `csync2 -u`
in ms a file: FILES new files of 2 KiB, the same once more unchanged, and a mixed tree; the trees must be equal afterwards.
"""

import contextlib
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "system"))

import trees
from lab import Lab, LabError, binary

FILES = int(os.environ.get("LINK_TABLE_FILES", "200"))
CLIENTS = {
    "original": ("original", "1"),
    "patched, one file at a time": ("patched", "1"),
    "patched": ("patched", "8"),
}
ADDRESSES = {1: "10.83.0.1", 2: "10.83.0.2"}


def run(*words):
    subprocess.run([str(word) for word in words], check=True, timeout=30)


class Link:
    """Two namespaces with a link between them. A context manager."""

    def __init__(self, program, rtt_ms):
        self.program, self.rtt_ms = program, rtt_ms
        self.names = {n: f"csync-rs-{os.getpid()}-{n}" for n in ADDRESSES}

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            for name in self.names.values():
                run("ip", "netns", "add", name)
                stack.callback(run, "ip", "netns", "del", name)
            link = subprocess.Popen([self.program, *self.names.values(), str(round(self.rtt_ms * 1000))],
                                    stdout=subprocess.PIPE, text=True)  # fmt: skip
            stack.callback(link.wait)
            stack.callback(link.kill)
            if link.stdout.readline() != "ready\n":
                raise LabError("the link did not come up")
            for n, name in self.names.items():
                run("ip", "-n", name, "address", "add", f"{ADDRESSES[n]}/24", "dev", "link")
                run("ip", "-n", name, "link", "set", "dev", "lo", "up")
                run("ip", "-n", name, "link", "set", "dev", "link", "up")
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self.stack.close()

    def inside(self, n):
        """What is put ahead of a command line for it to run on node n."""
        return ("ip", "netns", "exec", self.names[n])

    def measured(self):
        """The round trip of one byte over TCP, in ms: the median of many."""
        with subprocess.Popen([*self.inside(2), sys.executable, __file__, "--echo", ADDRESSES[2]],
                              stdout=subprocess.PIPE, text=True) as echo:  # fmt: skip
            echo.stdout.readline()
            ping = [*self.inside(1), sys.executable, __file__, "--ping", ADDRESSES[2]]
            result = subprocess.run(ping, check=True, capture_output=True, text=True, timeout=60)
            echo.wait(10)
        return float(result.stdout)


def echo(address):
    with socket.create_server((address, 7)) as server:
        print("ready", flush=True)
        connection, _ = server.accept()
        with connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while data := connection.recv(1):
                connection.sendall(data)


def ping(address):
    with socket.create_connection((address, 7)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        times = []
        for _ in range(40):
            start = time.monotonic()
            connection.sendall(b"x")
            connection.recv(1)
            times.append(time.monotonic() - start)
    print(1000 * statistics.median(times))


class LinkLab(Lab):
    """Two nodes at the ends of a link."""

    def __init__(self, base, link):
        self.link = link
        super().__init__(base, hosts=ADDRESSES, port=30865)

    def update(self, client, files):
        """csync2 -u of node 1, in seconds."""
        start = time.monotonic()
        done = self.run(binary(client), 1, "-u", seconds=600, extra={"CSYNC2_PIPELINE": files}, prefix=self.link.inside(1))
        seconds = time.monotonic() - start
        if done.returncode:
            raise LabError(f"csync2 -u ended with {done.returncode}: {done.stderr}")
        lines = trees.differences(trees.digest(self.tree(1)), trees.digest(self.tree(2)))
        if lines:
            raise LabError("the trees are not equal:\n" + "\n".join(lines[:10]))
        return seconds


def mix(tree, chance):
    """Of each ten files two are edited, one is replaced by 40 KB, one deleted, one becomes a link; and one is new."""
    count = 0
    for i in range(0, FILES, 10):
        for k in range(2):
            trees.write(tree / f"file{i + k}", chance.randbytes(2100), trees.EPOCH + 100_000 + i)
        trees.write(tree / f"file{i + 2}", chance.randbytes(40_000), trees.EPOCH + 100_000 + i)
        (tree / f"file{i + 3}").unlink()
        (tree / f"file{i + 4}").unlink()
        (tree / f"file{i + 4}").symlink_to("file0")
        trees.write(tree / f"new{i}", chance.randbytes(2048), trees.EPOCH + i)
        count += 6
    return count


def measure(base, link, client, files):
    """ms a file: new, unchanged, mixed."""
    chance, results = random.Random(1), []
    with LinkLab(base, link) as lab:
        tree = lab.tree(1)
        lab.serve(binary("original"), 2, prefix=link.inside(2))
        for i in range(FILES):
            trees.write(tree / f"file{i}", chance.randbytes(2048), trees.EPOCH + i)
        check = lambda *options: lab.run(binary(client), 1, *options, tree).check_returncode()  # noqa: E731
        check("-cr")
        results.append(lab.update(client, files) / FILES)
        check("-mr")
        results.append(lab.update(client, files) / FILES)
        count = mix(tree, chance)
        check("-cr")
        results.append(lab.update(client, files) / count)
    return [1000 * seconds for seconds in results]


def table(program, rtts):
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    print("| round trip (measured) | client | new, ms | unchanged, ms | mixed, ms |\n| --- | --- | --- | --- | --- |", flush=True)
    for rtt in rtts:
        with Link(program, rtt) as link, tempfile.TemporaryDirectory(dir=memory) as scratch:
            measured = link.measured()
            runs = {client: [] for client in CLIENTS}
            for number in range(5 if rtt < 5 else 1):
                for client, options in CLIENTS.items():
                    runs[client].append(measure(f"{scratch}/{client}-{number}", link, *options))
            for client, lines in runs.items():
                columns = [f"{statistics.median(column):.2f}" for column in zip(*lines)]
                print(f"| {rtt:g} ms ({measured:.2f}) | {client} | {' | '.join(columns)} |", flush=True)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--echo", address]:
            echo(address)
        case ["--ping", address]:
            ping(address)
        case [program, *rtts]:
            table(program, [float(rtt) for rtt in rtts] or [0.1, 1, 10, 59])
        case _:
            sys.exit(__doc__)

#!/usr/bin/env python3
"""A new file through pipes and over TCP, beside cat and rsync; scripts/engine-bench runs this."""

import filecmp
import os
import random
import re
import resource
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from links import XFER, Tcp


def cpu_seconds():
    """Of all children that have ended and been waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class Way:
    """One way to copy the file: a shell command; `target` is what it makes."""

    def __init__(self, name, command, target, server=None):
        self.name, self.command, self.target, self.server = name, command, target, server
        self.seconds, self.cpu, self.calls = [], [], None

    def run(self, wrapper=""):
        self.target.unlink(missing_ok=True)
        before, began = cpu_seconds(), time.monotonic()
        served = self.server.start(wrapper) if self.server else None
        if served:
            before, began = cpu_seconds(), time.monotonic()
        subprocess.run(["sh", "-c", f"exec {wrapper} sh -c {shlex.quote(self.command)}"], check=True, stdin=subprocess.DEVNULL)
        seconds = time.monotonic() - began
        if served:
            self.server.stop()
        return seconds, cpu_seconds() - before

    def measure(self):
        seconds, cpu = self.run()
        self.seconds.append(seconds)
        self.cpu.append(cpu)

    def count_calls(self, scratch):
        log = scratch / "calls"
        log.unlink(missing_ok=True)
        self.run(f"strace -f -qq -c -U calls,name -o {log}")
        self.calls = sum(int(number) for number in re.findall(r"^\s*(\d+)\s+total", log.read_text(), re.MULTILINE))


class Server:
    """An xfer server at a fixed port; one process of it serves the one client."""

    def __init__(self, directory, scratch):
        probe = Tcp(directory, scratch)
        self.address = probe.address
        probe.close()
        self.directory, self.process = directory, None

    def start(self, wrapper):
        if wrapper:  # the log of the client's strace is another
            wrapper += ".server"
        command = [*shlex.split(wrapper), XFER, "serve", str(self.directory), self.address]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.process.stderr.readline()
        return True

    def stop(self):
        # The process that serves the client is the server's child: what it has used is counted when both have ended.
        found = subprocess.run(["pgrep", "-x", "-P", str(self.process.pid), "xfer"], capture_output=True, text=True, check=False)
        target = int(found.stdout.split()[0]) if "strace" in self.process.args[0] and found.stdout else self.process.pid
        time.sleep(0.3)
        os.kill(target, signal.SIGTERM)
        self.process.wait()
        self.process.stderr.close()


def main(runs, mebibytes):
    with tempfile.TemporaryDirectory(prefix="csync-rs-bench-", dir="/dev/shm") as name:
        scratch = Path(name)
        source, there, plain = scratch / "file", scratch / "there", scratch / "file2"
        there.mkdir()
        block = random.Random(1).randbytes(1 << 20)
        with open(source, "wb") as file:
            for _ in range(mebibytes):
                file.write(block)
        server = Server(there, scratch)
        serve = shlex.join([XFER, "serve", str(there), "-"])
        ways = [
            Way("cat | cat", f"cat {source} | cat >{plain}", plain),
            Way("rsync --whole-file", f"rsync --whole-file {source} {there}/file", there / "file"),
            Way("xfer, pipes", f"{XFER} push {source} --via {shlex.quote(serve)}", there / "file"),
            Way("xfer, TCP", f"{XFER} push {source} {server.address}", there / "file", server),
        ]
        for way in ways:
            way.run()
            assert filecmp.cmp(source, way.target, shallow=False), f"{way.name}: another content"
            way.target.unlink()
        for _ in range(runs):
            for way in ways:
                way.measure()
                way.target.unlink()
        for way in ways:
            way.count_calls(scratch)
            if way.server:
                log = (scratch / "calls.server").read_text()
                way.calls += sum(int(number) for number in re.findall(r"^\s*(\d+)\s+total", log, re.MULTILINE))
            way.target.unlink()
        report(ways, runs, mebibytes)


def report(ways, runs, mebibytes):
    reference = statistics.median(ways[0].seconds)
    print(f"{mebibytes} MiB, new file, tmpfs, medians of {runs} interleaved runs, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}")
    print(f"{'':20}{'MB/s':>8}{'fastest':>9}{'of cat':>8}{'CPU s':>8}{'system calls':>14}")
    for way in ways:
        median = statistics.median(way.seconds)
        size = mebibytes * 1.048576
        print(f"{way.name:20}{size / median:8.0f}{size / min(way.seconds):9.0f}{reference / median:8.2f}"
              f"{statistics.median(way.cpu):8.2f}{way.calls:14}")


if __name__ == "__main__":
    assert shutil.which("pgrep")
    main(int(sys.argv[1]), int(sys.argv[2]))

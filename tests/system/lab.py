"""A cluster of csync2 nodes on loopback addresses, for the demo and the system tests.

Every node has what a machine would have: its own configuration directory with its own
TLS key and certificate, its own database, its own tree. Nothing outside the laboratory's
directory is touched: the nodes are named by their addresses (all of 127.0.0.0/8 is local
on Linux), so /etc/hosts is left alone, and the port is one that was free.
"""

import contextlib
import functools
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from ports import free_port, listening

ROOT = Path(__file__).resolve().parents[2]
BUILDS = ROOT / "build" / "csync2"


def binary(variant):
    """The csync2 program of a variant that scripts/csync2-build has built."""
    return str(BUILDS / variant / "csync2")


class LabError(Exception):
    """The laboratory itself failed (and not what is tried in it)."""


def wait_for(condition, seconds, what):
    """Wait until condition() is true; LabError after so many seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise LabError(f"waited {seconds} s for {what}")
        time.sleep(0.01)


# How openssl makes each kind of key. csync2's own recipe makes RSA of 1024 bits and certificates of version 1.
KEYS = {
    "RSA-1024": ["genrsa", "1024"],
    "RSA-2048": ["genrsa", "2048"],
    "RSA-3072": ["genrsa", "3072"],
    "RSA-4096": ["genrsa", "4096"],
    "P-256": ["ecparam", "-name", "prime256v1", "-genkey", "-noout"],
    "P-384": ["ecparam", "-name", "secp384r1", "-genkey", "-noout"],
    "Ed25519": ["genpkey", "-algorithm", "ed25519"],
}


@functools.cache
def credentials(n, subject="/O=csync2 laboratory", kind="RSA-2048", version=3):
    """A TLS key and a certificate for node n: one subject for all nodes, as csync2's manual makes them, or another."""

    def openssl(*arguments):
        subprocess.run(["openssl", *map(str, arguments)], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, timeout=60)  # fmt: skip

    with tempfile.TemporaryDirectory() as directory:
        key, request, certificate = (Path(directory, name) for name in ("key", "request", "certificate"))
        command, *options = KEYS[kind]
        openssl(command, *(["-out", key] + options if command == "genrsa" else options + ["-out", key]))
        if version == 1:
            openssl("req", "-new", "-key", key, "-subj", subject, "-out", request)
            openssl("x509", "-req", "-days", 30, "-in", request, "-signkey", key, "-set_serial", n, "-out", certificate)
        else:
            openssl("req", "-x509", "-key", key, "-days", 30, "-subj", subject, "-set_serial", n, "-out", certificate)
        return key.read_bytes(), certificate.read_bytes()


class Server:
    """A running csync2 server; its sessions are its process group."""

    def __init__(self, process, log):
        self.process, self.log = process, log

    def stop(self):
        """End the server and its sessions, and wait for the end."""
        for sig in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, sig)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(5)
                return

    def wait(self, seconds):
        """The exit code of a server that ends by itself (-iii); LabError when it does not."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired as error:
            raise LabError(f"the server did not end within {seconds} s") from error

    def text(self):
        """What it has written to its log."""
        return self.log.read_text(errors="replace")


class Lab:
    """Nodes 1..count below one directory. A context manager: at the end nothing runs."""

    numbers = itertools.count()

    def __init__(self, base, count=2, tls=True, config="", hosts=None, port=None):
        self.base, self.tls = Path(base), tls
        place = os.getpid() + 16381 * next(Lab.numbers)
        self.hosts = hosts or {n: f"127.{64 + place // 250 % 128}.{1 + place % 250}.{n}" for n in range(1, count + 1)}
        self.port = port or free_port(self.hosts.values())
        self.servers = []
        self.base.mkdir(parents=True, exist_ok=True)
        for n in self.hosts:
            self._make_node(n, config)

    def _make_node(self, n, config):
        for path in (self.tree(n), self.database(n), self.etc(n)):
            path.mkdir(parents=True, exist_ok=True)
        hosts = " ".join(f"host {host};" for host in self.hosts.values())
        places = "\n".join(f'\ton {host}: "{self.tree(m)}";' for m, host in self.hosts.items())
        (self.etc(n) / "csync2.cfg").write_text(
            ("" if self.tls else "nossl * *;\n")
            + f'group lab {{ {hosts} key "{self.etc(n)}/key"; include %tree%; {config} }}\n'
            + f"prefix tree {{\n{places}\n}}\n"
        )
        (self.etc(n) / "key").write_text("lab" * 20 + "\n")
        self.identify(n, *credentials(n))

    def identify(self, n, key, certificate):
        """Give node n this key and certificate."""
        (self.etc(n) / "csync2_ssl_key.pem").write_bytes(key)
        (self.etc(n) / "csync2_ssl_cert.pem").write_bytes(certificate)

    def tree(self, n):
        return self.base / "tree" / str(n)

    def database(self, n):
        return self.base / "db" / str(n)

    def etc(self, n):
        return self.base / "etc" / str(n)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """Stop every server that was started."""
        while self.servers:
            self.servers.pop().stop()

    def argv(self, program, n, *arguments, port=None):
        place = ["-D", self.database(n), "-N", self.hosts[n], "-p", port or self.port]
        return [program, *map(str, place), *map(str, arguments)]

    def environment(self, n, extra=None):
        return dict(os.environ, CSYNC2_SYSTEM_DIR=str(self.etc(n)), **(extra or {}))

    def run(self, program, n, *arguments, seconds=120, extra=None, prefix=()):
        """Run csync2 as node n to its end. A run that is too long is a LabError."""
        try:
            return subprocess.run(
                [*prefix, *self.argv(program, n, *arguments)], env=self.environment(n, extra),
                stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=seconds)  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise LabError(f"csync2 {' '.join(map(str, arguments))} of node {n} did not end within {seconds} s") from error

    def serve(self, program, n, mode="-ii", port=None, extra=None, prefix=()):
        """Start the server of node n (at a port of its own, behind a proxy) and wait until it listens."""
        log = self.base / f"server{n}.log"
        with open(log, "wb") as output:
            process = subprocess.Popen(
                [*prefix, *self.argv(program, n, mode, port=port)], env=self.environment(n, extra),
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True)  # fmt: skip
        server = Server(process, log)
        self.servers.append(server)

        def ready():
            if process.poll() is not None:
                raise LabError(f"the server of node {n} ended at once: {server.text()}")
            return listening(self.hosts[n], port or self.port, process.pid)

        wait_for(ready, 10, f"the server of node {n}")
        return server

    def fresh(self):
        """Forget all databases and empty all trees but the first."""
        self.stop()
        for n in self.hosts:
            shutil.rmtree(self.database(n))
            self.database(n).mkdir()
            if n > 1:
                shutil.rmtree(self.tree(n))
                self.tree(n).mkdir()

"""Ways for two xfer processes to reach each other, and relays in which a transfer can be stopped in the middle."""

import contextlib
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "system"))

from ports import free_port

XFER = str(Path(__file__).resolve().parents[2] / "build" / "xfer")


class Result:
    """What came of an xfer process."""

    def __init__(self, process, output, errors):
        self.status = process.returncode
        self.output, self.errors = output, (errors or b"").decode("utf-8", "backslashreplace")

    def __str__(self):
        return f"status {self.status}, said: {self.errors.strip()!r}"


def finish(process, seconds=60):
    """Wait for a process and take what it says."""
    try:
        return Result(process, *process.communicate(timeout=seconds))
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise AssertionError(f"hangs: {process.args}") from None


def start(*arguments, **options):
    """An xfer process whose standard output and error are kept."""
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.Popen([options.pop("xfer", XFER), *arguments], **options)


class Tcp:
    """A server on a port of the loopback interface."""

    name = "TCP"

    def __init__(self, directory, scratch, **options):
        self.log = open(Path(scratch) / "server.log", "w+b")
        self.server = start("serve", directory, "127.0.0.1:0", stderr=self.log, **options)
        deadline = time.monotonic() + 20
        while not (found := re.search(r"at (\S+:\d+)\n", self.said())):
            assert time.monotonic() < deadline and self.server.poll() is None, self.said()
            time.sleep(0.01)
        self.address = found[1]

    def said(self):
        """What the server has said so far."""
        self.log.flush()
        return Path(self.log.name).read_text("utf-8", "backslashreplace")

    def reach(self):
        """The arguments that stand for the other end."""
        return [self.address]

    def children(self):
        """The processes that serve clients."""
        found = subprocess.run(["pgrep", "-P", str(self.server.pid)], capture_output=True, check=False)
        return [int(pid) for pid in found.stdout.split()]

    def close(self):
        self.server.send_signal(signal.SIGTERM)
        self.server.wait(20)
        self.server.stdout.close()
        self.log.close()


class Via:
    """A server that the client starts, between two pipes."""

    name = "--via"

    def __init__(self, directory, scratch, command="{serve}", **_):
        self.command = command.format(serve=shlex.join([XFER, "serve", str(directory), "-"]))

    def reach(self):
        return ["--via", self.command]

    def close(self):
        pass


class Relay:
    """A port that passes connections on to another, and stops passing after so many bytes from one of the sides."""

    def __init__(self, address, upward=None, downward=None, then=None):
        self.target = (address.rpartition(":")[0], int(address.rpartition(":")[2]))
        self.limits, self.then = {"up": upward, "down": downward}, then
        self.passed, self.stopped = {"up": 0, "down": 0}, threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.sockets = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        client, _ = self.listener.accept()
        server = socket.create_connection(self.target)
        self.sockets = [client, server]
        for way, source, sink in (("up", client, server), ("down", server, client)):
            threading.Thread(target=self.pump, args=(way, source, sink), daemon=True).start()

    def pump(self, way, source, sink):
        limit = self.limits[way]
        try:
            while limit is None or self.passed[way] < limit:
                data = source.recv(65536 if limit is None else min(65536, limit - self.passed[way]))
                if not data:
                    sink.shutdown(socket.SHUT_WR)
                    return
                sink.sendall(data)
                self.passed[way] += len(data)
        except OSError:
            return
        self.stopped.set()

    def wait(self):
        """Until it has stopped in the middle."""
        assert self.stopped.wait(30), "the relay was not reached"
        time.sleep(0.05)

    def close(self):
        for each in self.sockets:
            # A close alone does not wake the thread that reads.
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        self.listener.close()


def pipes(client_arguments, directory):
    """A client and a server whose standard input and output are two pipes; both results."""
    there, back = os.pipe(), os.pipe()
    client = start(*client_arguments, stdin=back[0], stdout=there[1])
    server = start("serve", directory, "-", stdin=there[0], stdout=back[1])
    for descriptor in (*there, *back):
        os.close(descriptor)
    return finish(client), finish(server)


class Ssh:
    """A server that ssh starts: a real sshd, with keys, configuration and port of its own."""

    name = "ssh"

    def __init__(self, directory, scratch, **_):
        place = Path(scratch) / "ssh"
        place.mkdir(mode=0o700)
        for key in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", place / key], check=True)
        (place / "authorized").write_bytes((place / "user.pub").read_bytes())
        port = free_port()
        (place / "config").write_text(
            f"ListenAddress 127.0.0.1\nPort {port}\nHostKey {place}/host\nPidFile {place}/pid\n"
            f"AuthorizedKeysFile {place}/authorized\nStrictModes no\nUsePAM no\nPasswordAuthentication no\n"
            "PermitRootLogin prohibit-password\n"
        )
        if os.geteuid() == 0:
            os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
        sshd = subprocess.run(["sh", "-c", "command -v sshd"], capture_output=True, text=True, check=True).stdout.strip()
        self.log = open(place / "log", "wb")
        self.daemon = subprocess.Popen([sshd, "-D", "-e", "-f", place / "config"], stdin=subprocess.DEVNULL,
                                       stdout=self.log, stderr=self.log)
        ssh = ["ssh", "-F", "/dev/null", "-q", "-T", "-p", str(port), "-i", str(place / "user"), "-o", "BatchMode=yes",
               "-o", "IdentitiesOnly=yes", "-o", "StrictHostKeyChecking=no", "-o", f"UserKnownHostsFile={place}/known",
               "127.0.0.1"]
        self.command = shlex.join(ssh) + " " + shlex.quote(shlex.join([XFER, "serve", str(directory), "-"]))
        deadline = time.monotonic() + 20
        while subprocess.run([*ssh, "true"], stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode:
            said = (place / "log").read_text("utf-8", "replace")
            assert time.monotonic() < deadline and self.daemon.poll() is None, f"sshd: {said}"
            time.sleep(0.1)

    def reach(self):
        return ["--via", self.command]

    def close(self):
        self.daemon.terminate()
        self.daemon.wait(20)
        self.log.close()

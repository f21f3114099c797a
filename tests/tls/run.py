#!/usr/bin/env python3
"""This library's TLS with real peers: GnuTLS set up as csync2 does it, gnutls-cli, gnutls-serv, openssl s_client and
s_server. scripts/tls-interop runs this."""

import os
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "system"))

from ports import free_port, listening

ROOT = Path(__file__).resolve().parents[2]
PEER = ROOT / "build/tls-peer"
IDENTITIES = ROOT / "tests/tls"
KINDS = ["rsa1024", "rsa2048", "rsa3072", "rsa4096", "p256", "p384", "ed25519"]
VERSIONS = ["13", "12"]
SECONDS = 60


def certificate(name):
    return str(IDENTITIES / f"{name}-cert.pem")


def key(name):
    return str(IDENTITIES / f"{name}-key.pem")


def fingerprint(name):
    out = subprocess.run(["openssl", "x509", "-in", certificate(name), "-noout", "-fingerprint", "-sha256"],
                         check=True, capture_output=True, text=True).stdout
    return out.strip().partition("=")[2]


class Failed(Exception):
    pass


def expect(holds, *what):
    if not holds:
        raise Failed(" ".join(str(part) for part in what))


class End:
    """A process at one end: what it printed, and how it went."""

    def __init__(self, command, stdin=subprocess.DEVNULL):
        self.command = command
        self.process = subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.out = self.errors = ""

    def line(self):
        """The first line of its output."""
        ready, _, _ = select.select([self.process.stdout], [], [], SECONDS)
        expect(ready, self.command, "says nothing")
        return self.process.stdout.readline().decode()

    def join(self, stdin=None):
        try:
            out, errors = self.process.communicate(stdin, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            self.stop()
            raise Failed(f"{self.command} does not end") from None
        self.out, self.errors = out.decode(errors="replace"), errors.decode(errors="replace")
        return self

    def stop(self):
        self.process.kill()
        out, errors = self.process.communicate()
        self.out, self.errors = out.decode(errors="replace"), errors.decode(errors="replace")

    @property
    def status(self):
        return self.process.returncode

    @property
    def told(self):
        return dict(re.findall(r"(\w+)=(\S+)", self.out))

    def __str__(self):
        return f"{' '.join(self.command[:3])}: status {self.status}, {self.out.strip()!r}, {self.errors.strip()!r}"


def peer(library, role, port, identity, mode, *options):
    names = identity if isinstance(identity, tuple) else (certificate(identity), key(identity))
    return End([str(PEER), library, role, str(port), *names, mode, *options])


def pair(server, client, mode, *options, server_options=(), client_options=(), server_identity="p256",
         client_identity="p256"):
    """Two peers with each other; both have ended."""
    there = peer(server, "server", 0, server_identity, mode, *options, *server_options)
    port = there.line().strip().removeprefix("port=")
    here = peer(client, "client", port, client_identity, mode, *options, *client_options)
    return there.join(), here.join()


CASES = []


def case(name):
    def add(body):
        CASES.append((name, body))
        return body
    return add


def well(*ends):
    for end in ends:
        expect(end.status == 0 and end.told.get("end") == "clean", "not well:", *ends)


def matrix(server, client, kind, version):
    def body():
        ends = pair(server, client, "exchange", f"version={version}", "bytes=1000003", server_identity=kind,
                    client_identity=kind)
        well(*ends)
        for end in ends:
            expect(end.told["peer"] == fingerprint(kind), "another certificate:", end)
            expect(end.told["version"] == version[1], "another version:", end)
            expect(end.told["bytes"] == "2000006", "not all bytes:", end)
    return body


for kind in KINDS:
    for version in VERSIONS:
        CASES.append((f"gnutls server, our client, {kind}, 1.{version[1]}", matrix("gnutls", "csync", kind, version)))
        CASES.append((f"our server, gnutls client, {kind}, 1.{version[1]}", matrix("csync", "gnutls", kind, version)))
for version in VERSIONS:
    CASES.append((f"ours with ours, rsa1024, 1.{version[1]}", matrix("csync", "csync", "rsa1024", version)))


def tool_server(command, port):
    """A server of somebody else's, once it listens where we connect to: gnutls-serv has a socket for IPv6 besides, and
    goes on with one of them where the other cannot be had."""
    end = End(command, stdin=subprocess.PIPE)
    for _ in range(300):
        if listening("0.0.0.0", port):
            return end
        expect(end.process.poll() is None, command, "has ended")
        time.sleep(0.02)
    end.stop()
    raise Failed(f"{command} does not listen: {end}")


def to_tool(tool, kind, version):
    """Our client, a server of somebody else's."""
    def body():
        port = free_port()
        if tool == "gnutls-serv":
            command = ["gnutls-serv", "--echo", "--quiet", "--priority", f"PERFORMANCE:-VERS-ALL:+VERS-TLS1.{version[1]}",
                       "--x509certfile", certificate(kind), "--x509keyfile", key(kind),
                       "--x509cafile", certificate(kind), "--require-client-cert", "--port", str(port)]
            answer = "a line of text"
        else:
            command = ["openssl", "s_server", "-4", "-quiet", "-rev", f"-tls1_{version[1]}", "-cert", certificate(kind),
                       "-key", key(kind), "-Verify", "1", "-cipher", "DEFAULT@SECLEVEL=0", "-accept", str(port)]
            answer = "txet fo enil a"
        server = tool_server(command, port)
        try:
            client = peer("csync", "client", port, kind, "line", "text=a line of text", f"answer={answer}")
            client.join()
        finally:
            server.stop()
        well(client)
        expect(client.told["peer"] == fingerprint(kind) and client.told["version"] == version[1], client)
    return body


def from_tool(tool, kind, version):
    """Our server, a client of somebody else's."""
    def body():
        server = peer("csync", "server", 0, kind, "echo")
        port = server.line().strip().removeprefix("port=")
        if tool == "gnutls-cli":
            command = ["gnutls-cli", "--insecure", "--no-ca-verification", "--logfile=/dev/null",
                       "--priority", f"PERFORMANCE:-VERS-ALL:+VERS-TLS1.{version[1]}",
                       "--x509certfile", certificate(kind), "--x509keyfile", key(kind), "--port", port, "127.0.0.1"]
        else:
            command = ["openssl", "s_client", "-quiet", "-no_ign_eof", f"-tls1_{version[1]}", "-cert", certificate(kind),
                       "-key", key(kind), "-cipher", "DEFAULT@SECLEVEL=0", "-connect", f"127.0.0.1:{port}"]
        client = End(command, stdin=subprocess.PIPE)
        client.process.stdin.write(b"a line of text\n")
        client.process.stdin.flush()
        answer = ""
        while "a line of text" not in answer:
            ready, _, _ = select.select([client.process.stdout], [], [], SECONDS)
            got = os.read(client.process.stdout.fileno(), 4096).decode() if ready else ""
            if not got:
                break
            answer += got
        client.process.stdin.close()
        client.process.stdin = None
        client.join()
        server.join()
        expect("a line of text" in answer, "no echo:", client, server)
        expect(server.status == 0 and server.told["end"] in ("clean", "cut"), server, client)
        expect(server.told["peer"] == fingerprint(kind) and server.told["version"] == version[1], server)
    return body


for kind in KINDS:
    for version in VERSIONS:
        for tool in ("gnutls-serv", "openssl s_server"):
            CASES.append((f"{tool}, our client, {kind}, 1.{version[1]}", to_tool(tool, kind, version)))
        for tool in ("gnutls-cli", "openssl s_client"):
            CASES.append((f"our server, {tool}, {kind}, 1.{version[1]}", from_tool(tool, kind, version)))


def other_name(server, client):
    """GnuTLS servers name the authorities they want, and these are not ours."""
    def body():
        well(*pair(server, client, "exchange", server_identity="p384", client_identity="ed25519"))
    return body


CASES.append(("gnutls server that asks for another authority", other_name("gnutls", "csync")))
CASES.append(("gnutls client with another authority", other_name("csync", "gnutls")))

# --- key updates ---


@case("gnutls changes its keys every 500 records")
def _():
    there, here = pair("csync", "gnutls", "keys", "bytes=40000000", "piece=1000", client_options=("update=500",))
    well(there, here)
    expect(here.told["pieces"] == "40000", here)


@case("gnutls changes its keys 40 times and asks for ours, with data between")
def _():
    # GnuTLS itself takes no more than 8 changes in a second.
    there, here = pair("csync", "gnutls", "ping", "count=41", "piece=3000",
                       client_options=("update=1", "request=0"))
    well(there, here)


@case("gnutls asks for a change of our keys, and gets it with what we send next")
def _():
    there, here = pair("csync", "gnutls", "ping", "count=30", "piece=3000",
                       client_options=("update=5", "request=1"))
    well(there, here)


@case("ours sends no more than 65,600 records a GiB, and no key update among them")
def _():
    # GnuTLS without repetition dies of an update; its calls count the records.
    there, here = pair("gnutls", "csync", "upload", f"bytes={1 << 30}", "piece=131072", "check=0", "retry=0")
    well(there, here)
    records = int(there.told["reads"])
    expect(65536 <= records <= 65600, records, "records")


# --- refusals: each names the reason ---

def refused(name, server, client, in_server, in_client, **identities):
    def body():
        there, here = pair(server, client, "upload", "bytes=100000", **identities)
        expect(there.status != 0, "taken:", there, here)
        if in_server:
            expect(in_server in there.errors, in_server, "is not said:", there)
        if in_client:
            expect(in_client in here.errors, in_client, "is not said:", here)
    CASES.append((name, body))


for version in VERSIONS:
    options = {"server_options": (f"version={version}",), "client_options": (f"version={version}",)}
    refused(f"a client without a certificate, 1.{version[1]}", "csync", "gnutls", "the peer shows no certificate", None,
            client_identity=("-", "-"), **options)
    refused(f"a key of 768 bits at a gnutls client, 1.{version[1]}", "csync", "gnutls", "RSA of 768 bits is too small", None,
            client_identity="rsa768", client_options=(f"version={version}", f"priority=NORMAL:%VERIFY_ALLOW_BROKEN:%PROFILE_VERY_WEAK:-VERS-ALL:+VERS-TLS1.{version[1]}"),
            server_options=(f"version={version}",))
    for kind, other in (("p256", "p256-other"), ("rsa1024", "rsa1024-other"), ("rsa2048", "rsa4096")):
        stolen = (certificate(kind), key(other))
        refused(f"a client with the key of another certificate, {kind}, 1.{version[1]}", "csync", "gnutls",
                "the peer does not have the key of the certificate that it shows", None, client_identity=stolen,
                server_options=(f"version={version}",), client_options=(f"version={version}", "mismatch=1"))
        refused(f"a server with the key of another certificate, {kind}, 1.{version[1]}", "gnutls", "csync", None,
                "the peer does not have the key of the certificate that it shows", server_identity=stolen,
                client_options=(f"version={version}",), server_options=(f"version={version}", "mismatch=1"))
refused("versions that do not meet", "csync", "gnutls", "nothing that both sides can do", None,
        server_options=("version=13",), client_options=("version=12",))


def truncated(server, client, version, *options):
    def body():
        there, here = pair(server, client, "cut", "bytes=1000000", f"version={version}", *options)
        expect(there.told["end"] in (("error",) if "reset=1" in options else ("cut",)), there, here)
    return body


for version in VERSIONS:
    CASES.append((f"a gnutls client that is gone without a word, 1.{version[1]}", truncated("csync", "gnutls", version)))
    CASES.append((f"our client, gone without a word, at gnutls, 1.{version[1]}", truncated("gnutls", "csync", version)))
CASES.append(("a connection that is reset", truncated("csync", "gnutls", "13", "reset=1")))


def main():
    chosen = [part for part in sys.argv[1:]]
    passed, failed = 0, 0
    for name, body in CASES:
        if chosen and not any(part in name for part in chosen):
            continue
        try:
            body()
            passed += 1
        except Failed as error:
            failed += 1
            print(f"FAILED {name}: {error}", flush=True)
    print(f"tls-interop: {passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main())

"""One host that cannot be updated does not take the others with it (faults C11, C13, C15)."""

import contextlib
import socket

from harness import case, check
from lab import Lab, LabError, binary, credentials
from peers import TlsPeer
from test_faults import PAIRS, arrived, ended, make_dirty


def first_sync(lab, client, server):
    """All nodes know each other's certificates, and have the first file."""
    make_dirty(lab, binary(client), a=b"first")
    for n in list(lab.hosts)[1:]:
        lab.serve(binary(server), n)
    run = lab.run(binary(client), 1, "-u", seconds=20)
    check(run.returncode == 0, f"{ended(run)}: {run.stderr}")


def change_certificate(lab, n):
    """Node n has another key and certificate than it had."""
    key, certificate = credentials(n + 10)
    (lab.etc(n) / "csync2_ssl_key.pem").write_bytes(key)
    (lab.etc(n) / "csync2_ssl_cert.pem").write_bytes(certificate)


# C11: certificates and keys


def wrong_certificate(context, client, server, good):
    with Lab(context.scratch, count=3, tls=True) as lab:
        first_sync(lab, client, server)
        change_certificate(lab, 3)
        make_dirty(lab, binary(client), b=b"second")
        run = lab.run(binary(client), 1, "-u", seconds=20)
        check(run.returncode == 1, f"{ended(run)}, expected exit code 1: {run.stderr}")
        check(not arrived(lab, 3, "b"), "a file was sent to a host with a wrong certificate")
        if good:
            check(arrived(lab, 2, "b"), f"node 2 has not got the file: {run.stderr}")
            check(lab.hosts[3] in run.stderr, f"the host is not named: {run.stderr}")
        else:
            check(not arrived(lab, 2, "b"), "the fault did not show: node 2 has the file")
            context.remark(f"seen: {run.stderr.splitlines()[-1:]}, node 2 was left out")


case("original: a host with a wrong certificate takes the others with it (fault C11)",
     "original", "original", False)(wrong_certificate)  # fmt: skip
for client, server in PAIRS[:2]:
    case(f"{client} to {server}: a host with a wrong certificate, the next host is synced (C11)",
         client, server, True)(wrong_certificate)  # fmt: skip


def bad_key(context, client, good):
    """The key of node 1 is unusable. Node 3 is to be spoken to in TLS, node 2 is not."""
    with Lab(context.scratch, count=3, tls=True) as lab:
        plain = f"nossl {lab.hosts[1]} {lab.hosts[2]};\nnossl {lab.hosts[2]} {lab.hosts[1]};\n"
        for n in lab.hosts:
            config = lab.etc(n) / "csync2.cfg"
            config.write_text(plain + config.read_text())
        (lab.etc(1) / "csync2_ssl_key.pem").write_text("no key\n")
        make_dirty(lab, binary(client), a=b"first")
        for n in (2, 3):
            lab.serve(binary("patched"), n)
        run = lab.run(binary(client), 1, "-u", seconds=20)
        check(run.returncode == 1, f"{ended(run)}, expected exit code 1: {run.stderr}")
        if good:
            check(arrived(lab, 2, "a"), f"node 2 has not got the file: {run.stderr}")
            check("csync2_ssl_key.pem" in run.stderr, f"the file is not named: {run.stderr}")
        else:
            check(not arrived(lab, 2, "a"), "the fault did not show: node 2 has the file")
            context.remark(f"seen: {run.stderr.splitlines()[-1:]}, node 2 was left out")


case("original: a bad key file ends the run for hosts without TLS, too (fault C11)", "original", False)(bad_key)
case("patched: a bad key file, the host without TLS is synced (C11)", "patched", True)(bad_key)


# C13: a peer that does not take its leave


def nothing_listed(line):
    return b"OK (cu_later).\n" if line.startswith(b"BYE") else b"OK (cmd_finished).\n"


def no_farewell(context, client, good):
    with Lab(context.scratch, tls=True) as lab, TlsPeer(lab, 2, nothing_listed):
        try:
            run = lab.run(binary(client), 1, "-T", lab.hosts[1], lab.hosts[2], seconds=5)
        except LabError as error:
            check(not good, str(error))
            context.remark(f"seen: {error}")
        else:
            check(good, f"the fault did not show: {ended(run)}, {run.stderr}")
            check(run.returncode == 2, f"{ended(run)}, expected exit code 2: {run.stderr}")


case("original: a peer that never closes TLS hangs the client (fault C13)", "original", False)(no_farewell)
case("patched: a peer that never closes TLS, the client ends (C13)", "patched", True)(no_farewell)


# C15: a host that does not answer


@contextlib.contextmanager
def blackhole(host, port):
    """An address at which nobody answers: its queue of connections is full, so that the kernel drops all others."""
    with contextlib.ExitStack() as stack:
        full = stack.enter_context(socket.socket())
        full.bind((host, port))
        full.listen(0)
        for _ in range(100):
            client = stack.enter_context(socket.socket())
            client.settimeout(0.2)
            try:
                client.connect((host, port))
            except TimeoutError:
                break
        else:
            raise LabError("the queue of connections did not become full")
        yield


def three_hosts(context, client, server, good):
    """Node 4 does not answer, node 3 has a wrong certificate, node 2 is well. The last is the first in turn."""
    with Lab(context.scratch, count=4, tls=True) as lab:
        first_sync(lab, client, server)
        change_certificate(lab, 3)
        lab.servers[2].stop()
        make_dirty(lab, binary(client), b=b"second")
        with blackhole(lab.hosts[4], lab.port):
            try:
                run = lab.run(binary(client), 1, "-u", seconds=30 if good else 10,
                              extra={"CSYNC2_CONNECT_TIMEOUT": "2"})  # fmt: skip
            except LabError as error:
                check(not good, str(error))
                check(not arrived(lab, 2, "b"), "the fault did not show: node 2 has the file")
                context.remark(f"seen: {error}, and node 2 was not reached")
                return
        check(good, f"the fault did not show: {ended(run)}, {run.stderr}")
        check(run.returncode == 1, f"{ended(run)}, expected exit code 1: {run.stderr}")
        check(arrived(lab, 2, "b"), f"node 2 has not got the file: {run.stderr}")
        check(not arrived(lab, 3, "b"), "a file was sent to a host with a wrong certificate")
        for n in (3, 4):
            check(f"`{lab.hosts[n]}' failed" in run.stderr, f"node {n} is not named: {run.stderr}")
        dirty = lab.run(binary(client), 1, "-M").stdout
        check(lab.hosts[2] not in dirty, f"dirty afterwards: {dirty}")
        check(lab.hosts[3] in dirty and lab.hosts[4] in dirty, f"dirty afterwards: {dirty}")


case("original: a host that does not answer keeps all others waiting (fault C15)",
     "original", "original", False)(three_hosts)  # fmt: skip
for client, server in PAIRS[:2]:
    case(f"{client} to {server}: one host silent, one with a wrong certificate, one well: it is synced (C15, C11)",
         client, server, True)(three_hosts)  # fmt: skip


@case("patched: a time limit that is no number is named, and the default taken (C15)")
def odd_limit(context):
    with Lab(context.scratch, tls=False) as lab:
        make_dirty(lab, binary("patched"), a=b"first")
        lab.serve(binary("patched"), 2)
        run = lab.run(binary("patched"), 1, "-u", seconds=20, extra={"CSYNC2_CONNECT_TIMEOUT": "soon"})
        check(run.returncode == 0 and arrived(lab, 2, "a"), f"{ended(run)}: {run.stderr}")
        check("CSYNC2_CONNECT_TIMEOUT=soon" in run.stderr, f"not named: {run.stderr}")

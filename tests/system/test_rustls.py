"""TLS by rustls, in step with GnuTLS: every kind of key, both versions, what is refused, and how much is sent at once.

The whole matrix by INTEROP=full (make interop); otherwise each kind of key once in each direction.
"""

import itertools
import os
import random
import re
import socket
import ssl
import sqlite3
from pathlib import Path

import trees
from harness import case, check
from lab import KEYS, Lab, LabError, binary, credentials
from peers import TlsPeer
from test_faults import arrived, ended, make_dirty
from test_pairs import compare

FULL = os.environ.get("INTEROP") == "full"
GNUTLS = ("patched", "original")

# GnuTLS reads this instead of the system's own settings.
NO_TLS13 = "[overrides]\ndisabled-version = tls1.3\n"


def in_step(context, client, server, kind, version):
    """A tree there, then edited: equal each time. The two nodes have keys of the same kind."""
    with Lab(context.scratch) as lab:
        extra = {}
        if version == "1.2":
            settings = Path(context.scratch) / "gnutls"
            settings.write_text(NO_TLS13)
            extra = {"GNUTLS_SYSTEM_PRIORITY_FILE": str(settings)}
        for n in (1, 2):
            # the one has a certificate of version 1, as csync2's own recipe makes it
            lab.identify(n, *credentials(n, kind=kind, version=1 if n == 1 else 3))
        served = lab.serve(binary(server), 2, extra=extra)
        for turn in range(2):
            trees.write(lab.tree(1) / "big", random.Random(kind).randbytes(1 << 20) + b"%d" % turn, trees.EPOCH + turn)
            for i in range(10):
                trees.write(lab.tree(1) / f"small{i}", b"%d %d" % (i, turn), trees.EPOCH + turn)
            run = lab.run(binary(client), 1, "-xvvv", extra=extra)
            check(run.returncode == 0, f"turn {turn}: {ended(run)}: {run.stderr[-2000:]}{served.text()[-2000:]}")
            compare(lab, 1, 2)
            said = re.findall("SSL: (TLS[^,]*), ", run.stderr)
            check(client != "rustls" or said == [f"TLS {version}"], f"not TLS {version} but {said}")


PAIRS = [pair for other in GNUTLS for pair in (("rustls", other), (other, "rustls"))]
for kind in KEYS:
    for client, server in PAIRS if FULL else PAIRS[2:]:
        case(f"{client} to {server}: {kind}, TLS 1.3", client, server, kind, "1.3")(in_step)
    for client, server in PAIRS if FULL else PAIRS[2:] if kind in ("RSA-1024", "P-256") else []:
        case(f"{client} to {server}: {kind}, TLS 1.2", client, server, kind, "1.2")(in_step)
    if FULL or kind in ("RSA-1024", "RSA-4096"):
        case(f"rustls to rustls: {kind}, TLS 1.3", "rustls", "rustls", kind, "1.3")(in_step)


def pins_stay(context):
    """What GnuTLS has stored is what rustls compares with: an upgrade asks nobody, and a way back neither."""
    with Lab(context.scratch) as lab:
        for turn, (client, server) in enumerate(itertools.product(("original", "rustls"), repeat=2)):
            served = lab.serve(binary(server), 2)
            trees.write(lab.tree(1) / "file", b"%d" % turn, trees.EPOCH + turn)
            run = lab.run(binary(client), 1, "-x")
            check(run.returncode == 0, f"{client} to {server}: {ended(run)}: {run.stderr}")
            served.stop()
        for n in (1, 2):
            for database in lab.database(n).glob("*.db3"):
                with sqlite3.connect(database) as db:
                    rows = db.execute("SELECT peername, certdata FROM x509_cert").fetchall()
                check(len(rows) == 1, f"node {n} stores {len(rows)} certificates")


case("rustls and original, in turns: the stored certificates stay valid")(pins_stay)


def refused(context, client, server, wrong, word):
    """The peer's certificate is another than the stored one: refused by name, and the next host is served."""
    with Lab(context.scratch, count=3) as lab:
        make_dirty(lab, binary(client), file=b"content")
        lab.serve(binary(server), 2)
        lab.serve(binary(server), 3)
        run = lab.run(binary(client), 1, "-u")
        check(run.returncode == 0, f"{ended(run)}: {run.stderr}")
        lab.stop()
        lab.identify(2, *wrong(lab))
        make_dirty(lab, binary(client), file=b"other")
        lab.serve(binary(server), 2)
        lab.serve(binary(server), 3)
        run = lab.run(binary(client), 1, "-u", seconds=30)
        check(run.returncode != 0, "the exit code says that all is well")
        check(re.search(word, run.stderr) and lab.hosts[2] in run.stderr, f"the message: {run.stderr}")
        check(not arrived(lab, 2, "file") and arrived(lab, 3, "file"), "the wrong host was served, or the good one was not")


def another(_):
    return credentials(2, kind="P-256")


case("rustls to rustls: a changed certificate is refused by name, the next host is served (C11)",
     "rustls", "rustls", another, "certificate")(refused)  # fmt: skip
case("rustls to original: a changed certificate is refused by name, the next host is served (C11)",
     "rustls", "original", another, "certificate")(refused)  # fmt: skip


def inject(lab, n):
    """What a man in the middle sends: commands in plain text, in one packet with the line ahead of TLS. Returns what
    is answered in TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.load_cert_chain(lab.etc(1) / "csync2_ssl_cert.pem", lab.etc(1) / "csync2_ssl_key.pem")
    with socket.create_connection((lab.hosts[n], lab.port), timeout=10, source_address=(lab.hosts[1], 0)) as connection:
        connection.sendall(b"SSL\nCONFIG \nHELLO %b\nBYE\n" % lab.hosts[1].encode())
        if not connection.recv(len(b"OK (activating_ssl).\n")):
            return b""
        try:
            with context.wrap_socket(connection) as tls:
                return b"".join(iter(lambda: tls.recv(4096), b""))
        except OSError:
            return b""


def commands_ahead(context, server, executed):
    with Lab(context.scratch) as lab:
        lab.serve(binary(server), 2)
        answers = inject(lab, 2)
        context.remark(f"answered in TLS: {answers!r}")
        check((b"OK" in answers) == executed, f"executed: {answers!r}")


def answers_ahead(context, client, believed):
    with Lab(context.scratch) as lab:
        make_dirty(lab, binary(client), file=b"content")
        got = []

        def no_answer(line):
            got.append(line)
            return b""

        with TlsPeer(lab, 2, no_answer, ahead=2 * b"OK (cmd_finished).\n"):
            try:
                run = lab.run(binary(client), 1, "-u", seconds=5)
                context.remark(f"the client: {ended(run)}")
                check(run.returncode != 0, "the client says that all is well")
            except LabError as error:  # (the original waits for more answers)
                context.remark(f"the client: {error}")
        sent = b"".join(got)
        context.remark(f"it has sent in TLS: {re.sub(b'(lab)+', b'KEY', sent)!r}")
        check((b"HELLO" in sent) == believed, f"believed: {sent!r}")


for server, executed in (("original", True), ("patched", False), ("rustls", False)):
    word = "executed (fault C5)" if executed else "refused (C5)"
    case(f"{server}: commands in plain text ahead of TLS are {word}", server, executed)(commands_ahead)
for client, believed in (("original", True), ("patched", False), ("rustls", False)):
    word = "believed (fault C5)" if believed else "refused (C5)"
    case(f"{client}: answers in plain text ahead of TLS are {word}", client, believed)(answers_ahead)

"""Whose certificate is taken (faults C9, C12)."""

import contextlib
import hashlib
import sqlite3
import ssl

from harness import case, check
from lab import Lab, binary, credentials
from test_faults import PAIRS, arrived, ended, make_dirty


def use(lab, n, key, certificate):
    """Give node n a key and a certificate."""
    (lab.etc(n) / "csync2_ssl_key.pem").write_bytes(key)
    (lab.etc(n) / "csync2_ssl_cert.pem").write_bytes(certificate)


# C9: certificates with names of their own


def own_names(context, client, server, good):
    with Lab(context.scratch, tls=True) as lab:
        for n in lab.hosts:
            use(lab, n, *credentials(n, f"/O=csync2 laboratory/CN=node{n}"))
        make_dirty(lab, binary(client), a=b"first")
        lab.serve(binary(server), 2)
        run = lab.run(binary(client), 1, "-u", seconds=20)
        if good:
            check(run.returncode == 0 and arrived(lab, 2, "a"), f"{ended(run)}: {run.stderr}")
        else:
            check(run.returncode != 0 and not arrived(lab, 2, "a"), f"the fault did not show: {ended(run)}")
            context.remark(f"seen: {ended(run)} {' '.join(run.stderr.splitlines()[-1:])}")


case("original: two nodes whose certificates have names of their own (fault C9)",
     "original", "original", False)(own_names)  # fmt: skip
for client, server in PAIRS:
    case(f"{client} to {server}: two nodes whose certificates have names of their own (C9)",
         client, server, True)(own_names)  # fmt: skip


# C12: more than one certificate of a peer, and what is logged of them

# as doc/csync2.adoc of the patched csync2 says it
SEVERAL = """
BEGIN;
ALTER TABLE x509_cert RENAME TO x509_cert_old;
CREATE TABLE x509_cert (peername, certdata);
INSERT INTO x509_cert SELECT peername, certdata FROM x509_cert_old;
DROP TABLE x509_cert_old;
COMMIT;
"""


def der(n):
    return ssl.PEM_cert_to_DER_cert(credentials(n)[1].decode())


def store(lab, n, peer, certificate):
    """Have node n know another certificate of a peer, beside the one it has."""
    with contextlib.closing(sqlite3.connect(lab.database(n) / f"{lab.hosts[n]}.db3")) as database:
        database.executescript(SEVERAL)
        database.execute("INSERT INTO x509_cert VALUES (?, ?)", (lab.hosts[peer], certificate.hex().upper()))
        database.commit()


def two_certificates(context, client, server, changes, good):
    """Each node has a second certificate of the other. The first is in use, or the nodes change to the second."""
    with Lab(context.scratch, tls=True) as lab:
        make_dirty(lab, binary(client), a=b"first")
        served = lab.serve(binary(server), 2)
        check(lab.run(binary(client), 1, "-u", seconds=20).returncode == 0, "the first run failed")
        served.stop()
        for n, peer in ((1, 2), (2, 1)):
            store(lab, n, peer, der(peer + 10))
        if changes:
            for n in lab.hosts:
                use(lab, n, *credentials(n + 10))
        make_dirty(lab, binary(client), b=b"second")
        lab.serve(binary(server), 2)
        run = lab.run(binary(client), 1, "-u", seconds=20)
        if good:
            check(run.returncode == 0 and arrived(lab, 2, "b"), f"{ended(run)}: {run.stderr}")
        else:
            check(run.returncode == 1 and not arrived(lab, 2, "b"), f"the fault did not show: {ended(run)}")
            context.remark(f"seen: {' '.join(run.stderr.splitlines()[-1:])}")


case("original: of two stored certificates only the last is taken (fault C12)",
     "original", "original", False, False)(two_certificates)  # fmt: skip
case("patched: the first of two stored certificates (C12)", "patched", "patched", False, True)(two_certificates)
case("patched: the nodes change to the second of two stored certificates (C12)",
     "patched", "patched", True, True)(two_certificates)  # fmt: skip


def fingerprints(context, variant, good):
    with Lab(context.scratch, tls=True) as lab:
        make_dirty(lab, binary(variant), a=b"first")
        served = lab.serve(binary(variant), 2, "-iiivvvv")
        run = lab.run(binary(variant), 1, "-uvvvv", seconds=20)
        check(run.returncode == 0, f"{ended(run)}: {run.stderr}")
        served.wait(10)
        for n, text in ((2, run.stderr), (1, served.text())):
            whole = der(n).hex().upper()
            mark = hashlib.sha256(der(n)).hexdigest().upper()
            mark = ":".join(mark[i : i + 2] for i in range(0, len(mark), 2))
            if good:
                check(mark in text, f"the fingerprint {mark} is not in the log: {text}")
                check(whole not in text, "the certificate is in the log")
            else:
                check(whole in text and mark not in text, f"the fault did not show: {text}")


case("original: whole certificates in the log (fault C12)", "original", False)(fingerprints)
case("patched: fingerprints of certificates in the log (C12)", "patched", True)(fingerprints)

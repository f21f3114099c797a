"""GnuTLS changes its keys after 2^24 records, in the middle of a file (fault C1).

At 512 bytes a record that is after 8 GiB. The preload starts both record counters short of it.
"""

import random

import trees
from harness import case, check
from lab import BUILDS, Lab, binary
from test_faults import arrived, ended, make_dirty

PRELOAD = str(BUILDS / "preload.so")
LIMIT = 1 << 24
# records before the limit: inside a 5 MiB file sent in pieces of 512 bytes, and of 16 KiB
EARLY, LATE = LIMIT - 5000, LIMIT - 150


def key_update(context, client, server, start, completes):
    extra = {"LD_PRELOAD": PRELOAD, "LAB_SEQUENCE": str(start)}
    with Lab(context.scratch, tls=True) as lab:
        make_dirty(lab, binary(client), a=b"first", big=random.Random(6).randbytes(5 << 20), c=b"third")
        served = lab.serve(binary(server), 2, "-iii", extra=extra)
        run = lab.run(binary(client), 1, "-u", seconds=30, extra=extra)
        code = served.wait(10)
        whole = all(arrived(lab, 2, name) for name in ("a", "big", "c"))
        state = f"the client: {ended(run)}, the server: exit code {code}, everything arrived: {whole}"
        context.remark(state)
        if completes is None:
            # as far as an unpatched conn.c allows: complete, or a clean end that says so
            check(run.returncode in (0, 1) and code >= 0, f"not a clean end: {run.stderr}")
            check((run.returncode == 0) == whole, f"the exit code does not tell the truth: {run.stderr}")
            check(whole or not (lab.tree(2) / "big").exists(), "part of a file was put in place")
        elif completes:
            check(run.returncode == 0 and code == 0 and whole, f"{run.stderr}{served.text()}")
        else:
            check(run.returncode != 0 and not whole, "the fault did not show")


for start, word in ((EARLY, "5000"), (LATE, "150")):
    case(f"original to original: a key update after {word} records ends the run (fault C1)",
         "original", "original", start, False)(key_update)  # fmt: skip
    case(f"patched to patched: a key update after {word} records, the run completes (C1)",
         "patched", "patched", start, True)(key_update)  # fmt: skip
    case(f"original to patched: a key update after {word} records, the run completes (C1)",
         "original", "patched", start, True)(key_update)  # fmt: skip
case("patched to original: a key update that the peer cannot take, a clean end (C1)",
     "patched", "original", LATE, None)(key_update)  # fmt: skip
for client, server in (("lib-only", "lib-only"), ("lib-only", "original"), ("lib-only", "patched"), ("original", "lib-only")):
    case(f"{client} to {server}: a key update under an unpatched conn.c, complete or a clean end (C1)",
         client, server, LATE, None)(key_update)  # fmt: skip


def long_run(context, client, server):
    """Many key updates: the counters reach the limit once for each connection, so there are as many connections."""
    extra = {"LD_PRELOAD": PRELOAD, "LAB_SEQUENCE": str(LATE)}
    with Lab(context.scratch, tls=True) as lab:
        lab.serve(binary(server), 2, extra=extra)
        for turn in range(4):
            trees.write(lab.tree(1) / "big", random.Random(turn).randbytes(4 << 20), trees.EPOCH + turn)
            run = lab.run(binary(client), 1, "-x", seconds=30, extra=extra)
            check(run.returncode == 0 and arrived(lab, 2, "big"), f"turn {turn}: {ended(run)}: {run.stderr}")


case("patched to patched: a key update in every one of four connections (C1)", "patched", "patched")(long_run)


def updates_to_rustls(context, client, server, every, asked):
    """GnuTLS at one end changes its keys all the time, and may ask rustls at the other end to do so, too."""
    with Lab(context.scratch, tls=True) as lab:
        gnutls = {"LD_PRELOAD": PRELOAD, "LAB_KEY_UPDATE": str(every)}
        if asked:
            gnutls["LAB_KEY_UPDATE_PEER"] = "1"
        make_dirty(lab, binary(client), a=b"first", big=random.Random(6).randbytes(5 << 20), c=b"third")
        served = lab.serve(binary(server), 2, "-iii", extra=gnutls if server != "rustls" else None)
        run = lab.run(binary(client), 1, "-u", seconds=30, extra=gnutls if client != "rustls" else None)
        code = served.wait(10)
        whole = all(arrived(lab, 2, name) for name in ("a", "big", "c"))
        context.remark(f"the client: {ended(run)}, the server: exit code {code}, everything arrived: {whole}")
        check(run.returncode == 0 and code == 0 and whole, f"{run.stderr}{served.text()}")


# (the original as the sender only: it takes an update of its peer's for a failure)
case("original to rustls: a key update every 500 records (C1)", "original", "rustls", 500, False)(updates_to_rustls)
case("patched to rustls: a key update every 100 records, each with one asked for (C1)",
     "patched", "rustls", 100, True)(updates_to_rustls)  # fmt: skip
case("rustls to patched: a key update every 8 of the server's records, each with one asked for (C1)",
     "rustls", "patched", 8, True)(updates_to_rustls)  # fmt: skip

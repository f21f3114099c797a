"""What is sent before earlier answers are there, so that a distant peer costs less time, and what is not."""

import os
import threading

import trees
from harness import case, check
from lab import Lab, binary
from peers import Proxy
from test_faults import PAIRS, arrived, ended, make_dirty, make_known

# One file at a time.
ALONE = {"CSYNC2_PIPELINE": "1"}

# Attributes


def attributes_behind_the_delta(context, client, server, good):
    """The answer to the delta is held back until the client has sent the time, or does not send it."""
    sent, seen = threading.Event(), []

    def hold(upwards, data, _total):
        if upwards:
            if b"octet-stream" in data:
                seen.append("delta")
            if b"SETIME " in data and b"/a " in data:
                seen.append("SETIME")
                sent.set()
        elif "delta" in seen and "answer" not in seen:
            sent.wait(10 if good else 3)
            seen.append("answer")
        return data

    with Lab(context.scratch, tls=False) as lab:
        make_dirty(lab, binary(client), a=b"new")
        lab.serve(binary(server), 2, port=lab.port + 1)
        with Proxy(lab, 2, lab.port + 1, hold):
            run = lab.run(binary(client), 1, "-u", seconds=30, extra=ALONE)
        check(run.returncode == 0 and arrived(lab, 2, "a"), f"{ended(run)}: {run.stderr}")
        status = os.lstat(lab.tree(2) / "a")
        check(status.st_mtime == trees.EPOCH, f"the time there is {status.st_mtime}")
        order = seen[: seen.index("answer") + 1]
        if good:
            check(order == ["delta", "SETIME", "answer"], f"in this order: {order}")
        else:
            check(order == ["delta", "answer"], f"the fault did not show: {order}")
            context.remark("seen: no SETIME within 3 s while the answer to the delta is held back")


case("original: the attributes of a file wait for the answer to its delta", "original", "original", False)(
    attributes_behind_the_delta)  # fmt: skip
for client, server in PAIRS[:2]:
    case(f"{client} to {server}: the attributes of a file leave with its delta", client, server, True)(
        attributes_behind_the_delta)  # fmt: skip


def error_in_an_attribute(context, client, server):
    """The peer may not give files away: one error for the file, which stays dirty, and the next file is synced."""
    with Lab(context.scratch, tls=False) as lab:
        make_dirty(lab, binary(client), a=b"somebody's", b=b"another file")
        os.chown(lab.tree(1) / "a", 1234, 1234)
        lab.run(binary(client), 1, "-cr", lab.tree(1))
        fault = ("strace", "-f", "-o", "/dev/null", "-P", lab.tree(2) / "a", "-e", "trace=lchown,fchownat",
                 "-e", "inject=lchown,fchownat:error=EPERM")  # fmt: skip
        make_known(lab, binary(server), 2)
        lab.serve(binary(server), 2, prefix=fault)
        run = lab.run(binary(client), 1, "-u", seconds=20)
        check(run.returncode == 1 and "Finished with 1 errors" in run.stderr, f"{ended(run)}: {run.stderr}")
        check(arrived(lab, 2, "b"), f"the other file did not arrive: {run.stderr}")
        dirty = lab.run(binary(client), 1, "-M").stdout
        check("/a\n" in dirty and "/b\n" not in dirty, f"dirty afterwards: {dirty}")


for client, server in [("original", "original"), *PAIRS[:2]]:
    case(f"{client} to {server}: an error in an attribute is one error, the file stays dirty", client, server)(
        error_in_an_attribute)  # fmt: skip


@case("patched to patched: a hundred conflicts in a row cost few connections (pipeline)")
def conflicts_in_a_row(context):
    names = [f"f{i:03}" for i in range(100)]
    with Lab(context.scratch, tls=False) as lab:
        for n in (1, 2):
            for name in names:
                trees.write(lab.tree(n) / name, f"{name} of {n}".encode(), trees.EPOCH + n)
            check(lab.run(binary("patched"), n, "-cr", lab.tree(n)).returncode == 0, "csync2 -cr")
        served = lab.serve(binary("patched"), 2)
        run = lab.run(binary("patched"), 1, "-uv")
        made = run.stderr.count("Connecting to host")
        logged = served.text().count("too long")
        context.remark(f"{made} connections, {logged} lines in the server's log about lines that are too long")
        check(run.returncode != 0 and not any(arrived(lab, 2, name) for name in names), "the conflicts are gone")
        check(made <= 4 and logged <= 4, "a connection for each window of files")

"""What a synchronisation costs in system calls, and where it leaves traces (faults S15, T3, T6)."""

import contextlib
import functools
import os
import random
import sqlite3
import tempfile

import trees
from harness import FULL, case, check
from lab import Lab, binary, wait_for
from peers import RawClient
from syscalls import Trace, strace
from test_reports import WHOLE

FILES, LARGE = (2000, 256 << 20) if FULL else (200, 32 << 20)
PIECE = 16384


def make_tree(top):
    chance = random.Random(11)
    for i in range(FILES):
        directory = top / f"d{i % 10}"
        directory.mkdir(exist_ok=True)
        trees.write(directory / f"f{i}", chance.randbytes(4096), trees.EPOCH + i)
    trees.write_random(top / "large", LARGE, chance, trees.EPOCH)


@functools.cache
def traced(variant, tls):
    """A first synchronisation, both ends under strace: the client's trace, the server's, and how many there were."""
    with tempfile.TemporaryDirectory(prefix="csync-rs-system-") as scratch, Lab(scratch, tls=tls) as lab:
        make_tree(lab.tree(1))
        program, outputs = binary(variant), {n: lab.base / f"strace{n}" for n in (1, 2)}
        checked = lab.run(program, 1, "-cr", lab.tree(1))
        check(checked.returncode == 0, f"csync2 -cr: {checked.stderr}")
        server = lab.serve(program, 2, "-iii", prefix=strace(outputs[2]))
        run = lab.run(program, 1, "-u", prefix=strace(outputs[1]), seconds=300)
        check(run.returncode == 0 and server.wait(30) == 0, f"csync2 -u: {run.returncode} {run.stderr}{server.text()}")
        lines = trees.differences(trees.digest(lab.tree(1)), trees.digest(lab.tree(2)))
        check(not lines, "\n".join(lines[:5]))
        return {n: Trace(outputs[n], lab.tree(n), (lab.database(n), server.log)) for n in (1, 2)}, trees.measure(lab.tree(1))


def temporary(name):
    """csync2's temporary names: .NAME.XXXXXX"""
    return os.path.basename(name).startswith(".")


def source_untouched(context, variant, good):
    trace, _ = traced(variant, False)
    found = trace[1].created
    context.remark(f"{len(found)} files made in the source tree" + (f", such as {found[0][0]}" if found else ""))
    check(bool(found) != good, "files were made in the source tree" if good else "the fault did not show")


def receiver_names(context, variant, good):
    trace, (files, _) = traced(variant, False)
    named = {path for path, unnamed in trace[2].created if not unnamed and temporary(path)}
    unnamed = sum(unnamed for _, unnamed in trace[2].created)
    renamed = {old for old, _ in trace[2].renamed}
    context.remark(f"{files} files: {unnamed} made without a name, {len(named)} temporary names, {len(renamed)} of them renamed")
    # a new file that was made without a name gets its final one at once; one that replaces another is linked to a
    # temporary name and renamed
    only_final = named == renamed and len(named) <= files <= unnamed + len(named)
    check(only_final == good, "temporary names other than the final ones" if good else "the fault did not show")


def bytes_written(context, variant, good):
    trace, (_, size) = traced(variant, False)
    context.remark(f"{size} bytes of files: the client wrote {trace[1].written}, the server {trace[2].written}")
    once = trace[1].written == 0 and trace[2].written == size
    check(once == good, "more was written than the files once" if good else "the fault did not show")


def pieces_sent(context, variant, tls, good):
    trace, (files, _) = traced(variant, tls)
    directories = 1 + 10
    # per file SIG, PATCH, SETOWN, SETMOD, SETIME and the delta in pieces; at the start and at the
    # end SSL, the handshake's, CONFIG, HELLO, BYE and the farewell
    client = 5 * files + 5 * directories + 15 + FILES + -(-(LARGE + 100) // PIECE)
    # per file two lines for SIG, for PATCH a line, the signature, a line; SETOWN, SETMOD, SETIME
    server = 8 * files + 6 * directories + 15
    sent = {n: len(trace[n].sent) for n in (1, 2)}
    context.remark(f"the client sent {sent[1]} times (bound {client}), the server {sent[2]} times (bound {server})")
    bounded = sent[1] <= client and sent[2] <= server
    check(bounded == good, "more than a write for 16 KiB and one for each message" if good else "the fault did not show")


def alarms_set(context, variant, good):
    trace, (files, _) = traced(variant, False)
    context.remark(f"{files} files: the client set {trace[1].alarms} alarms, the server {trace[2].alarms}")
    check((trace[1].alarms + trace[2].alarms < files) == good, "an alarm a query" if good else "the fault did not show")


@case("patched: a database that is idle is let go after ten seconds, the connection is kept")
def idle_database(context):
    with Lab(context.scratch, tls=False) as lab:
        lab.serve(binary("patched"), 2, "-iii")
        with RawClient(lab, 2) as client:
            for i in range(60):  # (csync2 begins a transaction with the fiftieth query)
                check(client.patch(f"f{i}", WHOLE) == "OK (cmd_finished).", f"the file {i} was refused")
            (path,) = lab.database(2).glob("*.db3")

            def locked():
                with contextlib.closing(sqlite3.connect(path, timeout=0)) as database:
                    try:
                        database.execute("BEGIN IMMEDIATE")
                    except sqlite3.OperationalError:
                        return True
                return False

            check(locked(), "there is no transaction to end")
            wait_for(lambda: not locked(), 20, "the end of the transaction")
            check(client.patch("last", WHOLE) == "OK (cmd_finished).", "the session has ended")


for variant, good in (("original", False), ("patched", True)):
    mark, fault = ("", "") if good else ("fault ", ", shown on the original")
    case(f"{variant}: nothing is ever made in the source tree ({mark}T6){fault}", variant, good)(source_untouched)
    case(f"{variant}: the receiver makes only the final temporary names ({mark}T6){fault}", variant, good)(receiver_names)
    case(f"{variant}: the receiver writes a new file once, the sender nothing ({mark}S15){fault}", variant, good)(bytes_written)
    case(f"{variant}: alarms are set once a second, not with each query{fault}", variant, good)(alarms_set)
    for tls in (False, True):
        layer = "TLS" if tls else "plain"
        case(f"{variant}, {layer}: a write for 16 KiB, one for each message ({mark}S15){fault}", variant, tls, good)(pieces_sent)
case("rustls, TLS: a write for 16 KiB, one for each message (S15)", "rustls", True, True)(pieces_sent)

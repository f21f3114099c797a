"""Where the original fails (the letters are those of the list of faults): hangs, crashes, lost runs.

Each fault is first shown on the original, so that the case is known to bring it about.
"""

import contextlib
import os
import random
import signal
from pathlib import Path

import trees
from harness import case, check
from lab import Lab, LabError, binary, wait_for
from peers import Cut, Proxy, ScriptedPeer

MIB = 1 << 20
PAIRS = [("patched", "patched"), ("patched", "original"), ("original", "patched")]


def make_dirty(lab, program, **files):
    """Put files into node 1's tree (name -> bytes) and have csync2 note them."""
    for i, (name, content) in enumerate(files.items()):
        trees.write(lab.tree(1) / name, content, trees.EPOCH + i)
    run = lab.run(program, 1, "-cr", lab.tree(1))
    check(run.returncode == 0, f"csync2 -cr ended with {run.returncode}: {run.stderr}")


def make_known(lab, program, n):
    """Have node n take its tree as it is for in sync: what is there may be replaced."""
    run = lab.run(program, n, "-cIr", lab.tree(n))
    check(run.returncode == 0, f"csync2 -cIr ended with {run.returncode}: {run.stderr}")


def arrived(lab, n, name):
    with contextlib.suppress(OSError):
        return (lab.tree(n) / name).read_bytes() == (lab.tree(1) / name).read_bytes()
    return False


def ended(run):
    """How a run ended, in words."""
    if run.returncode < 0:
        return f"died by {signal.Signals(-run.returncode).name}"
    return f"exit code {run.returncode}"


# S1: something on the peer of which no signature can be made


def directory_in_the_way(lab, client, server):
    """The update of three files, the second a non-empty directory on the peer."""
    make_dirty(lab, binary(client), a=b"first", b=b"second", c=b"third")
    (lab.tree(2) / "b").mkdir()
    (lab.tree(2) / "b" / "inside").write_text("in the way")
    make_known(lab, binary(server), 2)
    lab.serve(binary(server), 2)
    return lab.run(binary(client), 1, "-u", seconds=8)


@case("original to original: a directory in the way on the peer hangs both (fault S1)")
def s1_original(context):
    with Lab(context.scratch, tls=False) as lab:
        try:
            run = directory_in_the_way(lab, "original", "original")
        except LabError as error:
            context.remark(f"seen: {error}")
        else:
            raise AssertionError(f"the fault did not show: {ended(run)}, {run.stderr}")


def s1(context, client, server):
    with Lab(context.scratch, tls=False) as lab:
        run = directory_in_the_way(lab, client, server)
        check(run.returncode == 1, f"{ended(run)}, expected exit code 1: {run.stderr}")
        check(arrived(lab, 2, "a") and arrived(lab, 2, "c"), f"the other files did not arrive: {run.stderr}")
        check((lab.tree(2) / "b" / "inside").read_text() == "in the way", "the peer's directory was touched")
        left = sorted(path.name for path in lab.tree(2).iterdir())
        check(left == ["a", "b", "c"], f"left in the peer's tree: {left}")


for client, server in PAIRS:
    case(f"{client} to {server}: a directory in the way on the peer, the next file is synced (S1)", client, server)(s1)


# S2: the source is deleted between its check and its transfer


def deleted_source(lab, client, server):
    """The update of three files; the second is deleted when the client asks for its transfer."""
    make_dirty(lab, binary(client), a=b"first", b=b"second", c=b"third")
    behind = lab.port + 1
    lab.serve(binary(server), 2, port=behind)

    def hook(upwards, data, _total):
        if upwards and data.startswith(b"PATCH ") and data.rstrip().endswith(b"/b"):
            (lab.tree(1) / "b").unlink()
        return data

    with Proxy(lab, 2, behind, hook):
        # (a small file that is sent ahead leaves with its PATCH)
        return lab.run(binary(client), 1, "-u", seconds=20, extra={"CSYNC2_PIPELINE": "1"})


@case("original to original: a source deleted before its transfer kills the client (fault S2)")
def s2_original(context):
    with Lab(context.scratch, tls=False) as lab:
        run = deleted_source(lab, "original", "original")
        check(run.returncode < 0 and not arrived(lab, 2, "c"), f"the fault did not show: {ended(run)}, {run.stderr}")
        context.remark(f"seen: the client {ended(run)}, the next file was not synced")


def s2(context, client, server):
    with Lab(context.scratch, tls=False) as lab:
        run = deleted_source(lab, client, server)
        check(run.returncode == 1, f"{ended(run)}, expected exit code 1: {run.stderr}")
        check(arrived(lab, 2, "a") and arrived(lab, 2, "c"), f"the other files did not arrive: {run.stderr}")
        check(not (lab.tree(2) / "b").exists(), "a file that is no more was made on the peer")


for server in ("patched", "original"):
    case(f"patched to {server}: a source deleted before its transfer, the next file is synced (S2)", "patched", server)(s2)


# S2, too: a source that cannot be opened (strace says so: the tests may run as root, who can open everything)


def unreadable_source(lab, client, server, forced):
    """The update of three files, the second of which cannot be opened by the client."""
    make_dirty(lab, binary(client), a=b"first", b=b"second", c=b"third")
    lab.serve(binary(server), 2)
    path = lab.tree(1) / "b"
    if forced:
        lab.run(binary(client), 1, "-f", path)
    fault = ("strace", "-f", "-o", "/dev/null", "-P", path, "-e", "trace=openat,open", "-e", "inject=openat,open:error=EACCES")
    return lab.run(binary(client), 1, "-u", seconds=10, prefix=fault)


def s2_unreadable(context, client, server, forced, good):
    with Lab(context.scratch, tls=False) as lab:
        try:
            run = unreadable_source(lab, client, server, forced)
        except LabError as error:
            check(not good, str(error))
            context.remark(f"seen: {error}")
            return
        if good:
            check(run.returncode == 1, f"{ended(run)}, expected exit code 1: {run.stderr}")
            check(arrived(lab, 2, "a") and arrived(lab, 2, "c"), f"the other files did not arrive: {run.stderr}")
            check("%tree%/b" in run.stderr or str(lab.tree(1) / "b") in run.stderr, f"it is not named: {run.stderr}")
        else:
            check(run.returncode < 0 or not arrived(lab, 2, "c"), f"the fault did not show: {ended(run)}")
            context.remark(f"seen: the client {ended(run)}, the last file arrived: {arrived(lab, 2, 'c')}")


for forced in (False, True):
    what = "a forced source" if forced else "a source"
    case(f"original: {what} that cannot be read ends the run (fault S2)",
         "original", "original", forced, False)(s2_unreadable)  # fmt: skip
    for server in ("patched", "original"):
        case(f"patched to {server}: {what} that cannot be read, the next file is synced (S2)",
             "patched", server, forced, True)(s2_unreadable)  # fmt: skip


# C19, C20: a connection lost at various places; the next host must have its turn


def cut_inside_file(upwards, data, total):
    if upwards and total + len(data) > MIB:
        raise Cut(data[: MIB - total])
    return data


def cut_after_question(upwards, data, _total):
    if upwards and data.startswith(b"SIG "):
        raise Cut(data)
    return data


def cut_inside_answer(upwards, data, _total):
    if not upwards and b"OK (send_data)" in data:
        raise Cut(data[: data.index(b"OK (send_data)") + 7])
    return data


def cut_inside_handshake(upwards, data, total):
    if upwards and total + len(data) > len(b"SSL\n"):
        raise Cut
    return data


CUTS = {
    "inside a file": (cut_inside_file, (False, True)),
    "after a question": (cut_after_question, (False,)),
    "inside an answer": (cut_inside_answer, (False,)),
    "inside the handshake": (cut_inside_handshake, (True,)),
}


def lost_connection(context, client, server, where, tls, judge):
    """Three nodes. The connection to node 3, which is the first in turn, is lost; node 2 is well."""
    hook = CUTS[where][0]
    # more than the buffers of two sockets hold: the client is still sending when the connection goes
    size = 24 * MIB if where == "inside a file" else 3 * MIB
    with Lab(context.scratch, count=3, tls=tls) as lab:
        make_dirty(lab, binary(client), a=b"first", big=random.Random(4).randbytes(size), c=b"third")
        (lab.tree(3) / "big").write_bytes(b"the old content")
        make_known(lab, binary(server), 3)
        behind = lab.port + 1
        lab.serve(binary(server), 2)
        broken = lab.serve(binary(server), 3, "-iii", port=behind)
        with Proxy(lab, 3, behind, hook):
            run = lab.run(binary(client), 1, "-u", seconds=20)
            broken.wait(10)
        judge(lab, run)
        if client == "original":
            return
        old = (lab.tree(3) / "big").read_bytes()
        check(old == b"the old content", "the old file was not kept where the connection was lost")
        left = {path.name for path in lab.tree(3).iterdir()} - {"a", "big", "c"}
        check(not left, f"left where the connection was lost: {left}")
        lab.serve(binary(server), 3)
        forced = lab.run(binary(client), 1, "-fr", lab.tree(1))
        again = lab.run(binary(client), 1, "-u", seconds=20)
        check(forced.returncode == again.returncode == 0, f"the next run: {ended(again)}: {again.stderr}")
        check(all(arrived(lab, 3, name) for name in ("a", "big", "c")), "the next run did not repair it")


def lost_with_original(context, where, tls):
    def judge(lab, run):
        missing = [name for name in ("a", "big", "c") if not arrived(lab, 2, name)]
        check(missing, f"the fault did not show: {ended(run)}, node 2 has everything")
        context.remark(f"seen: the client {ended(run)}, node 2 has not got {', '.join(missing)}")

    lost_connection(context, "original", "original", where, tls, judge)


def lost(context, client, server, where, tls):
    def judge(lab, run):
        check(run.returncode == 1, f"{ended(run)}, expected exit code 1: {run.stderr}")
        missing = [name for name in ("a", "big", "c") if not arrived(lab, 2, name)]
        check(not missing, f"node 2 has not got {missing}: {run.stderr}")

    lost_connection(context, client, server, where, tls, judge)


for where, (_, layers) in CUTS.items():
    for tls in layers:
        layer = "TLS" if tls else "plain"
        # (when the connection is lost at a question, the original goes on as it should)
        if where != "after a question":
            case(f"original, {layer}: a connection lost {where} takes the other hosts with it (fault C19, C20)",
                 where, tls)(lost_with_original)  # fmt: skip
        for server in ("patched", "original"):
            case(f"patched to {server}, {layer}: a connection lost {where}, the next host is synced (C19, C20)",
                 "patched", server, where, tls)(lost)  # fmt: skip


# C4: what one peer said last is not the next peer's first answer


def leftover(context, client, good):
    with Lab(context.scratch, count=3, tls=False) as lab:
        make_dirty(lab, binary(client), a=b"first")
        lab.serve(binary("patched"), 2)
        with ScriptedPeer(lab, 3, b"No service today.\nCome again tomorrow.\n"):
            run = lab.run(binary(client), 1, "-u", seconds=20)
        check(run.returncode == 1, f"{ended(run)}, expected exit code 1: {run.stderr}")
        if good:
            check(arrived(lab, 2, "a"), f"node 2 has not got the file: {run.stderr}")
        else:
            check(not arrived(lab, 2, "a"), "the fault did not show: node 2 has the file")
            context.remark("seen: node 2 was left out because of what node 3 had said")


case("original: the rest of one peer's answer is taken for the next peer's (fault C4)", "original", False)(leftover)
case("patched: the rest of one peer's answer is forgotten (C4)", "patched", True)(leftover)


# C3: signals whose handlers do not restart system calls


def ticking(context, client, server, tls, good):
    from test_tls import PRELOAD

    ticks = {"LD_PRELOAD": PRELOAD, "LAB_TICK": "700"}
    accepted = ticks | {"LAB_TICK_FROM": "accept"}
    with Lab(context.scratch, tls=tls) as lab:
        make_dirty(lab, binary(client), a=b"first", big=random.Random(5).randbytes(24 * MIB), c=b"third")
        lab.serve(binary(server), 2, "-iii", extra=accepted)
        run = lab.run(binary(client), 1, "-u", seconds=60, extra=ticks)
        whole = all(arrived(lab, 2, name) for name in ("a", "big", "c"))
        if good:
            check(run.returncode == 0 and whole, f"{ended(run)}, everything arrived: {whole}: {run.stderr}")
        else:
            check(run.returncode != 0 and not whole, f"the fault did not show: {ended(run)}")
            context.remark(f"seen: the client {ended(run)}: {run.stderr.splitlines()[-1:]}")


for tls in (False, True):
    layer = "TLS" if tls else "plain"
    case(f"original, {layer}: a signal ends the transfer (fault C3, C1)", "original", "original", tls, False)(ticking)
    case(f"patched, {layer}: signals all the time, the transfer completes (C3, C1)", "patched", "patched", tls, True)(ticking)


# C15: what the commands of an action section inherit


def inherited(context, server, good):
    log = f"{context.scratch}/actions.log"
    action = f'action {{ exec "ls -l /proc/self/fd"; logfile "{log}"; }}'
    with Lab(context.scratch, tls=False, config=action) as lab:
        make_dirty(lab, binary(server), a=b"first")
        lab.serve(binary(server), 2)
        run = lab.run(binary(server), 1, "-u", seconds=20)
        check(run.returncode == 0, f"{ended(run)}: {run.stderr}")
        wait_for(lambda: os.path.exists(log) and "/proc" in Path(log).read_text(), 5, "the command of the action")
        sockets = Path(log).read_text().count("socket:")
        context.remark(f"the command has {sockets} sockets of csync2's")
        check((sockets == 0) == good, "sockets were inherited" if good else "the fault did not show")


case("original: the commands of an action inherit the server's socket (fault C15)", "original", False)(inherited)
case("patched: the commands of an action inherit no socket (C15)", "patched", True)(inherited)

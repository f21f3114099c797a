"""Lines that are not as they should be (fault C8), and what of them gets into the log (C17)."""

import os

from harness import case, check
from lab import Lab, binary
from peers import RawClient, ScriptedPeer
from test_faults import arrived, ended, make_dirty, make_known

# C8: lines that are too long, or hold a NUL


def long_command(context, server, good):
    with Lab(context.scratch, tls=False) as lab:
        lab.serve(binary(server), 2)
        with RawClient(lab, 2) as client:
            answers = [client.ask("X" * 40000), client.ask("BYE")]
        if good:
            check(answers == ["Unkown command!", "OK (cu_later)."], f"answered by {answers}")
        else:
            check(answers == ["", ""], f"the fault did not show: answered by {answers}")
            context.remark("seen: the session was ended without an answer")


case("original: a command that is too long ends the session (fault C8)", "original", False)(long_command)
case("patched: a command that is too long is refused (C8)", "patched", True)(long_command)


def command_with_nul(context, server, good):
    with Lab(context.scratch, tls=False) as lab:
        (lab.tree(2) / "b").write_text("content")
        make_known(lab, binary(server), 2)
        lab.serve(binary(server), 2)
        with RawClient(lab, 2) as client:
            client.file("DEL", "b\0c")
            check(client.ask("BYE") == "OK (cu_later).", "out of step afterwards")
        there = (lab.tree(2) / "b").exists()
        check(there == good, "b was deleted, which was not asked for" if good else "the fault did not show")


case("original: DEL with a NUL in the name deletes another file (fault C8)", "original", False)(command_with_nul)
case("patched: DEL with a NUL in the name is refused (C8)", "patched", True)(command_with_nul)


def long_answer(context, client, good):
    """Node 3, which is the first in turn, answers by a line that is too long."""
    with Lab(context.scratch, count=3, tls=False) as lab:
        make_dirty(lab, binary(client), a=b"first")
        lab.serve(binary("patched"), 2)
        with ScriptedPeer(lab, 3, b"x" * 5000 + b"\n"):
            run = lab.run(binary(client), 1, "-u", seconds=20)
        check(run.returncode == 1, f"{ended(run)}, expected exit code 1: {run.stderr}")
        if good:
            check(arrived(lab, 2, "a"), f"node 2 has not got the file: {run.stderr}")
        else:
            check(not arrived(lab, 2, "a"), "the fault did not show: node 2 has the file")
            context.remark(f"seen: {run.stderr.splitlines()[-1:]}, node 2 was left out")


case("original: an answer that is too long ends the run for all hosts (fault C8)", "original", False)(long_answer)
case("patched: an answer that is too long, the next host is synced (C8)", "patched", True)(long_answer)


# C17: the log


def logged(context, variant, good):
    key, content, name = "lab" * 20, b"what nobody else is to read\n", os.fsdecode(b"name-\xff")
    with Lab(context.scratch, tls=False) as lab:
        served = lab.serve(binary(variant), 2, "-iiivvv")
        make_dirty(lab, binary(variant), **{name: content})
        run = lab.run(binary(variant), 1, "-uvvv", seconds=20)
        check(run.returncode == 0 and arrived(lab, 2, name), f"{ended(run)}: {run.stderr}")
        # all that a test of synchrony says, too: its question has the keys
        served.wait(10)
        served = lab.serve(binary(variant), 2, "-iiivvv")
        listing = lab.run(binary(variant), 1, "-Tvvv", lab.hosts[1], lab.hosts[2], seconds=20)
        check(listing.returncode == 2, f"{ended(listing)}: {listing.stderr}")
        served.wait(10)
        text = run.stderr + listing.stderr + served.text()
        found = [what for what, sign in (("the key", key), ("the content", "what nobody else"),
                                         ("a byte as a negative number", "\\37777777")) if sign in text]  # fmt: skip
        if good:
            check(not found, f"in the log: {found}")
            check("> SIG *** %25tree%25/name-\\377" in text, f"the commands are not in the log: {text}")
        else:
            check(len(found) == 3, f"the fault did not show: {found}")
            context.remark(f"seen in the log: {', '.join(found)}")


case("original: keys and content are in the log (fault C17)", "original", False)(logged)
case("patched: no key and no content in the log (C17)", "patched", True)(logged)

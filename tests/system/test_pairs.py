"""Nodes of every pair of builds understand each other: trees, exit codes, `csync2 -T`."""

import functools
import re
import tempfile

import trees
from harness import case, check
from lab import Lab, binary


def compare(lab, one, other):
    lines = trees.differences(trees.digest(lab.tree(one)), trees.digest(lab.tree(other)))
    check(not lines, f"{len(lines)} differences between the trees:\n" + "\n".join(lines[:10]))


def push(lab, builds, source, target):
    """Node `source` checks and updates, node `target` serves; trees equal, in sync (exit code 2) afterwards."""
    server = lab.serve(binary(builds[target]), target)
    program = binary(builds[source])
    for arguments in (["-cr", lab.tree(source)], ["-u"]):
        run = lab.run(program, source, *arguments)
        check(run.returncode == 0, f"csync2 {arguments[0]} ended with {run.returncode}: {run.stderr}")
    compare(lab, source, target)
    test = lab.run(program, source, "-T")
    check(test.returncode == 2, f"csync2 -T ended with {test.returncode}: {test.stdout}")
    server.stop()


def both_ways(context, build1, build2, tls):
    builds = {1: build1, 2: build2}
    with Lab(context.scratch, tls=tls) as lab:
        trees.make_mixed(lab.tree(1), small=200, large=(4, 3, 5))
        push(lab, builds, 1, 2)
        trees.change_mixed(lab.tree(2))
        push(lab, builds, 2, 1)
        trees.touch_mixed(lab.tree(1))
        push(lab, builds, 1, 2)


def session(build1, build2, tls, scratch):
    """A session with conflicts, a dry run and a peer that is away: what each command gave back."""
    record = []
    with Lab(scratch, tls=tls) as lab:
        one, two = binary(build1), binary(build2)

        def step(what, program, n, *arguments):
            run = lab.run(program, n, *arguments)
            output = run.stdout.replace(lab.hosts[1], "ONE").replace(lab.hosts[2], "TWO")
            output = re.sub(" +", " ", output)  # csync2 fills up to the length of the host's name
            record.append((what, run.returncode, output))

        def write(n, name, content, when):
            trees.write(lab.tree(n) / name, content, trees.EPOCH + when)

        for name in ("file", "gone", "same"):
            write(1, name, name.encode() * 1000, 1)
        step("the peer is away: check", one, 1, "-cr", lab.tree(1))
        step("the peer is away: update", one, 1, "-u")
        lab.serve(two, 2)
        step("update", one, 1, "-u")
        step("test", one, 1, "-T")
        step("nothing to do", one, 1, "-u")
        write(1, "file", b"one's\n" * 2000, 2)
        write(2, "file", b"two's\n" * 3000, 3)
        (lab.tree(1) / "gone").unlink()
        step("check one", one, 1, "-cr", lab.tree(1))
        step("check two", two, 2, "-cr", lab.tree(2))
        step("dry run", one, 1, "-ud")
        step("update with a conflict", one, 1, "-u")
        step("test with a conflict", one, 1, "-T")
        step("what is dirty", one, 1, "-M")
        step("force", one, 1, "-fr", lab.tree(1))
        step("update by force", one, 1, "-u")
        step("test again", one, 1, "-T")
        step("what is dirty again", one, 1, "-M")
        compare(lab, 1, 2)
    return record


@functools.cache
def session_of_originals(tls):
    with tempfile.TemporaryDirectory(prefix="csync-rs-system-") as scratch:
        return session("original", "original", tls, scratch)


def same_session(context, build1, build2, tls):
    for expected, found in zip(session_of_originals(tls), session(build1, build2, tls, context.scratch), strict=True):
        check(found == expected, f"{expected[0]}: {found[1:]}, the originals: {expected[1:]}")


PAIRS = [("original", "original"), ("patched", "patched"), ("patched", "original"), ("original", "patched")]
LIBRARY_ALONE = [("lib-only", "lib-only"), ("lib-only", "original"), ("original", "lib-only"), ("lib-only", "patched")]

for tls in (True, False):
    layer = "TLS" if tls else "plain"
    for build1, build2 in PAIRS + LIBRARY_ALONE:
        case(f"{build1} and {build2}, {layer}: a tree there, changed and back", build1, build2, tls)(both_ways)
    for build1, build2 in PAIRS[1:]:
        case(f"{build1} to {build2}, {layer}: exit codes and output of the originals", build1, build2, tls)(same_session)

#!/usr/bin/env python3
"""The demo: three nodes, a real tree, TLS, this library on either end and on both.

usage: demo.py [PAIR ...]       PAIR: CLIENT-SERVER, each of ours, original
                                (default: ours-ours ours-original original-ours)

scripts/demo installs and builds what this needs, and then runs it.
"""

import shutil
import signal
import sys
import tempfile
import time

import trees
from lab import Lab, LabError, binary

VARIANTS = {"ours": "patched", "original": "original"}
STEPS = [
    ("a new tree", None),
    ("a day's work", trees.change_mixed),
    ("times only", trees.touch_mixed),
]


class Demo:
    def __init__(self, scratch):
        self.scratch, self.wrong = scratch, []

    def pair(self, client, server):
        """All steps from node 1 (client) to nodes 2 and 3 (server)."""
        with Lab(f"{self.scratch}/{client}-{server}", count=3) as lab:
            trees.make_mixed(lab.tree(1))
            for n in (2, 3):
                lab.serve(binary(VARIANTS[server]), n)
            for number, (step, change) in enumerate(STEPS):
                if change:
                    change(lab.tree(1))
                name = f"{client} -> {server}" if number == 0 else ""
                self.step(lab, binary(VARIANTS[client]), name, step)
        shutil.rmtree(lab.base)

    def step(self, lab, client, name, step):
        files, size = trees.measure(lab.tree(1))
        print(f"  {name:20} {step:14} {files:6} {size / 1e6:8.1f}", end="", flush=True)
        start = time.monotonic()
        run = lab.run(client, 1, "-x")
        seconds = time.monotonic() - start
        faults = self.faults(lab, client, run)
        print(f" {seconds:8.2f}   {'DIFFERENT' if faults else 'all three trees equal'}")
        for fault in faults[:10]:
            print(f"      {fault}")
        self.wrong += faults

    def faults(self, lab, client, run):
        """What is wrong after a run: the exit codes, or the trees themselves."""
        faults = [f"csync2 -x ended with {run.returncode}: {run.stderr[-500:]}"] if run.returncode else []
        source = trees.digest(lab.tree(1))
        for n in (2, 3):
            faults += [f"node {n}: {line}" for line in trees.differences(source, trees.digest(lab.tree(n)))]
        test = lab.run(client, 1, "-T")
        if test.returncode != 2:
            faults.append(f"csync2 -T says that the nodes are not in sync ({test.returncode}): {test.stdout[:500]}")
        return faults


def main():
    pairs = [pair.split("-") for pair in sys.argv[1:] or ("ours-ours", "ours-original", "original-ours")]
    for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(sig, lambda *_: sys.exit(1))
    scratch = tempfile.mkdtemp(prefix="csync-rs-demo-")
    demo, start = Demo(scratch), time.monotonic()
    print(__doc__.split("\n", maxsplit=1)[0])
    print("""
Three csync2 nodes on loopback addresses, TLS between them, each with a certificate of its own.
Node 1 pushes its tree to nodes 2 and 3 (csync2 -x). "ours" is csync2 with this library in place
of rsync.c, "original" is csync2 as Debian has it. A day's work: files edited, grown, cut short,
replaced, renamed, deleted. Times only: files touched, their content as it was. After each step
the three trees are compared: content, type, rights, owner, time.

  client -> server     step            files       MB  seconds   result
""".rstrip())
    try:
        for client, server in pairs:
            demo.pair(client, server)
    except KeyboardInterrupt:
        print("\n\nInterrupted.")
        return 1
    except LabError as error:
        print(f"\n\nThe demo itself failed: {error}")
        return 1
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print()
    if demo.wrong:
        print(f"{len(demo.wrong)} differences: something is wrong.")
        return 1
    print(f"All trees equal in {len(pairs)} pair(s) of {len(STEPS)} steps, {time.monotonic() - start:.0f} seconds. "
          "Nothing is left running, nothing is left behind.")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Time builds of csync2 against each other: one node pushes a tree to another over loopback.

The update alone is timed (csync2 -u, after csync2 -cr). CPU is the operating system's figure for
each of the two processes; "written" is what each asked the file systems (and, as the same kind of
call, the connection) to write. Every run starts from fresh databases and a fresh receiving tree,
and ends with a comparison of both trees. The variants take turns (A B C A B C ...), so that a
drift of the machine falls on all of them. Medians are shown.

shapes:
  small    2000 files of 4 KiB                    edit     256 MiB, then 1 % of it changed
  big      two files of 256 MiB                   same     256 MiB, equal on both, touched
  mix      560 files and four of 64 MiB           rewrite  256 MiB, then replaced by other bytes
"""

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "system"))

import trees  # noqa: E402
from lab import Lab, binary  # noqa: E402

MIB = 1 << 20
SHAPES = ["small", "big", "mix", "edit", "same", "rewrite"]
IN_SYNC_FIRST = {"edit", "same", "rewrite"}
LATER = trees.EPOCH + 1_000_000


def make(shape, top, scale):
    """The tree of a shape, before any change."""
    chance = random.Random(shape)
    if shape == "small":
        for i in range(int(2000 * scale)):
            (top / f"d{i % 50}").mkdir(exist_ok=True)
            trees.write(top / f"d{i % 50}" / f"f{i}", chance.randbytes(4096), trees.EPOCH)
    elif shape == "big":
        for i in range(2):
            trees.write_random(top / f"big{i}", int(256 * MIB * scale), chance, trees.EPOCH)
    elif shape == "mix":  # a tree of 31.66 GB in 56525 files, scaled to a hundredth
        for i in range(int(560 * scale)):
            (top / f"d{i % 20}").mkdir(exist_ok=True)
            size = int(chance.paretovariate(1.05) * 2000) % (4 * MIB)
            trees.write(top / f"d{i % 20}" / f"f{i}", chance.randbytes(size), trees.EPOCH)
        for i in range(4):
            trees.write_random(top / f"big{i}", int(64 * MIB * scale), chance, trees.EPOCH)
    else:
        trees.write_random(top / "image", int(256 * MIB * scale), chance, trees.EPOCH)


def change(shape, top):
    """What happens to the file between the first synchronisation and the one that is timed."""
    chance, path = random.Random(f"{shape} changed"), top / "image"
    size = path.stat().st_size
    if shape == "edit":
        trees.edit(path, chance, pieces=max(1, size // MIB), length=10240, when=LATER)
        with open(path, "ab") as file:
            file.write(b"x" * 1000)
        os.utime(path, (LATER, LATER))
    elif shape == "rewrite":
        trees.write_random(path, size, chance, LATER)
    else:
        os.utime(path, (LATER, LATER))


class Process:
    """A process whose time, memory and input/output are kept when it ends."""

    def __init__(self, process):
        self.process, self.figures = process, None

    def poll(self):
        """Whether it has ended; its accounting is read before the process is gone for good."""
        if self.figures is None and os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            with open(f"/proc/{self.process.pid}/io", encoding="ascii") as lines:
                io = dict(line.split(": ") for line in lines)
            _, status, usage = os.wait4(self.process.pid, 0)
            self.process.returncode = os.waitstatus_to_exitcode(status)
            self.figures = {
                "cpu": usage.ru_utime + usage.ru_stime, "rss_mb": usage.ru_maxrss / 1024,
                "written_mb": int(io["wchar"]) / 1e6, "write_calls": int(io["syscw"]), "read_calls": int(io["syscr"]),
            }  # fmt: skip
        return self.figures is not None


def push(lab, client, server, seconds=600):
    """One timed update."""
    ends = {"server": Process(lab.serve(server, 2, "-iii").process)}
    start = time.monotonic()
    with open(lab.base / "client.log", "wb") as log:
        ends["client"] = Process(subprocess.Popen(lab.argv(client, 1, "-u"), env=lab.environment(1), stdout=log, stderr=log))
    row = {}
    try:
        while not all([end.poll() for end in ends.values()]):
            if "wall" not in row and ends["client"].figures:
                row["wall"] = time.monotonic() - start
            if time.monotonic() - start > seconds:
                sys.exit(f"syncbench: an update took more than {seconds} s")
            time.sleep(0.002)
    finally:
        if not ends["client"].figures:
            ends["client"].process.kill()
    row.setdefault("wall", time.monotonic() - start)
    for name, end in ends.items():
        row |= {f"{name}_{figure}": value for figure, value in end.figures.items()}
    row["good"] = all(end.process.returncode == 0 for end in ends.values())
    lab.stop()
    return row


def measure(lab, shape, client, server, pristine):
    """One run from the start; the time, the figures, and whether both trees are equal at the end."""
    lab.fresh()
    if shape in IN_SYNC_FIRST:
        for n in (1, 2):
            shutil.rmtree(lab.tree(n))
            shutil.copytree(pristine, lab.tree(n))
            lab.run(client, n, "-cIr", lab.tree(n))
        change(shape, lab.tree(1))
    lab.run(client, 1, "-cr", lab.tree(1))
    row = push(lab, client, server)
    row["good"] &= trees.digest(lab.tree(1)) == trees.digest(lab.tree(2))
    return row


def show(shape, tls, size, rows):
    runs = len(next(iter(rows.values())))
    print(f"\n{shape}: {size / 1e6:.0f} MB, {'TLS' if tls else 'plain'}, medians of {runs} runs")
    first = None
    for name, measured in rows.items():
        m = {figure: statistics.median(row[figure] for row in measured) for figure in measured[0]}
        cpu = m["client_cpu"] + m["server_cpu"]
        first = first or (m["wall"], cpu)
        print(
            f"  {name:10} {m['wall']:7.2f} s ({first[0] / m['wall']:4.1f}x)   CPU {cpu:6.2f} s ({first[1] / cpu:4.1f}x)   "
            f"written {m['client_written_mb']:.0f} / {m['server_written_mb']:.0f} MB   "
            f"calls {m['client_write_calls']:.0f} / {m['server_write_calls']:.0f}   "
            f"memory {m['client_rss_mb']:.0f} / {m['server_rss_mb']:.0f} MB   "
            f"{'equal' if all(row['good'] for row in measured) else 'DIFFERENT OR FAILED'}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variant", action="append", metavar="NAME=CLIENT[,SERVER]",
                        help="a name and one or two builds below build/csync2, or paths of programs "
                             "(default: original, chunk, ours=patched, rustls)")  # fmt: skip
    parser.add_argument("--shape", nargs="+", choices=SHAPES, default=SHAPES)
    parser.add_argument("--tls", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("-n", type=int, default=3, help="runs of each")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--dir", default="/dev/shm", help="where the trees are made; best in memory, 3 GB at full scale")
    parser.add_argument("--json", help="write every run's figures to this file")
    options = parser.parse_args()

    variants = {}
    for text in options.variant or ("original=original", "chunk=chunk", "ours=patched", "rustls=rustls"):
        name, _, builds = text.partition("=")
        builds = [build if "/" in build else binary(build) for build in (builds or name).split(",")]
        variants[name] = (builds[0], builds[-1])

    results = {}
    for shape in options.shape:
        rows = results[shape] = {name: [] for name in variants}
        with tempfile.TemporaryDirectory(prefix="syncbench-", dir=options.dir) as scratch, Lab(scratch, tls=options.tls) as lab:
            make(shape, lab.tree(1), options.scale)
            size = trees.measure(lab.tree(1))[1]
            pristine = None
            if shape in IN_SYNC_FIRST:
                pristine = shutil.move(lab.tree(1), lab.base / "pristine")
                lab.tree(1).mkdir()
            for _ in range(options.n):
                for name, (client, server) in variants.items():
                    rows[name].append(measure(lab, shape, client, server, pristine))
            show(shape, options.tls, size, rows)
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1))
    good = all(row["good"] for rows in results.values() for measured in rows.values() for row in measured)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""TLS over loopback beside GnuTLS; scripts/tls-bench runs this."""

import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from run import PEER, certificate, key

GB = 1e9
MIB = 1 << 20
KINDS = ["rsa1024", "rsa2048", "p256", "ed25519"]

# Name, sender's library and piece, receiver's, part of the bytes.
WAYS = [
    ("GnuTLS, 512 bytes (csync2)", ("gnutls", 512), ("gnutls", 512), 0.25),
    ("GnuTLS, 16 KiB", ("gnutls", 16384), ("gnutls", 16384), 1),
    ("ours, 16 KiB", ("csync", 16384), ("csync", 16384), 1),
    ("ours, 128 KiB", ("csync", 131072), ("csync", 131072), 1),
    ("ours to GnuTLS reading 512", ("csync", 131072), ("gnutls", 512), 1),
    ("GnuTLS, 16 KiB, to ours", ("gnutls", 16384), ("csync", 131072), 1),
]


def end(library, role, port, kind, piece, size, wrapper, *options):
    return subprocess.Popen([*wrapper, str(PEER), library, role, port, certificate(kind), key(kind), "upload",
                             f"bytes={size}", f"piece={piece}", "version=13", "check=0", *options],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def told(process):
    out, errors = process.communicate()
    if process.returncode:
        sys.exit(f"tls-bench: {process.args} ended with {process.returncode}: {errors}")
    return dict(re.findall(r"(\w+)=(\S+)", out))


def run(sender, receiver, size, kind="p256", wrappers=((), ())):
    """What receiver and sender tell."""
    there = end(receiver[0], "server", "0", kind, receiver[1], size, wrappers[0])
    port = there.stdout.readline().strip().removeprefix("port=")
    here = end(sender[0], "client", port, kind, sender[1], size, wrappers[1])
    return told(there), told(here)


def calls(sender, receiver, size):
    """System calls for each MiB, of receiver and sender: what a transfer costs above one of nothing."""
    counts = []
    with tempfile.TemporaryDirectory() as scratch:
        for length in (0, size):
            logs = [Path(scratch) / f"{length}-{side}" for side in "rs"]
            run(sender, receiver, length, wrappers=[("strace", "-f", "-qq", "-c", "-U", "calls,name", "-o", str(log)) for log in logs])
            counts.append([sum(int(n) for n in re.findall(r"^\s*(\d+)\s+total", log.read_text(), re.MULTILINE)) for log in logs])
    return [(full - empty) / (size / MIB) for empty, full in zip(*counts)]


def main():
    runs, size = int(sys.argv[1]), int(sys.argv[2]) * MIB
    seen = {way[0]: [] for way in WAYS}
    for _ in range(runs):
        for name, sender, receiver, part in WAYS:
            length = int(size * part)
            there, here = run(sender, receiver, length)
            seen[name].append((length / 1e6 / float(there["seconds"]), float(here["cpu"]) / length * GB,
                               float(there["cpu"]) / length * GB))
    print(f"{'':30} {'MB/s':>6} {'CPU s/GB':>10} {'':>10} {'':>6} {'calls/MiB':>10}")
    print(f"{'sender to receiver':30} {'':>6} {'sender':>10} {'receiver':>10} {'both':>6} {'sender':>10} {'receiver':>8}")
    for name, sender, receiver, _ in WAYS:
        rate, sending, receiving = (statistics.median(column) for column in zip(*seen[name]))
        there, here = calls(sender, receiver, 32 * MIB)
        print(f"{name:30} {rate:6.0f} {sending:10.2f} {receiving:10.2f} {sending + receiving:6.2f} {here:10.1f} {there:8.1f}")
    print(f"\n{'CPU ms of a handshake, client / server':40} {'GnuTLS':>16} {'ours':>16}")
    for kind in KINDS:
        columns = []
        for library in ("gnutls", "csync"):
            times = [run((library, 16384), (library, 16384), 0, kind) for _ in range(max(runs, 3))]
            columns.append([statistics.median(float(side["handshake"]) * 1e3 for side in sides) for sides in zip(*times)])
        print(f"{kind:40} " + " ".join(f"{here:7.1f} / {there:6.1f}" for there, here in columns))
    return 0


if __name__ == "__main__":
    sys.exit(main())

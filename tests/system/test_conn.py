"""csync2's conn.c alone, the original's and the patched one, by conn_test.c (faults C1, C2, C3, C7, C15, C20)."""

import subprocess
from pathlib import Path

from harness import case, check
from lab import BUILDS, credentials

PLAIN, TLS = ("plain", "pipe"), ("tls",)
# what conn.c must do, its scenario's name, the layers, those among them where the original does it too
SCENARIOS = [
    ("40000 bytes in one conn_write arrive (C2)", "large", PLAIN + TLS, PLAIN),
    ("a line of 40000 bytes from conn_printf arrives (C2)", "line", PLAIN + TLS, PLAIN),
    ("signals all the time, without SA_RESTART (C3, C1)", "signals", PLAIN + TLS, ()),
    ("non-blocking descriptors and a slow peer", "nonblocking", PLAIN + TLS, ()),
    ("the peer changes keys, in both directions (C1)", "keyupdate", TLS, ()),
    ("a peer that is gone: what was sent is counted, no SIGPIPE (C20)", "gone", PLAIN + TLS, ()),
    ("a question that could not be sent has no answer (C7)", "unasked", PLAIN + TLS, ()),
    ("keepalive, and no connection for commands (C15)", "descriptors", ("plain",), ()),
]


def conn(context, variant, scenario, layer, good):
    key, certificate = credentials(1)
    Path(context.scratch, "csync2_ssl_key.pem").write_bytes(key)
    Path(context.scratch, "csync2_ssl_cert.pem").write_bytes(certificate)
    run = subprocess.run([BUILDS / f"conn_test-{variant}", scenario, layer, context.scratch],
                         capture_output=True, text=True, errors="replace", timeout=60)  # fmt: skip
    if good:
        check(run.returncode == 0, f"exit code {run.returncode}: {run.stderr}")
    else:
        check(run.returncode != 0, "the fault did not show")
        context.remark(f"seen: exit code {run.returncode} {' '.join(run.stderr.splitlines()[-1:])}")


for what, scenario, layers, well in SCENARIOS:
    for layer in layers:
        if layer not in well:
            case(f"original conn.c, {layer}: fails at: {what}", "original", scenario, layer, False)(conn)
        case(f"patched conn.c, {layer}: {what}", "patched", scenario, layer, True)(conn)

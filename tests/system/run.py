#!/usr/bin/env python3
"""All system tests; scripts/system-tests builds what they need and runs this."""

import signal
import sys

import harness
import test_ahead  # noqa: F401
import test_certificates  # noqa: F401
import test_conn  # noqa: F401  (registers its cases)
import test_content  # noqa: F401
import test_database  # noqa: F401
import test_directories  # noqa: F401
import test_faults  # noqa: F401
import test_hosts  # noqa: F401
import test_lines  # noqa: F401
import test_pairs  # noqa: F401
import test_reports  # noqa: F401
import test_round_trips  # noqa: F401
import test_rustls  # noqa: F401
import test_syscalls  # noqa: F401
import test_tls  # noqa: F401

for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(sig, lambda *_: sys.exit(1))
sys.exit(harness.run(*sys.argv[1:2]))

"""Cases and their report: one line each, `ok` or `not ok`, and a closing `N passed, N failed`."""

import os
import shutil
import tempfile
import time
import traceback

from lab import LabError

CASES = []
FULL = os.environ.get("SYSTEM_TESTS_SCALE") == "full"


def case(name, *values):
    """Register a function as a case. Called with these values; the name may mention them."""

    def register(function):
        CASES.append((name, function, values))
        return function

    return register


def check(condition, message):
    """A check of a case; the message says what was found."""
    if not condition:
        raise AssertionError(message)


class Context:
    """What a case gets: a scratch directory, and a place for remarks."""

    def __init__(self, scratch):
        self.scratch, self.remarks = scratch, []

    def remark(self, text):
        self.remarks.append(text)


def run(pattern=""):
    """Run the cases whose name contains the pattern; the exit status."""
    chosen = [entry for entry in CASES if pattern in entry[0]]
    passed = failed = 0
    print(f"1..{len(chosen)}", flush=True)
    for number, (name, function, values) in enumerate(chosen, 1):
        context, start = Context(tempfile.mkdtemp(prefix="csync-rs-system-")), time.monotonic()
        try:
            function(context, *values)
            verdict, passed = "ok", passed + 1
        except (AssertionError, LabError) as error:
            verdict, failed = "not ok", failed + 1
            context.remark(str(error))
        except Exception:  # a fault of the case itself: report it, go on with the next
            verdict, failed = "not ok", failed + 1
            context.remark(traceback.format_exc())
        finally:
            shutil.rmtree(context.scratch, ignore_errors=True)
        print(f"{verdict} {number} - {name} ({time.monotonic() - start:.1f} s)")
        for line in "\n".join(context.remarks).splitlines():
            print(f"#   {line}")
        print(end="", flush=True)
    print(f"system-tests: {passed} passed, {failed} failed")
    return 1 if failed or not passed else 0

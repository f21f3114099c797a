"""Cases and their report: one line each, `ok` or `not ok`, and a closing `N passed, N failed`."""

import multiprocessing
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


def try_case(number):
    """Run one case, in one of the workers: whether it is good, its seconds, its remarks."""
    _, function, values = CASES[number]
    context, start = Context(tempfile.mkdtemp(prefix="csync-rs-system-")), time.monotonic()
    try:
        function(context, *values)
        good = True
    except (AssertionError, LabError) as error:
        good = False
        context.remark(str(error))
    except Exception:  # a fault of the case itself: report it, go on with the next
        good = False
        context.remark(traceback.format_exc())
    finally:
        shutil.rmtree(context.scratch, ignore_errors=True)
    return good, time.monotonic() - start, "\n".join(context.remarks).splitlines()


def run(pattern=""):
    """Run the cases whose name contains the pattern, SYSTEM_TESTS_JOBS at a time (much of what they do is waiting); the
    exit status."""
    chosen = [number for number, (name, _, _) in enumerate(CASES) if pattern in name]
    jobs = int(os.environ.get("SYSTEM_TESTS_JOBS", "3"))
    passed = 0
    print(f"1..{len(chosen)}", flush=True)
    # The workers have the cases from here. One that is told to end stops what its case has started.
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        for at, (number, (good, seconds, remarks)) in enumerate(zip(chosen, pool.imap(try_case, chosen)), 1):
            passed += good
            print(f"{'ok' if good else 'not ok'} {at} - {CASES[number][0]} ({seconds:.1f} s)")
            for line in remarks:
                print(f"#   {line}")
            print(end="", flush=True)
    failed = len(chosen) - passed
    print(f"system-tests: {passed} passed, {failed} failed")
    return 1 if failed or not passed else 0

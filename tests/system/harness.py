"""Cases and their report: one line each, `ok` or `not ok`, and a closing `N passed, N failed`."""

import multiprocessing
import multiprocessing.connection
import os
import shutil
import tempfile
import time
import traceback

from lab import LabError

CASES = []
FULL = os.environ.get("SYSTEM_TESTS_SCALE") == "full"
FORK = multiprocessing.get_context("fork")


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
    """Run one case: whether it is good, its seconds, its remarks."""
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


class Attempt:
    """A case that runs in a process of its own."""

    def __init__(self, number):
        self.number = number
        self.answer, answer = multiprocessing.Pipe(duplex=False)
        self.process = FORK.Process(target=lambda: answer.send(try_case(number)))
        self.process.start()
        answer.close()

    def result(self):
        """Waits for its end."""
        try:
            result = self.answer.recv()
        except EOFError:
            result = None
        self.process.join()
        return result or (False, 0.0, [f"the case's process has ended with {self.process.exitcode}"])

    def stop(self):
        """Has it stop what it has started, and end."""
        self.process.terminate()
        self.process.join()


def run(pattern=""):
    """Run the cases whose name contains the pattern, SYSTEM_TESTS_JOBS at a time (much of what they do is waiting); the
    exit status."""
    chosen = [number for number, (name, _, _) in enumerate(CASES) if pattern in name]
    jobs = int(os.environ.get("SYSTEM_TESTS_JOBS", "3"))
    waiting, running, results = list(chosen), [], {}
    told = passed = 0
    print(f"1..{len(chosen)}", flush=True)
    try:
        while told < len(chosen):
            while waiting and len(running) < jobs:
                running.append(Attempt(waiting.pop(0)))
            ready = multiprocessing.connection.wait([attempt.answer for attempt in running])
            for attempt in [attempt for attempt in running if attempt.answer in ready]:
                results[attempt.number] = attempt.result()
                running.remove(attempt)
            # In their order.
            while told < len(chosen) and chosen[told] in results:
                number = chosen[told]
                good, seconds, remarks = results[number]
                told, passed = told + 1, passed + good
                print(f"{'ok' if good else 'not ok'} {told} - {CASES[number][0]} ({seconds:.1f} s)")
                for line in remarks:
                    print(f"#   {line}")
                print(end="", flush=True)
    finally:
        for attempt in running:
            attempt.stop()
    failed = len(chosen) - passed
    print(f"system-tests: {passed} passed, {failed} failed")
    return 1 if failed or not passed else 0

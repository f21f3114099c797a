#!/usr/bin/env python3
"""xfer between real processes, then the fault matrix; scripts/engine-tests builds what they need and runs this."""

import os
import pty
import random
import re
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import traceback
from contextlib import contextmanager
from pathlib import Path

from links import Relay, Ssh, Tcp, Via, XFER, finish, pipes, start

FULL = os.environ.get("FAULT_MATRIX") == "full"
ROOT = Path(__file__).resolve().parents[2]
CASES = []


def case(*values):
    """Registers a function as a case; `{}` in the first line of its description becomes the value's name."""

    def register(function):
        title = function.__doc__.splitlines()[0].rstrip(".")
        for value in values or (None,):
            name = title.replace("{}", getattr(value, "name", str(value)))
            CASES.append((name, function, (value,) if values else ()))
        return function

    return register


def check(condition, message):
    if not condition:
        raise AssertionError(message)


def random_bytes(count, seed=1):
    return random.Random(seed).randbytes(count)


def edited(content):
    """Another version: something replaced, something added, the rest kept."""
    return content[:1000] + b"changed" + content[1007:50_000] + b"added" + content[50_000:]


class Place:
    """A scratch directory with a directory that is served and one of the client's."""

    def __init__(self, scratch):
        self.scratch = Path(scratch)
        self.there, self.here = self.scratch / "there", self.scratch / "here"
        self.there.mkdir()
        self.here.mkdir()
        self.remarks = []

    def remark(self, text):
        self.remarks.append(text)

    @contextmanager
    def link(self, kind, **options):
        made = kind(self.there, self.scratch, **options)
        try:
            yield made
        finally:
            made.close()

    def names(self, directory):
        return sorted(os.listdir(directory))


def push(link, path, *name, **options):
    return finish(start("push", path, *link.reach(), *name, **options))


def pull(link, name, *path, **options):
    return finish(start("pull", name, *link.reach(), *path, **options))


def well(result):
    check(result.status == 0 and not result.errors, result)


def refused(result, *words):
    """The process failed, and its message holds the words."""
    check(result.status == 1, result)
    for word in words:
        check(word in result.errors, f"{word!r} is missing: {result}")


# ---- Files go over ------------------------------------------------------------------------------------------------

CHANNELS = (Tcp, Via, Ssh)


@case(*CHANNELS)
def both_ways(place, kind):
    """New, edited and empty files go both ways over {}"""
    content = random_bytes(3_000_000)
    with place.link(kind) as link:
        # A connection through ssh takes its time.
        for version in (content, edited(content)) if kind is Ssh else (content, edited(content), b"", content[:1]):
            (place.here / "file").write_bytes(version)
            well(push(link, place.here / "file"))
            check((place.there / "file").read_bytes() == version, "pushed another content")
            well(pull(link, "file", place.here / "copy"))
            check((place.here / "copy").read_bytes() == version, "pulled another content")
    check(place.names(place.there) == ["file"], place.names(place.there))
    check(place.names(place.here) == ["copy", "file"], place.names(place.here))


@case(Tcp, Via)
def odd_names(place, kind):
    """Names with spaces, UTF-8, line ends, other bytes, of 255 bytes and in directories over {}"""
    names = [b"a b  c ", "Grüße-€-😀".encode(), b"line\nline\r", b"100%", b"%0A", b"\xff\xfe", b"-dash", b"x" * 255, b"a/b/c", b".dot"]
    with place.link(kind) as link:
        for name in names:
            (place.here / "file").write_bytes(b"content of " + name)
            well(finish(start("push", place.here / "file", *link.reach(), "--", name)))
            target = os.fsencode(place.there) + b"/" + name
            check(os.path.isfile(target), f"{name} is missing")
            where = [*link.reach(), "pull", "--", name] if kind is Via else ["pull", "--", name, *link.reach()]
            well(finish(start(*where, place.here / "copy")))
            check((place.here / "copy").read_bytes() == b"content of " + name, name)


@case(Tcp, Via)
def forbidden(place, kind):
    """Names that lead out of the served directory are refused over {}"""
    (place.scratch / "secret").write_bytes(b"secret")
    (place.here / "file").write_bytes(b"content")
    with place.link(kind) as link:
        for name in ("/etc/passwd", "../secret", "a/../../secret", "a//b", "./secret", "..", ".", "a/"):
            refused(pull(link, name, place.here / "copy"), name, "not an allowed name")
            result = push(link, place.here / "file", name)
            check(result.status == 1 and name in result.errors, result)
    check(place.names(place.there) == [] and place.names(place.here) == ["file"], "something was made")
    check((place.scratch / "secret").read_bytes() == b"secret", "written outside")


@case(Tcp, Via)
def troubles(place, kind):
    """What cannot be done is told with file and reason, and leaves all as it was, over {}"""
    (place.here / "file").write_bytes(b"new")
    (place.here / "directory").mkdir()
    (place.there / "directory").mkdir()
    (place.there / "plain").write_bytes(b"old")
    (place.there / "link").symlink_to("plain")
    with place.link(kind) as link:
        refused(push(link, place.here / "none"), "none", "No such file")
        refused(pull(link, "none", place.here / "copy"), "none", "No such file")
        refused(push(link, place.here / "directory"), "directory", "not a regular file")
        refused(pull(link, "directory", place.here / "copy"), "directory", "not a regular file")
        refused(push(link, place.here / "file", "directory"), "directory", "Is a directory")
        refused(pull(link, "plain", place.here / "directory"), "directory", "Is a directory")
        refused(push(link, place.here / "file", "plain/below"), "plain/below", "Not a directory")
        refused(push(link, place.here / "file", "link"), "link", "not a regular file")
        refused(pull(link, "plain", place.here / "no/such"), "no/such", "No such file")
        # Both ends are well after all that.
        well(push(link, place.here / "file", "plain"))
    check((place.there / "plain").read_bytes() == b"new" and (place.there / "link").is_symlink(), "not as it was")
    check(place.names(place.here) == ["directory", "file"], place.names(place.here))


@case()
def read_only(place):
    """A directory that may not be written to, for another user than root"""
    if os.geteuid() != 0:
        return place.remark("not root: not tried")
    xfer = shutil.copy(XFER, place.scratch / "xfer")
    for path in (place.scratch, place.there, place.here):
        path.chmod(0o755)
    (place.there / "file").write_bytes(b"old")
    (place.there / "file").chmod(0o644)
    (place.here / "file").write_bytes(b"new")
    (place.there / "secret").write_bytes(b"secret")
    (place.there / "secret").chmod(0o600)
    with place.link(Tcp, xfer=xfer, user=65534, group=65534, extra_groups=[]) as link:
        refused(push(link, place.here / "file"), "file", "Permission denied")
        refused(push(link, place.here / "file", "new"), "new", "Permission denied")
        refused(pull(link, "secret", place.here / "copy"), "secret", "Permission denied")
        check("file: " in link.said() or "file" in link.said(), link.said())
        refused(pull(link, "file", place.here / "copy", xfer=xfer, user=65534, group=65534, extra_groups=[]), "copy", "Permission denied")
    check((place.there / "file").read_bytes() == b"old", "not as it was")
    check(place.names(place.there) == ["file", "secret"], place.names(place.there))


@case()
def modes(place):
    """A new file gets the original's mode, an old one keeps its own"""
    os.umask(0o022)
    (place.here / "file").write_bytes(b"one")
    (place.here / "file").chmod(0o751)
    with place.link(Via) as link:
        well(push(link, place.here / "file"))
        check(stat.S_IMODE((place.there / "file").stat().st_mode) == 0o751, "mode of the new file")
        (place.there / "file").chmod(0o604)
        (place.here / "file").write_bytes(b"two")
        well(push(link, place.here / "file"))
        check(stat.S_IMODE((place.there / "file").stat().st_mode) == 0o604, "mode of the old file")


@case()
def only_differences(place):
    """Where the other end has an older version, little is sent"""
    content = random_bytes(8_000_000)
    (place.there / "file").write_bytes(content)
    (place.here / "file").write_bytes(edited(content))
    sent = place.scratch / "sent"
    with place.link(Via, command=f"tee {shlex.quote(str(sent))} | {{serve}}") as link:
        well(push(link, place.here / "file"))
    check((place.there / "file").read_bytes() == edited(content), "another content")
    place.remark(f"{sent.stat().st_size} bytes for 8000000")
    check(sent.stat().st_size < 20_000, "the whole file was sent")


@case()
def standard_streams(place):
    """Two processes joined by two pipes, - in place of HOST:PORT"""
    (place.here / "file").write_bytes(random_bytes(1_000_000))
    for arguments in (["push", place.here / "file", "-", "name"], ["pull", "name", "-", place.here / "copy"]):
        for result in pipes(arguments, place.there):
            well(result)
    check((place.here / "copy").read_bytes() == random_bytes(1_000_000), "another content")


def pieces_of(terminal):
    """What has been written to a terminal whose other side is closed."""
    try:
        while data := os.read(terminal, 100_000):
            yield data.decode()
    except OSError:
        return


@case()
def progress(place):
    """A progress bar on a terminal, and on nothing else"""
    (place.here / "file").write_bytes(random_bytes(5_000_000))
    ours, theirs = pty.openpty()
    with place.link(Tcp) as link:
        process = start("push", place.here / "file", *link.reach(), stderr=theirs)
        os.close(theirs)
        result = finish(process)
    shown = "".join(pieces_of(ours))
    os.close(ours)
    check(result.status == 0 and result.output == b"", result)
    check("\r" in shown and "100%" in shown and "MiB/s" in shown, repr(shown))


@case()
def usage(place):
    """Bad usage is told with the exit status 2"""
    for arguments in ([], ["push"], ["push", "a"], ["serve", "a"], ["frobnicate", "a", "b"], ["push", "a", "b", "c", "d"],
                      ["push", "a", "--wrong"], ["pull", "a", "--via"], ["pull", "a", "b:1", "--timeout", "x"]):
        result = finish(start(*arguments))
        check(result.status == 2 and "usage: xfer" in result.errors and not result.output, f"{arguments}: {result}")
    result = finish(start("--help"))
    check(result.status == 0 and result.output.startswith(b"usage: xfer"), result)
    refused(finish(start("push", XFER, "127.0.0.1:1")), "127.0.0.1:1", "refused")
    refused(finish(start("push", XFER, "--via", "exit 7")), "xfer", "exit status 7")
    refused(finish(start("push", XFER, "--via", "echo hello; cat >/dev/null")), "does not speak xfer", "hello")


# ---- Transfers end in the middle ----------------------------------------------------------------------------------


def middle(place, direction, act, words, others):
    """A transfer that stops in the middle, where act(client, link, relay) is done; both ends have to end well."""
    content = random_bytes(6_000_000)
    source, target = (place.here, place.there) if direction == "push" else (place.there, place.here)
    (source / "file").write_bytes(random_bytes(6_000_000, seed=2))
    (target / "file").write_bytes(content)
    with place.link(Tcp) as link:
        upward = 3_000_000 if direction == "push" else None
        relay = Relay(link.address, upward, None if upward else 3_000_000)
        arguments = [place.here / "file", relay.address, "file"] if direction == "push" else ["file", relay.address, place.here / "file"]
        client = start(direction, *arguments, cwd=place.here)
        relay.wait()
        began = time.monotonic()
        act(client, link, relay)
        result = finish(client, 20)
        relay.close()
        deadline = time.monotonic() + 20
        while link.children() and time.monotonic() < deadline:
            time.sleep(0.02)
        check(not link.children(), "the server's process is still there")
        check(time.monotonic() - began < 10, "took too long")
        if words is not None:
            refused(result, *words)
        if others is not None:
            for word in others:
                check(word in link.said(), f"{word!r} is missing: {link.said()}")
        check((target / "file").read_bytes() == content, "the old file is not as it was")
        for directory in (place.here, place.there):
            check(place.names(directory) == ["file"], place.names(directory))
        # The server is well.
        well(push(link, place.here / "file", "again"))


@case("push", "pull")
def killed_server(place, direction):
    """A server process that is killed in the middle of a {}"""

    def act(client, link, relay):
        for child in link.children():
            os.kill(child, signal.SIGKILL)
        relay.close()

    middle(place, direction, act, ["file", "connection"], None)


@case("push", "pull")
def killed_client(place, direction):
    """A client that is killed in the middle of a {}"""

    def act(client, link, relay):
        client.kill()
        relay.close()

    middle(place, direction, act, None, ["file", "connection"])


@case("push", "pull")
def interrupted_client(place, direction):
    """Ctrl-C at the client in the middle of a {}"""
    middle(place, direction, lambda client, link, relay: (client.send_signal(signal.SIGINT), time.sleep(0.3), relay.close()),
           ["file", "cancelled"], ["file", "connection"])


@case("push", "pull")
def interrupted_server(place, direction):
    """SIGTERM to a server process in the middle of a {}"""

    def act(client, link, relay):
        for child in link.children():
            os.kill(child, signal.SIGTERM)
        time.sleep(0.3)
        relay.close()

    middle(place, direction, act, ["file", "connection"], ["file", "cancelled"])


@case("push", "pull")
def silence(place, direction):
    """A peer that says nothing more in the middle of a {}"""
    (place.here / "file").write_bytes(random_bytes(6_000_000))
    (place.there / "file").write_bytes(random_bytes(6_000_000, seed=2))
    with place.link(Tcp) as link:
        relay = Relay(link.address, 1000 if direction == "push" else None, None if direction == "push" else 1000)
        arguments = ["--timeout", "1", direction, "file", relay.address]
        refused(finish(start(*arguments, cwd=place.here), 20), "file", "timed out")
        relay.close()


# ---- SIGKILL at any moment ----------------------------------------------------------------------------------------

TEMPORARY = re.compile(r"\.file\.[0-9A-Za-z]{6}")


def judge_killed(place, old, new, moment):
    found = (place.there / "file").read_bytes() if (place.there / "file").exists() else None
    check(found in (old, new), f"{moment}: a mix of old and new")
    others = [name for name in place.names(place.there) if name != "file"]
    check(len(others) <= 1 and all(TEMPORARY.fullmatch(name) for name in others), f"{moment}: {others}")
    check(place.names(place.here) == ["file"], place.names(place.here))
    with place.link(Via) as link:
        well(push(link, place.here / "file"))
    check((place.there / "file").read_bytes() == new, f"{moment}: the next push does not bring the new file")
    check(place.names(place.there) == ["file"], f"{moment}: {others} outlasts the next push")
    return bool(others), found == new


def set_up(place, old, new):
    (place.here / "file").write_bytes(new)
    (place.there / "file").unlink(missing_ok=True)
    if old is not None:
        (place.there / "file").write_bytes(old)


def strace_push(place, victim, *options):
    """A push over two pipes of which one end runs under strace."""
    strace, serve = ["strace", *options], [XFER, "serve", str(place.there), "-"]
    client = [XFER, "push", str(place.here / "file"), "--via"]
    if victim == "server":
        command = [*client, f"exec {shlex.join([*strace, *serve])} 2>/dev/null"]
    else:
        command = [*strace, *client, shlex.join(serve)]
    return finish(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE), 30)


def calls_of(place, victim):
    """The system calls of an end, each as its name and the how manieth of that name it is."""
    log = place.scratch / "calls"
    well(strace_push(place, victim, "-o", str(log)))
    names = re.findall(r"^(\w+)\(", log.read_text("utf-8", "replace"), re.MULTILINE)
    # execve is the first, and the loading of the program is not ours.
    own = names.index("rt_sigaction") if "rt_sigaction" in names else 1
    return [(name, names[:index + 1].count(name)) for index, name in enumerate(names)][own:]


@case("server", "client")
def killed_at_calls(place, victim):
    """SIGKILL to the {} at its system calls, one after the other"""
    content = random_bytes(400_000)
    new, killed, left, done = edited(content), 0, 0, 0
    for old in (content, None):
        set_up(place, old, new)
        calls = calls_of(place, victim)
        chosen = calls[:: 1 if FULL else len(calls) // 15 + 1] + calls[-8:]
        # Ahead of a rename a temporary name stands there.
        chosen += [call for call in calls if call[0].startswith(("link", "rename"))]
        for name, number in chosen:
            set_up(place, old, new)
            result = strace_push(place, victim, "-o", "/dev/null", "-e", f"inject={name}:signal=KILL:when={number}")
            moment = f"{name} {number}"
            check(result.status in (0, 1) if victim == "server" else True, f"{moment}: {result}")
            others, is_new = judge_killed(place, old, new, moment)
            check(is_new or result.status != 0, f"{moment}: the client says that all is well")
            killed, left, done = killed + 1, left + others, done + is_new
    place.remark(f"{killed} faults: {done} times the new file was in place, {left} times a temporary name was left and removed later")


@case(Tcp, Via)
def killed_at_moments(place, kind):
    """SIGKILL to either process at any moment of a push over {}"""
    content, new, chance = random_bytes(1_000_000), random_bytes(8_000_000, seed=2), random.Random(5)
    kills, left, done = 300 if FULL else 10, 0, 0
    with place.link(kind) as link:
        set_up(place, content, new)
        began = time.monotonic()
        well(push(link, place.here / "file"))
        length = time.monotonic() - began
        for number in range(kills):
            set_up(place, content, new)
            client = start("push", place.here / "file", *link.reach(), start_new_session=True)
            time.sleep(chance.uniform(0, length))
            children = link.children() if kind is Tcp else []
            if number % 2 and children:
                os.kill(children[0], signal.SIGKILL)
            elif number % 2:
                os.killpg(client.pid, signal.SIGKILL)
            else:
                client.kill()
            finish(client, 20)
            time.sleep(0.05)
            others, is_new = judge_killed(place, content, new, f"kill {number}")
            left, done = left + others, done + is_new
    place.remark(f"{kills} faults within {length * 1000:.0f} ms: {done} times the new file was in place, {left} times a temporary name was left and removed later")


@case()
def killed_csync2(place):
    """SIGKILL to csync2, client or server, at any moment of an update"""
    sys.path.insert(0, str(ROOT / "tests" / "system"))
    from lab import Lab, binary

    program = binary("patched")
    if not os.path.exists(program):
        return place.remark("build/csync2/patched is not built: not tried")
    kills, chance, left, done, length = 200 if FULL else 8, random.Random(7), 0, 0, 0.0
    with Lab(place.scratch / "lab") as lab:
        ours, theirs = lab.tree(1) / "file", lab.tree(2) / "file"
        server = lab.serve(program, 2)
        for number in range(-1, kills):
            old, new = theirs.read_bytes() if theirs.exists() else None, random_bytes(4_000_000, seed=number)
            ours.write_bytes(new)
            os.utime(ours, (1_600_000_000 + number, 1_600_000_000 + number))
            lab.run(program, 1, "-cr", lab.tree(1))
            began = time.monotonic()
            client = subprocess.Popen(lab.argv(program, 1, "-u"), env=lab.environment(1), stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
            if number >= 0:
                time.sleep(chance.uniform(0, length))
                children = subprocess.run(["pgrep", "-P", str(server.process.pid)], capture_output=True, check=False).stdout.split()
                if number % 2 and children:
                    os.kill(int(children[-1]), signal.SIGKILL)
                else:
                    client.kill()
            finish(client, 60)
            length = length or time.monotonic() - began
            time.sleep(0.1)
            found = theirs.read_bytes() if theirs.exists() else None
            check(found in (old, new), f"kill {number}: a mix of old and new")
            others = [name for name in place.names(lab.tree(2)) if name != "file"]
            check(len(others) <= 1 and all(TEMPORARY.fullmatch(name) for name in others), f"kill {number}: {others}")
            run = lab.run(program, 1, "-u")
            check(theirs.read_bytes() == new, f"kill {number}: the next run does not bring the new file: {run.stderr}")
            left, done = left + bool(others), done + (found == new)
    place.remark(f"{kills} faults within {length * 1000:.0f} ms: {done} times the new file was in place, {left} times a temporary name was left")


# ---- All of it ----------------------------------------------------------------------------------------------------


def run_case(number, name, function, values):
    scratch, began = tempfile.mkdtemp(prefix="csync-rs-engine-"), time.monotonic()
    place = Place(scratch)
    try:
        function(place, *values)
        verdict = "ok"
    except AssertionError as error:
        verdict = "not ok"
        place.remark(str(error))
    except Exception:  # a fault of the case itself
        verdict = "not ok"
        place.remark(traceback.format_exc())
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print(f"{verdict} {number} - {name} ({time.monotonic() - began:.1f} s)")
    for line in "\n".join(place.remarks).splitlines():
        print(f"#   {line}")
    print(end="", flush=True)
    return verdict == "ok"


def run_matrix(number):
    """The fault matrix, whose own lines are ours too; passed and failed."""
    print(f"# {number}: build/fault-matrix", flush=True)
    process = subprocess.run([ROOT / "build" / "fault-matrix"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=False)
    lines = process.stdout.splitlines()
    found = re.fullmatch(r"fault-matrix: (\d+) passed, (\d+) failed", lines[-1] if lines else "")
    print("\n".join(lines[:-1] if found else lines), flush=True)
    return (int(found[1]), int(found[2])) if found else (0, 1)


def main(pattern=""):
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    passed = failed = 0
    for number, (name, function, values) in enumerate((entry for entry in CASES if pattern in entry[0]), 1):
        if run_case(number, name, function, values):
            passed += 1
        else:
            failed += 1
    if pattern in "fault-matrix":
        well_there, bad_there = run_matrix(passed + failed + 1)
        passed, failed = passed + well_there, failed + bad_there
    print(f"engine-tests: {passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))

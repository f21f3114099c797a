"""The next files are asked for ahead of the answers about the last ones: the same comes of it as of one after the
other, with less waiting, and a daemon that refuses what was sent ahead executes nothing of it."""

import os
import re
import threading
from pathlib import Path

import trees
from harness import case, check
from lab import BUILDS, Lab, binary
from peers import Cut, Proxy, RawClient
from test_faults import ended, make_dirty, make_known
from test_pairs import compare

ALONE, AHEAD = "1", "8"
SERVERS = ["patched", "original"]


def pipeline(files):
    return {"CSYNC2_PIPELINE": files}


def many(lab, count, content=lambda i: b"content of file %d\n" % i):
    """That many new files on node 1."""
    make_dirty(lab, binary("patched"), **{f"file{i:03}": content(i) for i in range(count)})


# The window


def window(context, client, server, files, wanted):
    """The first answer about a file is held back until so many files were asked for; more do not come."""
    asked, ahead, full = [], [], threading.Event()

    def hold(upwards, data, _total):
        if upwards:
            asked.extend(re.findall(rb"SIG \S+ \S*file\d+", data))
            if len(asked) >= wanted:
                full.set()
        elif asked and not ahead:
            full.wait(10)
            ahead.append(len(asked))
        return data

    with Lab(context.scratch, tls=False) as lab:
        many(lab, 20)
        make_known(lab, binary(server), 2)
        lab.serve(binary(server), 2, port=lab.port + 1)
        with Proxy(lab, 2, lab.port + 1, hold):
            run = lab.run(binary(client), 1, "-u", seconds=30, extra=pipeline(files))
        check(run.returncode == 0, f"{ended(run)}: {run.stderr}")
        compare(lab, 1, 2)
        check(ahead == [wanted], f"asked for before the first answer: {ahead}")


case("original: one file is asked for at a time", "original", "original", AHEAD, 1)(window)
for server in SERVERS:
    case(f"patched to {server}, CSYNC2_PIPELINE=1: one file is asked for at a time (pipeline)",
         "patched", server, ALONE, 1)(window)  # fmt: skip
    case(f"patched to {server}, CSYNC2_PIPELINE=8: eight files are asked for ahead (pipeline)",
         "patched", server, AHEAD, 8)(window)  # fmt: skip


def whole_trees(context, server, tls, files):
    with Lab(context.scratch, tls=tls) as lab:
        trees.make_mixed(lab.tree(1), small=120, large=(1, 1, 1))
        lab.serve(binary(server), 2)
        for change in (lambda top: None, trees.touch_mixed, trees.change_mixed):
            change(lab.tree(1))
            for arguments in (["-cr", lab.tree(1)], ["-u"]):
                run = lab.run(binary("patched"), 1, *arguments, extra=pipeline(files))
                check(run.returncode == 0, f"{ended(run)}: {run.stderr}")
            compare(lab, 1, 2)
            check(lab.run(binary("patched"), 1, "-M").stdout == "", "there are dirty files")


for server in SERVERS:
    for tls in (False, True):
        for files in ("2", "500"):
            case(f"patched to {server}, {'TLS' if tls else 'plain'}, CSYNC2_PIPELINE={files}: a tree new, touched, "
                 "changed (pipeline)", server, tls, files)(whole_trees)  # fmt: skip

# The same comes of it


def known_there(lab, server, **files):
    """Files that are on node 2, too, in another version; both nodes take that for in sync."""
    for name, content in files.items():
        trees.write(lab.tree(1) / name, b"the old content", trees.EPOCH - 1000)
        trees.write(lab.tree(2) / name, content, trees.EPOCH - 500)
    for n in lab.hosts:
        make_known(lab, binary(server), n)


def changed_on_both(lab, server):
    many(lab, 12)
    known_there(lab, server, file003=b"one", file007=b"another", file008=b"a third, longer than the one here")
    for name in ("file003", "file007", "file008"):
        trees.write(lab.tree(2) / name, b"changed there", trees.EPOCH + 5)
    lab.run(binary(server), 2, "-cr", lab.tree(2))
    many(lab, 12)


def deleted_there(lab, server):
    known_there(lab, server, **{f"file{i:03}": b"the old content" for i in range(12)})
    for i in (0, 4, 5, 11):
        (lab.tree(2) / f"file{i:03}").unlink()
    lab.run(binary(server), 2, "-cr", lab.tree(2))
    many(lab, 12)


def forced(lab, server):
    changed_on_both(lab, server)
    lab.run(binary("patched"), 1, "-fr", lab.tree(1))


def deletions(lab, server):
    known_there(lab, server, **{f"gone{i:03}": b"the old content" for i in range(5)})
    for i in range(5):
        (lab.tree(1) / f"gone{i:03}").unlink()
    many(lab, 12)


def directories(lab, server):
    for d in ("one", "one/two", "one/two/three", "two"):
        (lab.tree(1) / d).mkdir()
        for i in range(3):
            trees.write(lab.tree(1) / d / f"file{i}", b"in a directory", trees.EPOCH)
    many(lab, 12)
    make_known(lab, binary(server), 2)


def missing_directory(lab, server):
    """Only files are dirty, the directory is neither dirty nor there."""
    (lab.tree(1) / "missing").mkdir()
    for i in range(12):
        trees.write(lab.tree(1) / "missing" / f"file{i:03}", b"in a directory", trees.EPOCH)
    make_known(lab, binary("patched"), 1)
    many(lab, 12)
    lab.run(binary("patched"), 1, "-mr", lab.tree(1) / "missing" / "file003", lab.tree(1) / "missing" / "file007")


def types(lab, server):
    """A link, a directory and a fifo are there in the place of files, and the other way round."""
    many(lab, 9)
    (lab.tree(2) / "file002").symlink_to("somewhere")
    (lab.tree(2) / "file004").mkdir()
    os.mkfifo(lab.tree(2) / "file006")
    (lab.tree(1) / "file0005").symlink_to("file003")
    (lab.tree(2) / "file0005").write_text("a file")
    make_known(lab, binary(server), 2)
    many(lab, 9)


def refused_names(lab, server):
    many(lab, 12)
    make_known(lab, binary(server), 2)


def full(_lab):
    """From the fourth file on there is no place for the new files under their names."""
    calls = "rename,renameat,renameat2,linkat"
    return ("strace", "-f", "-o", "/dev/null", "-e", f"trace={calls}", "-e", f"inject={calls}:error=ENOSPC:when=4+")


SCENARIOS = {
    "changed on both": (changed_on_both, {}),
    "changed on both, the younger wins": (changed_on_both, {"config": "auto younger;"}),
    "changed on both, the bigger wins": (changed_on_both, {"config": "auto bigger;"}),
    "changed on both, the first wins": (changed_on_both, {"config": "auto first;"}),
    "deleted there": (deleted_there, {}),
    "deleted there, the first wins": (deleted_there, {"config": "auto first;"}),
    "forced": (forced, {}),
    "deletions": (deletions, {}),
    "directories": (directories, {}),
    "a missing directory": (missing_directory, {}),
    "other types": (types, {}),
    "a dry run": (changed_on_both, {"arguments": ("-ud",)}),
    "files that cannot be put in place": (refused_names, {"prefix": full}),
}


def outcome(place, server, files, prepare, config="", arguments=("-u",), prefix=lambda lab: ()):
    """What a run with that window comes to, without the names of the laboratory."""
    with Lab(place, tls=False, config=config) as lab:
        prepare(lab, server)
        lab.serve(binary(server), 2, prefix=prefix(lab))
        run = lab.run(binary("patched"), 1, *arguments, seconds=30, extra=pipeline(files))
        dirty = [lab.run(binary("patched"), n, "-M").stdout for n in lab.hosts]
        seen = {
            "exit code": run.returncode,
            "errors": re.findall(r"Finished with .* errors|^ERROR.*|^Auto-resolving.*|^Do not auto.*", run.stderr, re.M),
            "output": run.stdout,
            "dirty": dirty,
            # (the original leaves its temporary files, with names of chance)
            "tree": sorted(entry for entry in trees.digest(lab.tree(2)).items() if not entry[0].startswith(b".file")),
        }

        def neutral(text):
            for n, host in lab.hosts.items():
                text = text.replace(str(lab.base), "BASE").replace(host, f"node{n}")
            return re.sub(" +", " ", text)

        seen = {key: neutral(repr(value)) for key, value in seen.items()}
        return seen, run


def same_outcome(context, server, name):
    prepare, options = SCENARIOS[name]
    (alone, _), (ahead, run) = (
        outcome(Path(context.scratch, files), server, files, prepare, **options) for files in (ALONE, AHEAD)
    )
    for key, value in alone.items():
        check(ahead[key] == value, f"{key}: {ahead[key]}\none after the other: {value}\n{run.stderr}")
    context.remark(f"exit code {alone['exit code']}, {alone['errors']}")


for server in SERVERS:
    for name in SCENARIOS:
        case(f"patched to {server}: {name}: the same ahead as one after the other (pipeline)", server, name)(
            same_outcome)  # fmt: skip

# What a daemon does with what was sent behind a PATCH that it refuses

COMMANDS = ["DEL {key} %25tree%25/victim", "PATCH {key} %25tree%25/victim", "SETMOD {key} %25tree%25/victim 0",
            "MKDIR {key} %25tree%25/made", "MKLINK {key} %25tree%25/victim nowhere"]  # fmt: skip


def commands(before):
    """A file of commands; the lines ahead of them have every length."""
    lines = ["x" * before]
    for command in COMMANDS:
        command = command.format(key=RawClient.KEY)
        for blank in ("", " ", "\t", "\r", "\r\n", "\n\n", "%20", "\0", "\0\n"):
            lines += [blank + command, "y" * (before * 7 % 64), command.lower(), ""]
    return "\n".join(lines).encode() + b"\n" + COMMANDS[0].format(key=RawClient.KEY).encode()


def refused(lab, server):
    """Files of commands that are new here, and that were deleted there, which is a conflict; and a victim."""
    names = [f"file{i:03}" for i in range(64)]
    for name in names:
        for n in lab.hosts:
            trees.write(lab.tree(n) / name, b"the old content", trees.EPOCH - 1000)
    trees.write(lab.tree(2) / "victim", b"mine", trees.EPOCH)
    for n in lab.hosts:
        make_known(lab, binary(server), n)
    for name in names:
        (lab.tree(2) / name).unlink()
    lab.run(binary(server), 2, "-cr", lab.tree(2))


def untouched(lab):
    victim = lab.tree(2) / "victim"
    status = os.lstat(victim) if os.path.lexists(victim) else None
    left = sorted(path.name for path in lab.tree(2).iterdir())
    return left == ["victim"] and victim.read_bytes() == b"mine" and status.st_mode & 0o777 == 0o644


@case("original: a delta that was not made for it is executed behind a PATCH that is refused")
def executed(context):
    with Lab(context.scratch, tls=False) as lab:
        refused(lab, "original")
        lab.serve(binary("original"), 2)
        with RawClient(lab, 2) as client:
            answer = client.file("PATCH", "file000")
            check(answer == "File is also marked dirty here!", f"answered by {answer!r}")
            content = b"\n" + COMMANDS[0].format(key=RawClient.KEY).encode() + b"\n"
            client.send(b"octet-stream %d\nrs\x026%c%b\0\nBYE\n" % (len(content) + 6, len(content), content))
            while client.line() not in ("OK (cu_later).", ""):
                pass
        check(not untouched(lab), "the danger did not show")


def nothing_executed(context, server):
    with Lab(context.scratch, tls=False) as lab:
        refused(lab, server)
        make_dirty(lab, binary("patched"), **{f"file{i:03}": commands(i) for i in range(64)})
        lab.serve(binary(server), 2)
        run = lab.run(binary("patched"), 1, "-u", seconds=60, extra=pipeline(AHEAD))
        check(run.returncode == 1 and "Finished with 64 errors" in run.stderr, f"{ended(run)}: {run.stderr}")
        check(untouched(lab), f"node 2 has now: {[path.name for path in lab.tree(2).iterdir()]}")


for server in SERVERS:
    case(f"patched to {server}: of file content behind a PATCH that is refused nothing is executed (pipeline)",
         server)(nothing_executed)  # fmt: skip

# Small buffers between the two

SMALL = {"LD_PRELOAD": str(BUILDS / "preload.so"), "LAB_BUFFER": "4096"}
LONG_NAME = "x" * 200


@case("original: who sends all requests before it reads an answer is stuck, and so is the daemon")
def stuck(context):
    with Lab(context.scratch, tls=False) as lab:
        trees.write(lab.tree(2) / LONG_NAME, b"content", trees.EPOCH)
        lab.serve(binary("original"), 2, extra=SMALL)
        with RawClient(lab, 2, buffer=4096) as client:
            request = f"SIG {client.KEY} %25tree%25/{LONG_NAME}\n".encode()
            client.socket.settimeout(3)
            sent = 0
            try:
                while sent < 5000:
                    client.socket.sendall(request)
                    sent += 1
            except TimeoutError:
                context.remark(f"seen: no room for request {sent} of 5000 within 3 s")
                return
        check(False, "the danger did not show")


def small_buffers(context, server, tls):
    """All files at once, as far as the window of 256 KiB goes; names and answers are longer than the buffers."""
    with Lab(context.scratch, tls=tls) as lab:
        content = b"0123456789abcde\n"
        make_dirty(lab, binary("patched"), **{f"{LONG_NAME}{i}": content * (i * 4) for i in range(250)})
        for i in range(0, 250, 3):  # (the others are new)
            trees.write(lab.tree(2) / f"{LONG_NAME}{i}", content * (i * 4 - i % 2), trees.EPOCH)
        make_known(lab, binary(server), 2)
        lab.serve(binary(server), 2, extra=SMALL)
        run = lab.run(binary("patched"), 1, "-u", seconds=100, extra={**SMALL, **pipeline("1000")})
        check(run.returncode == 0, f"{ended(run)}: {run.stderr}")
        compare(lab, 1, 2)


for server in SERVERS:
    for tls in (False, True):
        case(f"patched to {server}, {'TLS' if tls else 'plain'}: small buffers between the two (pipeline)", server, tls)(
            small_buffers)  # fmt: skip

# Connections that are lost, files that change


def lost(context, server, after):
    """The connection is gone after so many bytes from the client, or to it; the next run completes it."""
    for upwards_only in (True, False):

        def cut(upwards, data, total, upwards_only=upwards_only):
            if upwards == upwards_only and total + len(data) > after:
                raise Cut(data[: after - total])
            return data

        with Lab(Path(context.scratch, str(upwards_only)), tls=False) as lab:
            many(lab, 40, lambda i: b"a line of text\n" * (i * 20))
            lab.serve(binary(server), 2, port=lab.port + 1)
            with Proxy(lab, 2, lab.port + 1, cut):
                run = lab.run(binary("patched"), 1, "-u", seconds=30, extra=pipeline(AHEAD))
            check(run.returncode == 1, f"{ended(run)} with a lost connection: {run.stderr}")
            with Proxy(lab, 2, lab.port + 1, lambda upwards, data, total: data):
                run = lab.run(binary("patched"), 1, "-u", seconds=30, extra=pipeline(AHEAD))
            check(run.returncode == 0, f"{ended(run)} afterwards: {run.stderr}")
            compare(lab, 1, 2)


for server in SERVERS:
    for after in (700, 1500, 2500):
        case(f"patched to {server}: the connection is lost after {after} bytes, the next run completes (pipeline)",
             server, after)(lost)  # fmt: skip


def changes_meanwhile(context, server):
    """Between SIG and PATCH one file vanishes, one grows, one becomes a link."""
    with Lab(context.scratch, tls=False) as lab:
        changed = threading.Event()

        def change(upwards, data, _total):
            if not upwards and b"path_not_found" in data and not changed.is_set():
                (lab.tree(1) / "file003").unlink()
                trees.write(lab.tree(1) / "file004", b"grown\n" * 9000, trees.EPOCH)
                (lab.tree(1) / "file005").unlink()
                (lab.tree(1) / "file005").symlink_to("file001")
                changed.set()
            return data

        many(lab, 12)
        make_known(lab, binary(server), 2)
        lab.serve(binary(server), 2, port=lab.port + 1)
        with Proxy(lab, 2, lab.port + 1, change):
            run = lab.run(binary("patched"), 1, "-u", seconds=30, extra=pipeline(AHEAD))
            check(run.returncode == 1 and "Finished with 1 errors" in run.stderr, f"{ended(run)}: {run.stderr}")
            check(not (lab.tree(2) / "file003").exists(), "the file that has vanished has arrived")
            for arguments in (["-cr", lab.tree(1)], ["-u"]):
                run = lab.run(binary("patched"), 1, *arguments, seconds=30, extra=pipeline(AHEAD))
                check(run.returncode == 0, f"{ended(run)}: {run.stderr}")
        compare(lab, 1, 2)


for server in SERVERS:
    case(f"patched to {server}: files change between SIG and PATCH (pipeline)", server)(changes_meanwhile)

"""What the daemon answers and reports when a command has failed, and what the client makes of it (faults N3 to N10)."""

import os
import stat
import subprocess
from pathlib import Path

import trees
from harness import case, check
from lab import BUILDS, Lab, LabError, binary
from peers import Proxy, RawClient
from test_faults import PAIRS, arrived, ended, make_dirty, make_known

# N3: no backup, no update


def backup_config(context):
    """Backups go to a place that is a file, not a directory."""
    context.place = f"{context.scratch}/backups"
    with open(context.place, "w", encoding="ascii") as file:
        file.write("no directory\n")
    return f'backup-directory "{context.place}"; backup-generations 3;'


def failed_backup(context, client, server, hangs):
    with Lab(context.scratch, tls=False, config=backup_config(context)) as lab:
        (lab.tree(1) / "directory").mkdir()
        make_dirty(lab, binary(client), a=b"first", z=b"last")
        (lab.tree(1) / "zz").symlink_to("a")
        lab.run(binary(client), 1, "-cr", lab.tree(1))
        lab.serve(binary(server), 2)
        try:
            run = lab.run(binary(client), 1, "-u", seconds=8)
        except LabError as error:
            check(hangs, str(error))
            context.remark(f"seen: {error}")
            return
        check(not hangs, f"the fault did not show: {ended(run)}, {run.stderr}")
        check(run.returncode == 1, f"{ended(run)}, expected exit code 1: {run.stderr}")
        check(not arrived(lab, 2, "a"), "a file was replaced without a backup")
        check((lab.tree(2) / "zz").is_symlink(), f"what needs no backup did not arrive: {run.stderr}")
        dirty = lab.run(binary(client), 1, "-M").stdout
        check("/a\n" in dirty and "/z\n" in dirty and "/zz\n" not in dirty, f"dirty afterwards: {dirty}")


case("original to original: a backup that fails hangs both (fault N3)", "original", "original", True)(failed_backup)
for client, server in PAIRS:
    case(f"{client} to {server}: a backup that fails is an error, the rest is synced (N3)",
         client, server, False)(failed_backup)  # fmt: skip


# N5: what a command that fails would have replaced


def old_link(path):
    path.symlink_to("somewhere")


def old_fifo(path):
    os.mkfifo(path)


def old_file(path):
    path.write_text("the old content")


def old_directory(path):
    path.mkdir()


def look(path):
    """What is at a path: its type, mode and content."""
    if not os.path.lexists(path):
        return "nothing"
    status = os.lstat(path)
    content = os.readlink(path) if stat.S_ISLNK(status.st_mode) else path.read_text() if path.is_file() else ""
    return f"{stat.filemode(status.st_mode)} {content}"


COMMANDS = {
    "a corrupt delta": lambda client: client.patch("b", b"no delta"),
    "a link without a target": lambda client: client.file("MKLINK", "b"),
}
OLD = [
    ("a corrupt delta", "a link", old_link),
    ("a corrupt delta", "a fifo", old_fifo),
    ("a corrupt delta", "an empty directory", old_directory),
    ("a link without a target", "a file", old_file),
]


def failed_replacement(context, server, command, make, good):
    with Lab(context.scratch, tls=False) as lab:
        path = lab.tree(2) / "b"
        make(path)
        make_known(lab, binary(server), 2)
        before = look(path)
        lab.serve(binary(server), 2)
        with RawClient(lab, 2) as client:
            answer = COMMANDS[command](client)
            check(answer and not answer.startswith("OK"), f"answered by {answer!r}")
            check(client.ask("BYE") == "OK (cu_later).", "out of step afterwards")
        after = look(path)
        if good:
            left = [entry.name for entry in lab.tree(2).iterdir()]
            check(left == ["b"], f"left in the tree: {left}")
            check(after == before, f"was {before}, is {after}")
        else:
            check(after != before, "the fault did not show")
            context.remark(f"seen: answered by {answer!r}; was {before}, is {after}")


for command, what, make in OLD:
    case(f"original: {what} is gone after {command} (fault N5)", "original", command, make, False)(failed_replacement)
    case(f"patched: {what} is still there after {command} (N5)", "patched", command, make, True)(failed_replacement)


MAKERS = {"link": old_link, "fifo": old_fifo, "file": old_file, "directory": old_directory}


@case("patched: every type of file takes the place of every other (N5)")
def every_replacement(context):
    with Lab(context.scratch, tls=False) as lab:
        pairs = [(old, new) for old in MAKERS for new in MAKERS]
        for old, new in pairs:
            MAKERS[old](lab.tree(2) / f"{old}-{new}")
            MAKERS[new](lab.tree(1) / f"{old}-{new}")
        make_known(lab, binary("patched"), 2)
        lab.serve(binary("patched"), 2)
        lab.run(binary("patched"), 1, "-cr", lab.tree(1))
        run = lab.run(binary("patched"), 1, "-u", seconds=20)
        check(run.returncode == 0, f"{ended(run)}: {run.stderr}")
        for old, new in pairs:
            wanted, found = (look(lab.tree(n) / f"{old}-{new}") for n in (1, 2))
            check(wanted == found, f"{old} to {new}: {found}, not {wanted}")
        left = sorted(path.name for path in lab.tree(2).iterdir())
        check(left == sorted(f"{old}-{new}" for old, new in pairs), f"left in the tree: {left}")


# N4: what failed is not reported as done

FAILURES = {
    "a file in a directory that is not there": lambda client: client.patch("missing/b", WHOLE),
    "a corrupt delta": lambda client: client.patch("b", b"no delta"),
    "a directory that cannot be deleted": lambda client: client.file("DEL", "full"),
    "a link in a directory that is not there": lambda client: client.file("MKLINK", "missing/b", "target"),
}


def whole(content):
    """A delta that makes a file of this content, of 64 bytes at most."""
    return b"rs\x026%c%b\0" % (len(content), content)


WHOLE = whole(b"new\n")


def reported(context, server, command, good):
    log = f"{context.scratch}/actions.log"
    action = f'action {{ exec "echo the action has run"; logfile "{log}"; }}'
    with Lab(context.scratch, tls=False, config=action) as lab:
        (lab.tree(2) / "full").mkdir()
        (lab.tree(2) / "full" / "file").write_text("")
        make_known(lab, binary(server), 2)
        served = lab.serve(binary(server), 2, "-iiiv")
        with RawClient(lab, 2) as client:
            answer = FAILURES[command](client)
            check(answer and not answer.startswith("OK"), f"answered by {answer!r}")
            check(client.ask("BYE") == "OK (cu_later).", "out of step afterwards")
        served.wait(10)
        claims = [line for line in served.text().splitlines() if "Updated" in line]
        if os.path.exists(log):
            claims.append("the action has run")
        if good:
            check(not claims, f"answered by {answer!r}, but claimed: {claims}")
        else:
            check(claims, "the fault did not show")
            context.remark(f"seen: answered by {answer!r}; {'; '.join(claims)}")


for command in FAILURES:
    case(f"original: {command}: reported as updated (fault N4)", "original", command, False)(reported)
    case(f"patched: {command}: not reported as updated (N4)", "patched", command, True)(reported)


@case("patched: what has arrived is reported, and its action run (N4)")
def truly_updated(context):
    log = f"{context.scratch}/actions.log"
    action = f'action {{ exec "echo the action has run"; logfile "{log}"; }}'
    with Lab(context.scratch, tls=False, config=action) as lab:
        served = lab.serve(binary("patched"), 2, "-iiiv")
        with RawClient(lab, 2) as client:
            answer = client.patch("b", WHOLE)
            check(answer == "OK (cmd_finished).", f"answered by {answer!r}")
            client.ask("BYE")
        served.wait(10)
        check((lab.tree(2) / "b").read_bytes() == b"new\n", "the file is not what was sent")
        check("Updated %tree%/b" in served.text(), f"not reported: {served.text()}")
        check(os.path.exists(log), "the action has not run")


# N6: a dry run


def dry_run(context, client, server, good):
    asked = []

    def listen(upwards, data, _total):
        if upwards:
            asked.extend(line.split()[0].decode() for line in data.splitlines() if line.strip())
        return data

    with Lab(context.scratch, tls=False) as lab:
        make_dirty(lab, binary(client), a=b"the same on both nodes", b=b"new")
        (lab.tree(2) / "a").write_bytes(b"the same on both nodes")
        for n in lab.hosts:
            (lab.tree(n) / "a").chmod(0o644)
        make_known(lab, binary(server), 2)
        before = os.stat(lab.tree(2) / "a").st_mtime_ns
        lab.serve(binary(server), 2, port=lab.port + 1)
        with Proxy(lab, 2, lab.port + 1, listen):
            run = lab.run(binary(client), 1, "-ud", seconds=20)
        check(run.returncode == 0, f"{ended(run)}: {run.stderr}")
        after = os.stat(lab.tree(2) / "a").st_mtime_ns
        changing = sorted(set(asked) - {"CONFIG", "HELLO", "SIG", "BYE"})
        if good:
            check(not changing and before == after, f"asked for in a dry run: {changing}")
            dirty = lab.run(binary(client), 1, "-M").stdout
            check("/a\n" in dirty and "/b\n" in dirty, f"dirty after a dry run: {dirty}")
        else:
            check(changing and before != after, f"the fault did not show: {changing}")
            context.remark(f"seen: {', '.join(changing)}, and the peer's time was changed")


case("original: a dry run sets the peer's times (fault N6)", "original", "original", False)(dry_run)
for client, server in PAIRS[:2]:
    case(f"{client} to {server}: a dry run changes nothing (N6)", client, server, True)(dry_run)


# N8: backups


def backups(context):
    """A configuration with backups, and the directory that the backups of node 2's tree are in."""
    return f'backup-directory "{context.scratch}/backups"; backup-generations 3;'


def shorter_backup(context, server, good):
    """The old backup cannot be moved away: foo.1 and foo.2 are directories, in the tree and among the backups."""
    with Lab(context.scratch, tls=False, config=backups(context)) as lab:
        tree = lab.tree(2)
        trees.write(tree / "foo", b"long " * 1000, trees.EPOCH)
        for name in ("foo.1", "foo.2"):
            (tree / name).mkdir()
            trees.write(tree / name / "file", b"some content", trees.EPOCH)
        make_known(lab, binary(server), 2)
        lab.serve(binary(server), 2)
        with RawClient(lab, 2) as client:
            for name in ("foo.1/file", "foo.2/file", "foo", "foo"):
                answer = client.patch(name, WHOLE)
                check(answer == "OK (cmd_finished).", f"{name}: answered by {answer!r}")
        content = Path(f"{context.scratch}/backups{tree}/foo").read_bytes()
        if good:
            check(content == b"new\n", f"the backup has {len(content)} bytes")
        else:
            check(content.startswith(b"new\n"), "not a backup at all")
            check(len(content) == 5000, "the fault did not show")
            context.remark("seen: a backup of 4 bytes with 4996 bytes of an older one behind it")


case("original: a shorter backup keeps the tail of the old one (fault N8)", "original", False)(shorter_backup)
case("patched: a shorter backup has no tail (N8)", "patched", True)(shorter_backup)


def unreadable_backup(context, server, good):
    """The first read of the file, which is the backup's, fails."""
    with Lab(context.scratch, tls=False, config=backups(context)) as lab:
        path = lab.tree(2) / "foo"
        path.write_text("the only copy")
        make_known(lab, binary(server), 2)
        fault = ("strace", "-f", "-o", "/dev/null", "-P", path, "-e", "trace=read", "-e", "inject=read:error=EIO:when=1")
        lab.serve(binary(server), 2, prefix=fault)
        with RawClient(lab, 2) as client:
            answer = client.patch("foo", WHOLE)
            check(client.ask("BYE") == "OK (cu_later).", "out of step afterwards")
        content = path.read_text()
        if good:
            check("Input/output error" in answer, f"answered by {answer!r}")
            check(content == "the only copy", "the file was replaced, and has no backup")
        else:
            check(answer == "OK (cmd_finished)." and content == "new\n", f"the fault did not show: {answer!r}, {content!r}")
            context.remark(f"seen: answered by {answer!r}, and there is no backup of what was replaced")


case("original: a file whose backup cannot be read is replaced (fault N8)", "original", False)(unreadable_backup)
case("patched: a file whose backup cannot be read is not replaced (N8)", "patched", True)(unreadable_backup)


# N9: generations of backups


def generations(context, server, good):
    with Lab(context.scratch, tls=False, config=backups(context)) as lab:
        path = lab.tree(2) / "foo.conf"
        path.write_text("version 0")
        make_known(lab, binary(server), 2)
        lab.serve(binary(server), 2)
        with RawClient(lab, 2) as client:
            for version in range(1, 5):
                answer = client.patch("foo.conf", whole(b"version %d" % version))
                check(answer == "OK (cmd_finished).", f"answered by {answer!r}")
        place = Path(f"{context.scratch}/backups{lab.tree(2)}")
        kept = {entry.name: entry.read_text() for entry in place.iterdir()}
        wanted = {"foo.conf": "version 3", "foo.conf.1": "version 2", "foo.conf.2": "version 1"}
        check((kept == wanted) == good, f"kept: {kept}" if good else "the fault did not show")
        context.remark(f"kept: {', '.join(f'{content} as {name}' for name, content in sorted(kept.items()))}")


case("original: of three generations of backups two are kept (fault N9)", "original", False)(generations)
case("patched: three generations of backups are kept (N9)", "patched", True)(generations)


def deleted_fifo(context, server, good):
    """DEL of a fifo, whose other end nobody opens, where backups are made."""
    with Lab(context.scratch, tls=False, config=backups(context)) as lab:
        old_fifo(lab.tree(2) / "b")
        make_known(lab, binary(server), 2)
        lab.serve(binary(server), 2)
        with RawClient(lab, 2) as client:
            client.socket.settimeout(10 if good else 4)
            try:
                answer = client.file("DEL", "b")
            except TimeoutError:
                check(not good, "no answer to DEL within 10 s")
                context.remark("seen: no answer to DEL within 4 s")
                return
        check(good, f"the fault did not show: answered by {answer!r}")
        check(answer == "OK (cmd_finished)." and look(lab.tree(2) / "b") == "nothing", f"answered by {answer!r}")


case("original: a fifo that is to be deleted is opened for a backup, which hangs (fault N8)",
     "original", False)(deleted_fifo)  # fmt: skip
case("patched: a fifo is deleted without a backup (N8)", "patched", True)(deleted_fifo)


# N10: an address as text

ADDRESS_TEST = """
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
%s
int main(void)
{
	address_t address = { .sa_in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f010203) } };

	return puts(csync_inet_ntop(&address)) < 0;
}
"""


def address(context, variant, good):
    """csync_inet_ntop() of a variant, alone and not inlined, with what finds the use of a dead frame."""
    daemon = (BUILDS / variant / "daemon.c").read_text(errors="replace")
    function = daemon[daemon.index("typedef union address") : daemon.index("/*", daemon.index("csync_inet_ntop"))]
    source, program = Path(context.scratch, "address.c"), Path(context.scratch, "address")
    source.write_text(ADDRESS_TEST % function)
    subprocess.run(["gcc", "-g", "-fno-inline", "-fsanitize=address", "-o", program, source], check=True, timeout=60)
    run = subprocess.run([program], capture_output=True, text=True, errors="replace", timeout=60,
                         env=dict(os.environ, ASAN_OPTIONS="detect_stack_use_after_return=1"))  # fmt: skip
    if good:
        check(run.returncode == 0 and run.stdout == "127.1.2.3\n", f"{ended(run)}: {run.stdout}{run.stderr}")
    else:
        check("stack-use-after-return" in run.stderr, f"the fault did not show: {ended(run)}: {run.stdout}")


case("original: an address is read from a frame that is gone (fault N10)", "original", False)(address)
case("patched: an address has a place of its own (N10)", "patched", True)(address)


# W4: what is replaced is what was there before


def replaced_meanwhile(context, server, good):
    """While a file is on its way that replaces a link, somebody puts a file of their own in the link's place."""
    with Lab(context.scratch, tls=False) as lab:
        path = lab.tree(2) / "b"
        path.symlink_to("somewhere")
        make_known(lab, binary(server), 2)
        lab.serve(binary(server), 2)

        def meanwhile():
            path.unlink(missing_ok=True)
            path.write_text("something local")

        with RawClient(lab, 2) as client:
            answer = client.patch("b", WHOLE, meanwhile)
            check(client.ask("BYE") == "OK (cu_later).", "out of step afterwards")
        if good:
            check(answer and not answer.startswith("OK"), f"answered by {answer!r}")
            check(look(path).endswith(" something local"), f"it is now {look(path)}")
            left = [entry.name for entry in lab.tree(2).iterdir()]
            check(left == ["b"], f"left in the tree: {left}")
        else:
            check(not look(path).endswith(" something local"), "the fault did not show")
            context.remark(f"seen: answered by {answer!r}, and it is now {look(path)}")


case("original: a file that was put in the place of a link meanwhile is overwritten (fault W4)",
     "original", False)(replaced_meanwhile)  # fmt: skip
case("patched: a file that was put in the place of a link meanwhile stays (W4)", "patched", True)(replaced_meanwhile)

"""Directories: their times, and those that are missing on the peer (csync2's issues 34, 9 and 30)."""

import os
import stat

import trees
from harness import case, check
from lab import Lab, binary
from peers import Cut, Proxy
from test_faults import PAIRS, arrived, ended, make_dirty, make_known

DIRECTORIES = ("d", "d/e", "d/e/f", "empty")


def old_tree(lab):
    """Node 1 has directories of 2001, with files in them."""
    for name in DIRECTORIES:
        (lab.tree(1) / name).mkdir()
    for name in ("d/a", "d/e/b", "d/e/f/c", "d/z"):
        trees.write(lab.tree(1) / name, b"some content", trees.EPOCH)
    for name in reversed(DIRECTORIES):
        os.utime(lab.tree(1) / name, (trees.EPOCH, trees.EPOCH))


def times_on(lab, n):
    """The times of node n's directories; 0 for those that are not there."""
    paths = [lab.tree(n) / name for name in DIRECTORIES]
    return {path.relative_to(lab.tree(n)).as_posix(): int(path.stat().st_mtime) if path.exists() else 0 for path in paths}


def directory_times(context, client, server, good):
    with Lab(context.scratch, tls=False) as lab:
        old_tree(lab)
        make_dirty(lab, binary(client))
        lab.serve(binary(server), 2)
        run = lab.run(binary(client), 1, "-u", seconds=20)
        check(run.returncode == 0 and arrived(lab, 2, "d/e/f/c"), f"{ended(run)}: {run.stderr}")
        lost = [name for name, time in times_on(lab, 2).items() if time != trees.EPOCH]
        if good:
            check(not lost, f"directories with another time: {lost}")
            check(lab.run(binary(client), 1, "-M").returncode == 2, "something is still dirty")
        else:
            check(lost == ["d", "d/e", "d/e/f"], f"the fault did not show: {lost}")
            context.remark(f"seen: another time on the peer: {', '.join(lost)}")


case("original: the times of directories are lost (csync2's issue 34)", "original", "original", False)(directory_times)
for client, server in PAIRS[:2]:
    case(f"{client} to {server}: directories keep their times (csync2's issue 34)", client, server, True)(directory_times)


@case("patched: a directory whose time was not set when the connection was lost is dirty (csync2's issue 34)")
def lost_before_times(context):
    def cut(upwards, data, _total):
        if upwards and data.startswith(b"SETIME ") and data.split()[2].endswith(b"/d"):
            raise Cut
        return data

    with Lab(context.scratch, tls=False) as lab:
        old_tree(lab)
        make_dirty(lab, binary("patched"))
        lab.serve(binary("patched"), 2, port=lab.port + 1)
        with Proxy(lab, 2, lab.port + 1, cut):
            run = lab.run(binary("patched"), 1, "-u", seconds=20)
        check(run.returncode == 1, f"{ended(run)}, expected exit code 1: {run.stderr}")
        dirty = lab.run(binary("patched"), 1, "-M").stdout
        check("%tree%/d\n" in dirty, f"dirty afterwards: {dirty}")
        lab.serve(binary("patched"), 2)
        run = lab.run(binary("patched"), 1, "-u", seconds=20)
        check(run.returncode == 0, f"{ended(run)}: {run.stderr}")
        lost = [name for name, time in times_on(lab, 2).items() if time != trees.EPOCH]
        check(not lost, f"directories with another time after the next run: {lost}")

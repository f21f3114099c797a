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


# missing parent directories


def parent_gone(context, client, server, good):
    """A file that is forced, so that nobody has asked for its signature before; its directory is gone on the peer."""
    with Lab(context.scratch, tls=False) as lab:
        (lab.tree(1) / "d").mkdir()
        (lab.tree(1) / "d").chmod(0o750)
        make_dirty(lab, binary(client), **{"d/f": b"old"})
        lab.serve(binary(server), 2)
        check(lab.run(binary(client), 1, "-u", seconds=20).returncode == 0, "the first run failed")
        (lab.tree(2) / "d" / "f").unlink()
        (lab.tree(2) / "d").rmdir()
        make_known(lab, binary(server), 2)
        make_dirty(lab, binary(client), **{"d/f": b"new content"})
        lab.run(binary(client), 1, "-f", lab.tree(1) / "d" / "f")
        run = lab.run(binary(client), 1, "-u", seconds=20)
        if good:
            check(run.returncode == 0 and arrived(lab, 2, "d/f"), f"{ended(run)}: {run.stderr}")
            mode = stat.S_IMODE((lab.tree(2) / "d").stat().st_mode)
            check(mode == 0o750, f"the directory has mode {mode:o}")
        else:
            check(run.returncode == 1 and not arrived(lab, 2, "d/f"), f"the fault did not show: {ended(run)}")
            context.remark(f"seen: {ended(run)}, the file did not arrive")


case("original: a forced file whose directory is gone is not synced (csync2's issue 30)",
     "original", "original", False)(parent_gone)  # fmt: skip
for client in ("patched", "original"):
    case(f"{client} to patched: a forced file whose directory is gone is synced with it (csync2's issue 30)",
         client, "patched", True)(parent_gone)  # fmt: skip


def parent_outside(context, client, server, configured, judge):
    """The directories above the file are in no group."""
    outside = "exclude %tree%/out; include %tree%/out/side/d;"
    with Lab(context.scratch, tls=False, config=outside) as lab:
        (lab.tree(1) / "out" / "side" / "d").mkdir(parents=True)
        make_dirty(lab, binary(client), **{"out/side/d/f": b"content", "z": b"other content"})
        served = lab.serve(binary(server), 2, "-iiv", extra={"CSYNC2_MAKE_PARENTS": "1"} if configured else None)
        run = lab.run(binary(client), 1, "-u", seconds=20)
        check(arrived(lab, 2, "z"), f"the file that has its directory did not arrive: {run.stderr}")
        judge(context, lab, run, served)


def silently_left_out(context, lab, run, _served):
    check(run.returncode == 0 and not (lab.tree(2) / "out").exists(), f"the fault did not show: {ended(run)}")
    context.remark(f"seen: {ended(run)}, and the file did not arrive")


def told_and_left_out(_context, lab, run, served):
    check(run.returncode == 1 and not (lab.tree(2) / "out").exists(), f"{ended(run)}: {run.stderr}")
    check("%tree%/out/side is missing" in run.stderr, f"the directory is not named: {run.stderr}")
    check("Updated %tree%/out" not in served.text(), f"reported as updated: {served.text()}")
    check("%tree%/out/side/d\n" in lab.run(binary("patched"), 1, "-M").stdout, "it is not dirty any more")


def made(_context, lab, run, _served):
    check(run.returncode == 0 and arrived(lab, 2, "out/side/d/f"), f"{ended(run)}: {run.stderr}")
    modes = {name: stat.S_IMODE((lab.tree(2) / name).stat().st_mode) for name in ("out", "out/side")}
    check(set(modes.values()) == {0o700}, f"modes of what was made: {modes}")
    wanted, found = ((lab.tree(n) / "out/side/d").stat().st_mode for n in (1, 2))
    check(wanted == found, f"mode of the directory that was sent: {found:o}, not {wanted:o}")


case("original: files whose directories are in no group are left out without a word (csync2's issue 9)",
     "original", "original", True, silently_left_out)(parent_outside)  # fmt: skip
for client, server in PAIRS[:2]:
    case(f"{client} to {server}: files whose directories are in no group are an error (csync2's issue 9)",
         client, server, False, told_and_left_out)(parent_outside)  # fmt: skip
for client in ("patched", "original"):
    case(f"{client} to patched, told to make them: directories in no group are made, for their owner alone"
         " (csync2's issue 9)", client, "patched", True, made)(parent_outside)  # fmt: skip

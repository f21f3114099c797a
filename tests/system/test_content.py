"""Content that never gets to the peer, without a word, with the original (faults N1, N2, N13 to N16)."""

import os

import trees
from harness import case, check
from lab import Lab, binary
from peers import Proxy
from test_faults import PAIRS, ended, make_dirty

LINKS = PAIRS[:2]  # (the client is what notices and sends a link)


def retarget(lab, target):
    """Give node 1's link another target."""
    link = lab.tree(1) / "link"
    link.unlink(missing_ok=True)
    link.symlink_to(target)


def target_on(lab, n):
    link = lab.tree(n) / "link"
    return os.readlink(link) if link.is_symlink() else None


def sync(lab, client, prefix=()):
    for arguments in (("-cr", lab.tree(1)), ("-u",)):
        run = lab.run(binary(client), 1, *arguments, seconds=20, prefix=prefix)
        check(run.returncode == 0, f"{ended(run)}: {run.stderr}")
    return run


# N1: what is on the peer begins like what is to be there


def shortened(context, client, server, good):
    with Lab(context.scratch, tls=False) as lab:
        prefixes = {}
        for n in lab.hosts:
            # from such a directory the original, too, finds a link below %tree% (N2)
            (lab.etc(n) / "%tree%").symlink_to(lab.tree(n))
            prefixes[n] = ("env", "-C", lab.etc(n))
        lab.serve(binary(server), 2, prefix=prefixes[2])
        retarget(lab, "versions/v10")
        sync(lab, client, prefixes[1])
        check(target_on(lab, 2) == "versions/v10", "the link did not arrive in the first place")
        retarget(lab, "versions/v1")
        run = sync(lab, client, prefixes[1])
        if good:
            check(target_on(lab, 2) == "versions/v1", f"the peer's link points to {target_on(lab, 2)}")
        else:
            check(target_on(lab, 2) == "versions/v10", "the fault did not show")
            context.remark(f"seen: {ended(run)}, and the peer's link points to {target_on(lab, 2)}")


case("original: a link from v10 to v1 is taken for up to date (fault N1)", "original", "original", False)(shortened)
for client, server in LINKS:
    case(f"{client} to {server}: a link from v10 to v1 is synced (N1)", client, server, True)(shortened)


# N2: links below a %prefix%


def retargeted(context, client, server, good):
    with Lab(context.scratch, tls=False) as lab:
        lab.serve(binary(server), 2)
        retarget(lab, "one")
        sync(lab, client)
        check(target_on(lab, 2) == "one", "the link did not arrive in the first place")
        retarget(lab, "two")
        run = sync(lab, client)
        if good:
            check(target_on(lab, 2) == "two", f"the peer's link points to {target_on(lab, 2)}")
            test = lab.run(binary(client), 1, "-T", seconds=20)
            check(test.returncode == 2, f"-T finds a difference: {ended(test)} {test.stdout} {test.stderr}")
        else:
            check(target_on(lab, 2) == "one", "the fault did not show")
            context.remark(f"seen: {ended(run)}, and the peer's link points to {target_on(lab, 2)}")


case("original: a link with another target is not noticed (fault N2)", "original", "original", False)(retargeted)
for client, server in LINKS:
    case(f"{client} to {server}: a link with another target is synced (N2)", client, server, True)(retargeted)


@case("patched: the original's database is taken over, its links are not dirty, and are noticed from then on (N2)")
def upgraded(context):
    with Lab(context.scratch, tls=False) as lab:
        server = lab.serve(binary("original"), 2)
        retarget(lab, "one")
        make_dirty(lab, binary("original"), a=b"a file")
        sync(lab, "original")
        server.stop()
        lab.serve(binary("patched"), 2)
        for _ in range(2):
            run = lab.run(binary("patched"), 1, "-cr", lab.tree(1))
            check(run.returncode == 0, f"{ended(run)}: {run.stderr}")
            dirty = lab.run(binary("patched"), 1, "-M")
            check(dirty.returncode == 2, f"dirty after the upgrade: {dirty.stdout}")
        stored = lab.run(binary("patched"), 1, "-L").stdout
        check("target=one" in stored, f"the stored text was not converted: {stored}")
        test = lab.run(binary("patched"), 1, "-T", seconds=20)
        check(test.returncode == 2, f"-T finds a difference: {ended(test)} {test.stdout} {test.stderr}")
        retarget(lab, "two")
        sync(lab, "patched")
        check(target_on(lab, 2) == "two", f"the peer's link points to {target_on(lab, 2)}")


# N13: long targets


def long_target(context, client, server, target, good):
    with Lab(context.scratch, tls=False) as lab:
        lab.serve(binary(server), 2)
        retarget(lab, target)
        run = sync(lab, client)
        arrived = target_on(lab, 2)
        if good:
            check(arrived == target, f"the peer's link has a target of {len(arrived or '')} bytes")
            check(lab.run(binary(client), 1, "-T", seconds=20).returncode == 2, "-T finds a difference")
        else:
            check(arrived == target[:1023], f"the fault did not show: {len(arrived or '')} bytes arrived")
            context.remark(f"seen: {ended(run)}, {len(arrived)} bytes of the target arrived")


case("original: a link's target of 1500 bytes is cut (fault N13)", "original", "original", "x" * 1500, False)(long_target)
for client, server in LINKS:
    case(f"{client} to {server}: a link's target of 1500 bytes (N13)", client, server, "x" * 1500, True)(long_target)
case("patched to patched: a link's target of 4095 bytes that are all escaped (N13)",
     "patched", "patched", "$" * 4095, True)(long_target)  # fmt: skip


# N14: devices


def device(context, client, server, good):
    """Node 1's prefix dev is /dev. Whether or not the peer is permitted to make a device: it is told which."""
    told = []

    def listen(upwards, data, _total):
        if upwards and data.startswith(b"MKCHR "):
            told.append(data.split()[3:])
        return data

    with Lab(context.scratch, tls=False, config="include %dev%/null;") as lab:
        for n in lab.hosts:
            (lab.etc(n) / "dev").mkdir()
            config = lab.etc(n) / "csync2.cfg"
            config.write_text(f'prefix dev {{ on {lab.hosts[1]}: "/dev"; on *: "{lab.etc(2)}/dev"; }}\n' + config.read_text())
        lab.serve(binary(server), 2, port=lab.port + 1)
        lab.run(binary(client), 1, "-c", "/dev/null")
        with Proxy(lab, 2, lab.port + 1, listen):
            lab.run(binary(client), 1, "-u", seconds=20)
        number = os.stat("/dev/null").st_rdev
        made = lab.etc(2) / "dev" / "null"
        if good:
            check(told == [[str(number).encode()]], f"told: {told}")
            check(not made.exists() or made.stat().st_rdev == number, "another device was made")
        else:
            check(told == [[]], f"the fault did not show: {told}")
            context.remark("seen: MKCHR without a number" + (", device 0 was made" if made.exists() else ""))


case("original: devices are sent without their number (fault N14)", "original", "original", False)(device)
for client, server in LINKS:
    case(f"{client} to {server}: devices are sent with their number (N14)", client, server, True)(device)


# N15, N16: a file that cannot be looked at (strace says so)


def looking(path, error, call=""):
    """A run that gets this error where it looks at the file; with call, for that call only."""
    calls = "newfstatat,lstat"
    return ("strace", "-f", "-o", "/dev/null", "-P", path, "-e", f"trace={calls}", "-e", f"inject={calls}:error={error}{call}")


def vanished(context, client, error, good):
    """The second of three new files has gone when the check comes to it, or cannot be looked at."""
    with Lab(context.scratch, tls=False) as lab:
        for name in ("a", "b", "c"):
            trees.write(lab.tree(1) / name, b"content", trees.EPOCH)
        run = lab.run(binary(client), 1, "-cr", lab.tree(1), prefix=looking(lab.tree(1) / "b", error))
        dirty = lab.run(binary(client), 1, "-M").stdout
        found = [name for name in ("a", "b", "c") if f"%tree%/{name}\n" in dirty]
        if good:
            check(found == ["a", "c"], f"found: {found}: {run.stderr}")
            check(run.returncode == (0 if error == "ENOENT" else 1), f"{ended(run)}: {run.stderr}")
            check(error == "ENOENT" or "%tree%/b" in run.stderr, f"the file is not named: {run.stderr}")
        else:
            check(run.returncode == 1 and found != ["a", "c"], f"the fault did not show: {ended(run)}, {found}")
            context.remark(f"seen: {ended(run)}, {run.stderr.splitlines()[-1:]}; found: {', '.join(found) or 'nothing'}")


for error, what in (("ENOENT", "vanishes during"), ("EIO", "cannot be looked at in")):
    case(f"original: a file that {what} a check ends it (fault N15)", "original", error, False)(vanished)
    case(f"patched: a file that {what} a check, the next file is checked (N15)", "patched", error, True)(vanished)


def taken_for_deleted(context, client, server, good):
    """A file that is in sync, and there, but cannot be looked at during the next run."""
    with Lab(context.scratch, tls=False) as lab:
        make_dirty(lab, binary(client), a=b"one", b=b"two")
        lab.serve(binary(server), 2)
        check(lab.run(binary(client), 1, "-u", seconds=20).returncode == 0, "the first run failed")
        runs = [lab.run(binary(client), 1, *arguments, seconds=20, prefix=looking(lab.tree(1) / "b", "EIO"))
                for arguments in (("-cr", "/"), ("-u",))]  # fmt: skip
        there = (lab.tree(2) / "b").exists()
        if good:
            check(there, "the file was deleted on the peer")
            check(runs[0].returncode == 1 and "%tree%/b" in runs[0].stderr, f"{ended(runs[0])}: {runs[0].stderr}")
            dirty = lab.run(binary(client), 1, "-M").stdout
            check(not dirty, f"dirty afterwards: {dirty}")
        else:
            check(not there, f"the fault did not show: {[r.stderr for r in runs]}")
            context.remark(f"seen: {' and '.join(map(ended, runs))}, and the file was deleted on the peer")


case("original: a file that cannot be looked at is deleted on the peers (fault N16)",
     "original", "original", False)(taken_for_deleted)  # fmt: skip
for client, server in LINKS:
    case(f"{client} to {server}: a file that cannot be looked at stays on the peers (N16)",
         client, server, True)(taken_for_deleted)  # fmt: skip

"""Trees to synchronise: made from a seed, changed from a seed, compared by digest."""

import hashlib
import os
import random
import stat

MIB = 1 << 20
EPOCH = 1_700_000_000

ODD_NAMES = [
    "name with spaces", " leading and trailing ", "it's \"quoted\"", "back\\slash", "semi;colon & $HOME `x` | > <",
    "grüße-日本語-☃", "percent%20sign", "#hash", "-rf", "star*?[x]", "a=b,c:d@e", "new~tilde", "x" * 240, "tab\there",
]  # fmt: skip


def write(path, content, when):
    """Write a file with a time stamp of its own (csync2 counts in seconds)."""
    with open(path, "wb") as file:
        file.write(content)
    os.utime(path, (when, when))


def write_random(path, size, chance, when):
    """As write(), for a large file of random bytes."""
    with open(path, "wb") as file:
        for start in range(0, size, MIB):
            file.write(chance.randbytes(min(MIB, size - start)))
    os.utime(path, (when, when))


def make_mixed(top, small=1800, large=(32, 16, 24), seed=1):
    """A tree like a real one: many small files, a few large (sizes in MiB), all sorts of names and types."""
    chance, root = random.Random(seed), os.geteuid() == 0
    top = os.fspath(top)
    for i in range(small):
        directory = f"{top}/srv/{i % 7}/app-{i % 60:02}"
        os.makedirs(directory, exist_ok=True)
        size = 0 if i % 50 == 0 else min(int(chance.paretovariate(0.9) * 700), 200_000)
        path = f"{directory}/file-{i:05}.conf"
        write(path, chance.randbytes(size), EPOCH + i)
        if i % 4 == 0:
            os.chmod(path, chance.choice([0o600, 0o640, 0o755, 0o4755, 0o444 if root else 0o664]))
        if root and i % 9 == 0:
            os.chown(path, 1000 + i % 5, 2000 + i % 3)
            os.utime(path, (EPOCH + i, EPOCH + i))
    os.makedirs(f"{top}/odd names")
    for i, name in enumerate(ODD_NAMES):
        write(f"{top}/odd names/{name}", chance.randbytes(100 * i), EPOCH + i)
        os.makedirs(f"{top}/odd names/dir {name[:200]}")
        write(f"{top}/odd names/dir {name[:200]}/inside", b"one level down\n", EPOCH + i)
    os.makedirs(f"{top}/images")
    for i, size in enumerate(large):
        write_random(f"{top}/images/disk{i}.img", size * MIB + i, chance, EPOCH + i)
    # sizes on both sides of what the transfer cuts into: blocks of 2 KiB, pieces of 16 KiB
    os.makedirs(f"{top}/edges")
    for size in (0, 1, 511, 512, 513, 2047, 2048, 2049, 16383, 16384, 16385, 65536, MIB - 1, MIB + 1):
        write(f"{top}/edges/{size}", chance.randbytes(size), EPOCH + size)
    write(f"{top}/edges/zeroes", bytes(3 * MIB), EPOCH)
    for i in range(20):
        os.makedirs(f"{top}/empty/directory {i}/nested", mode=0o750 if i % 2 else 0o755)
    os.makedirs(f"{top}/links")
    os.symlink("../images/disk0.img", f"{top}/links/relative")
    os.symlink("/nowhere/at/all", f"{top}/links/dangling")
    os.symlink("../odd names", f"{top}/links/to a directory")


def change_mixed(top, seed=2):
    """What a day of work does to such a tree: edits, truncation, growth, replacement, deletion, renaming."""
    chance, when = random.Random(seed), EPOCH + 1_000_000
    top = os.fspath(top)
    small = sorted(f"{d}/{name}" for d, _, names in os.walk(f"{top}/srv") for name in names)
    chance.shuffle(small)
    per_kind = max(1, len(small) // 40)
    take = lambda: [small.pop() for _ in range(per_kind)]  # noqa: E731

    for path in take():  # edited in place
        edit(path, chance, pieces=1, length=40, when=when)
    for path in take():  # grown
        with open(path, "ab") as file:
            file.write(chance.randbytes(3000))
        os.utime(path, (when, when))
    for path in take():  # cut short, some to nothing
        os.truncate(path, os.path.getsize(path) // chance.choice([2, 3, 10**9]))
        os.utime(path, (when, when))
    for path in take():  # replaced by something else
        write(path, chance.randbytes(chance.randrange(20_000)), when)
    for path in take():  # renamed
        os.rename(path, path + ".renamed")
    for path in take():  # other rights
        os.chmod(path, 0o604)
    for path in take():  # touched and nothing else
        os.utime(path, (when, when))
    for path in take():  # deleted
        os.unlink(path)
    for directory, _, names in os.walk(f"{top}/odd names/dir name with spaces", topdown=False):
        for name in names:
            os.unlink(f"{directory}/{name}")
        os.rmdir(directory)
    os.unlink(f"{top}/links/dangling")
    os.symlink("disk1.img", f"{top}/images/newest")
    for i in range(per_kind):
        os.makedirs(f"{top}/fresh/{i % 5}", exist_ok=True)
        write(f"{top}/fresh/{i % 5}/new {i}", chance.randbytes(chance.randrange(9000)), when)

    edit(f"{top}/images/disk0.img", chance, pieces=25, length=10_000, when=when)
    first, last = f"{top}/images/disk1.img", f"{top}/images/disk2.img"
    insert(first, chance, when)
    write_random(last, os.path.getsize(last), chance, when)
    edit(f"{top}/edges/zeroes", chance, pieces=1, length=1, when=when)


def touch_mixed(top):
    """New times for a third of the small files and for a large one, and no other change."""
    when, top = EPOCH + 2_000_000, os.fspath(top)
    for directory, _, names in os.walk(f"{top}/srv"):
        for name in sorted(names)[::3]:
            os.utime(f"{directory}/{name}", (when, when))
    os.utime(f"{top}/images/disk0.img", (when, when))


def edit(path, chance, pieces, length, when):
    """Overwrite a few places of a file, its size unchanged."""
    size = os.path.getsize(path)
    with open(path, "r+b") as file:
        for _ in range(pieces):
            file.seek(chance.randrange(max(1, size - length)))
            file.write(chance.randbytes(min(length, size)))
    os.utime(path, (when, when))


def insert(path, chance, when):
    """Put some bytes into the middle and cut off the end: everything behind the middle moves."""
    with open(path, "rb") as file:
        content = file.read()
    middle = len(content) // 2
    write(path, content[:middle] + chance.randbytes(1001) + content[middle:-5000], when)


def digest(top):
    """Everything that has to arrive: path -> (type, mode, owner, group, content, time of files)."""
    top, entries = os.fsencode(top), {}
    for directory, directories, files in os.walk(top):
        for name in directories + files:
            path = os.path.join(directory, name)
            entries[os.path.relpath(path, top)] = describe(path)
    return entries


def describe(path):
    found = os.lstat(path)
    kind, owner = stat.S_IFMT(found.st_mode), (found.st_uid, found.st_gid)
    if stat.S_ISLNK(found.st_mode):
        return kind, None, owner, os.readlink(path), None
    if not stat.S_ISREG(found.st_mode):
        return kind, stat.S_IMODE(found.st_mode), owner, None, None
    with open(path, "rb") as file:
        content = hashlib.file_digest(file, "blake2b").hexdigest()
    return kind, stat.S_IMODE(found.st_mode), owner, content, int(found.st_mtime)


def differences(one, other):
    """A line for each path where two digests differ; none when they are equal."""
    lines = []
    for path in sorted(one.keys() | other.keys()):
        here, there = one.get(path), other.get(path)
        if here is None or there is None:
            lines.append(f"{os.fsdecode(path)!r} is {'extra' if here is None else 'missing'}")
        elif here != there:
            fields = zip(("type", "mode", "owner", "content", "time"), here, there)
            what = ", ".join(f"{name} {str(a)[:20]} / {str(b)[:20]}" for name, a, b in fields if a != b)
            lines.append(f"{os.fsdecode(path)!r} differs: {what}")
    return lines


def measure(top):
    """How many files there are, and how many bytes in them."""
    count = size = 0
    for directory, _, files in os.walk(top):
        for name in files:
            found = os.lstat(os.path.join(directory, name))
            count, size = count + 1, size + (found.st_size if stat.S_ISREG(found.st_mode) else 0)
    return count, size

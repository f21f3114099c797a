"""What a csync2 process did, as strace saw it: files made, bytes written, pieces sent."""

import os
import re

TRACE = (
    "open,openat,openat2,creat,rename,renameat,renameat2,link,linkat,symlink,symlinkat,mkdir,mkdirat,mknod,mknodat,"
    "unlink,unlinkat,write,writev,pwrite64,pwritev,copy_file_range,sendfile,ftruncate,fallocate,send,sendto,sendmsg,fsync,fdatasync,alarm"
)
CALL = re.compile(r"^(?:\d+ +)?(\w+)\((.*)\) += (-?\d+)(?:<(.*)>(?:\(deleted\))?)?(?: .*)?$")
UNFINISHED = re.compile(r"^(\d+) +(.*) <unfinished \.\.\.>$")
RESUMED = re.compile(r"^(\d+) +<\.\.\. \w+ resumed>(.*)$")
DESCRIPTOR = re.compile(r"^(\d+|AT_FDCWD)<((?:->|[^>])*)>")
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
SENDS = {"write", "writev", "send", "sendto", "sendmsg"}
WRITES = {"write", "writev", "pwrite64", "pwritev", "copy_file_range", "sendfile"}


def strace(output):
    """The command line that puts strace before a program."""
    return ["strace", "-f", "-yy", "-s", "0", "-e", f"trace={TRACE}", "-e", "signal=none", "-o", str(output)]


def calls(output):
    """(name, arguments, result, annotation of the result) of every call that returned."""
    pending = {}
    with open(output, encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            line = line.rstrip("\n")
            if found := UNFINISHED.match(line):
                pending[found[1]] = found[2]
                continue
            if found := RESUMED.match(line):
                line = f"{found[1]} {pending.pop(found[1], '')}{found[2]}"
            if found := CALL.match(line):
                yield found[1], found[2], int(found[3]), found[4]


class Trace:
    """The sums of a trace: what was made below `top`, and what was written to any file but those of the
    node itself (`own`: its database, its log)."""

    def __init__(self, output, top, own):
        self.created, self.renamed, self.sent, self.written, self.synced, self.alarms = [], [], [], 0, 0, 0
        self.top, self.own = os.fspath(top), tuple(map(os.fspath, own))
        for name, arguments, result, annotation in calls(output):
            if result >= 0:
                self._account(name, arguments, result, annotation)

    def _account(self, name, arguments, result, annotation):
        if name == "alarm":
            self.alarms += 1
        elif name in ("open", "openat", "openat2", "creat"):
            if "O_CREAT" in arguments or "O_TMPFILE" in arguments or name == "creat":
                self._made(self._paths(arguments)[0], unnamed="O_TMPFILE" in arguments)
        elif name.startswith(("rename", "link")):
            old, new = self._paths(arguments)[:2]
            if name.startswith("rename"):
                self.renamed.append((old, new))
            else:
                self._made(new)
        elif name.startswith(("mkdir", "mknod", "symlink")):
            self._made(self._paths(arguments)[-1])
        elif name in ("fsync", "fdatasync"):
            self.synced += 1
        else:
            self._wrote(name, arguments, result)

    def _made(self, path, unnamed=False):
        if path.startswith(self.top):
            self.created.append((path, unnamed))

    def _wrote(self, name, arguments, result):
        target = self._target(name, arguments)
        if target.startswith(("TCP", "socket:", "UNIX")):
            if name in SENDS and target.startswith(("TCP", "socket:")):
                self.sent.append(result)
        elif name in WRITES and target.startswith("/") and not target.startswith((*self.own, "/dev/null")):
            self.written += result

    @staticmethod
    def _target(name, arguments):
        """The annotation of the descriptor that is written to."""
        if name == "copy_file_range":  # the third argument, behind the first descriptor and its offset
            arguments = re.sub(r"^\d+<(?:->|[^>])*>, [^,]+, ", "", arguments)
        found = DESCRIPTOR.match(arguments)
        return found[2] if found else ""

    @staticmethod
    def _paths(arguments):
        """The paths among the arguments, made absolute with the directory before each."""
        paths, directory = [], ""
        for part in re.findall(r'(?:\d+|AT_FDCWD)<(?:->|[^>])*>|"(?:[^"\\]|\\.)*"', arguments):
            if part.startswith('"'):
                paths.append(os.path.join(directory, part[1:-1]))
            else:
                directory = DESCRIPTOR.match(part)[2]
        return paths

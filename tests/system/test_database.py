"""csync2's database: what a csync2 that was killed leaves of it (fault N17)."""

import contextlib
import sqlite3

import trees
from harness import case, check
from lab import Lab, binary
from test_faults import arrived, ended


def made_in_part(context, variant, good):
    """The tables are made one after the other at the first use; here that ended after the first one."""
    with Lab(context.scratch, tls=False) as lab:
        trees.write(lab.tree(1) / "file", b"content", trees.EPOCH)
        name = lab.database(1) / f"{lab.hosts[1]}.db3"
        with contextlib.closing(sqlite3.connect(name)) as database, database:
            database.execute("CREATE TABLE file (filename, checktxt, UNIQUE ( filename ) ON CONFLICT REPLACE)")
        lab.serve(binary(variant), 2)
        runs = [lab.run(binary(variant), 1, *arguments) for arguments in (["-cr", lab.tree(1)], ["-u"])]
        whole = all(run.returncode == 0 for run in runs) and arrived(lab, 2, "file")
        context.remark(f"the client: {', '.join(map(ended, runs))}, the file arrived: {arrived(lab, 2, 'file')}")
        check(whole == good, "the run failed" if good else "the fault did not show")


case("original: a database made in part ends every run (fault N17)", "original", False)(made_in_part)
case("patched: a database made in part is made whole (N17)", "patched", True)(made_in_part)

"""What the daemon answers and reports when a command has failed, and what the client makes of it (faults N3 to N10)."""

from harness import case, check
from lab import Lab, LabError, binary
from test_faults import PAIRS, arrived, ended, make_dirty

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

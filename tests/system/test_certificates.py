"""Whose certificate is taken (faults C9, C12)."""

from harness import case, check
from lab import Lab, binary, credentials
from test_faults import PAIRS, arrived, ended, make_dirty


def use(lab, n, key, certificate):
    """Give node n a key and a certificate."""
    (lab.etc(n) / "csync2_ssl_key.pem").write_bytes(key)
    (lab.etc(n) / "csync2_ssl_cert.pem").write_bytes(certificate)


# C9: certificates with names of their own


def own_names(context, client, server, good):
    with Lab(context.scratch, tls=True) as lab:
        for n in lab.hosts:
            use(lab, n, *credentials(n, f"/O=csync2 laboratory/CN=node{n}"))
        make_dirty(lab, binary(client), a=b"first")
        lab.serve(binary(server), 2)
        run = lab.run(binary(client), 1, "-u", seconds=20)
        if good:
            check(run.returncode == 0 and arrived(lab, 2, "a"), f"{ended(run)}: {run.stderr}")
        else:
            check(run.returncode != 0 and not arrived(lab, 2, "a"), f"the fault did not show: {ended(run)}")
            context.remark(f"seen: {ended(run)} {' '.join(run.stderr.splitlines()[-1:])}")


case("original: two nodes whose certificates have names of their own (fault C9)",
     "original", "original", False)(own_names)  # fmt: skip
for client, server in PAIRS:
    case(f"{client} to {server}: two nodes whose certificates have names of their own (C9)",
         client, server, True)(own_names)  # fmt: skip

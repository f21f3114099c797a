//! Files that librsync's `rdiff` made, kept in `tests/golden` under the names of their parameters: these
//! formats do not move, whatever is installed.

#[path = "common/rdiff.rs"]
mod common;

use std::path::{Path, PathBuf};

use common::{Rdiff, delta, noise, patch, signature};
use csync_rs::rdiff::{SignatureHeader, StrongKind, WeakKind};

fn headers() -> impl Iterator<Item = SignatureHeader> {
    let parameters = [(64, 16), (512, 8), (2048, 16), (700, 1), (512, 32)];
    let kinds = [
        (WeakKind::Rollsum, StrongKind::Md4),
        (WeakKind::Rollsum, StrongKind::Blake2),
        (WeakKind::RabinKarp, StrongKind::Md4),
        (WeakKind::RabinKarp, StrongKind::Blake2),
    ];
    kinds.into_iter().flat_map(move |(weak, strong)| {
        parameters
            .into_iter()
            .filter(move |&(_, strong_len)| strong_len <= strong.max_len())
            .map(move |(block_len, strong_len)| SignatureHeader {
                weak,
                strong,
                block_len,
                strong_len,
            })
    })
}

/// For example `rollsum-md4-block2048-sum16.delta`.
fn path(header: SignatureHeader, what: &str) -> PathBuf {
    let name = format!(
        "{:?}-{:?}-block{}-sum{}.{what}",
        header.weak, header.strong, header.block_len, header.strong_len
    );
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name.to_lowercase())
}

fn basis() -> Vec<u8> {
    noise(7, 9000)
}

fn source() -> Vec<u8> {
    let basis = basis();
    [
        &basis[3000..],
        b"something new",
        &basis[..4096],
        &basis[100..5000],
    ]
    .concat()
}

#[test]
fn golden_files() {
    let (basis, source) = (basis(), source());
    for header in headers() {
        let golden = |what| std::fs::read(path(header, what)).expect("a golden file");
        assert!(
            signature(header, &basis) == golden("signature"),
            "{header:?}"
        );
        let theirs = golden("delta");
        assert!(
            patch(&basis, &theirs, 100).expect("a good delta") == source,
            "{header:?}"
        );
        let ours = delta(&golden("signature"), &source);
        assert!(
            patch(&basis, &ours, 100).expect("a good delta") == source,
            "{header:?}"
        );
        assert!(
            ours.len() <= theirs.len() + theirs.len() / 100,
            "{header:?}"
        );
    }
}

/// Makes them anew: `cargo test --test rdiff_golden -- --ignored`.
#[test]
#[ignore = "writes the files that the other test reads"]
fn write_golden_files() {
    let (rdiff, basis, source) = (Rdiff::new(), basis(), source());
    for header in headers() {
        let signature = rdiff.signature(header, &basis);
        let delta = rdiff.delta(&signature, &source).expect("a delta");
        std::fs::write(path(header, "signature"), &signature).expect("a golden file");
        std::fs::write(path(header, "delta"), &delta).expect("a golden file");
    }
}

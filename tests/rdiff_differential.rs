//! Byte for byte against librsync's `rdiff`: our signatures are its signatures, our deltas make the right
//! file in its hands, and its deltas in ours.

#[path = "common/rdiff.rs"]
mod common;

use common::{Rdiff, delta, kinds, noise, patch, signature};
use csync_rs::rdiff::{SignatureHeader, StrongKind, WeakKind};

/// The lengths at which something changes, for blocks of `block` bytes.
fn lengths(block: usize, longest: usize) -> Vec<usize> {
    let mut lengths = vec![
        0,
        1,
        2,
        3,
        block - 1,
        block,
        block + 1,
        3 * block + 7,
        longest,
    ];
    lengths.sort_unstable();
    lengths.dedup();
    lengths
}

/// A source of `len` bytes that has much in common with any basis cut from `base`.
fn mixture(base: &[u8], block: usize, len: usize) -> Vec<u8> {
    let mut source = Vec::new();
    // A shift, a byte changed in the middle, a part moved, and the end of the base.
    source.extend_from_slice(b"+++");
    source.extend_from_slice(&base[..base.len().min(2 * block + 5)]);
    source.extend_from_slice(&base[base.len() / 3..]);
    source.truncate(len);
    if let Some(byte) = source.get_mut(len / 2) {
        *byte ^= 0x55;
    }
    let missing = len - source.len();
    source.extend_from_slice(&base[base.len() - missing..]);
    source
}

fn check_signature(rdiff: &Rdiff, header: SignatureHeader, basis: &[u8]) -> Vec<u8> {
    let ours = signature(header, basis);
    assert!(
        ours == rdiff.signature(header, basis),
        "signature of {} bytes, {header:?}",
        basis.len()
    );
    ours
}

fn check_delta(rdiff: &Rdiff, header: SignatureHeader, basis: &[u8], sig: &[u8], source: &[u8]) {
    let what = format!("{} bytes to {}, {header:?}", basis.len(), source.len());
    let ours = delta(sig, source);
    assert!(patch(basis, &ours, 1000).expect(&what) == source, "{what}");
    assert!(rdiff.patch(basis, &ours).expect(&what) == source, "{what}");
    let theirs = rdiff.delta(sig, source).expect(&what);
    assert!(patch(basis, &theirs, 777).expect(&what) == source, "{what}");
    let most = theirs.len() + theirs.len() / 100;
    assert!(
        ours.len() <= most,
        "{} > {}: {what}",
        ours.len(),
        theirs.len()
    );
}

fn all_pairs(header: SignatureHeader, longest: usize) {
    let rdiff = Rdiff::new();
    let block = header.block_len as usize;
    let base = noise(block as u64, longest.max(3 * block + 7));
    for basis_len in lengths(block, longest) {
        let basis = &base[..basis_len];
        let sig = check_signature(&rdiff, header, basis);
        for (i, source_len) in lengths(block, longest).into_iter().enumerate() {
            // By turns the plain beginning of the same bytes, and a mixture of parts of them.
            let source = if (i + basis_len) % 2 == 0 {
                base[..source_len].to_vec()
            } else {
                mixture(&base, block, source_len)
            };
            check_delta(&rdiff, header, basis, &sig, &source);
        }
    }
}

fn all_pairs_of_kind(kind: usize) {
    // librsync reads four blocks at a time, whatever their length.
    for (block_len, longest) in [
        (1, 5_000),
        (2, 10_000),
        (7, 30_000),
        (512, 1_000_003),
        (2048, 1_000_003),
        (65536, 1_000_003),
    ] {
        all_pairs(kinds(block_len)[kind], longest);
    }
}

#[test]
fn rollsum_md4() {
    all_pairs_of_kind(0);
}

#[test]
fn rollsum_blake2() {
    all_pairs_of_kind(1);
}

#[test]
fn rabin_karp_md4() {
    all_pairs_of_kind(2);
}

#[test]
fn rabin_karp_blake2() {
    all_pairs_of_kind(3);
}

#[test]
fn csync2_signature_of_a_megabyte() {
    let basis = noise(1, 1_000_003);
    check_signature(&Rdiff::new(), SignatureHeader::CSYNC2, &basis);
}

#[test]
fn a_megabyte_in_tiny_blocks() {
    let rdiff = Rdiff::new();
    let base = noise(2, 1_000_003);
    for block_len in [1, 2, 7] {
        let header = SignatureHeader {
            block_len,
            ..SignatureHeader::CSYNC2
        };
        let sig = check_signature(&rdiff, header, &base);
        let edited = mixture(&base, block_len as usize, 900_000);
        check_delta(&rdiff, header, &base, &sig, &edited);
    }
}

#[test]
fn strong_sums_of_every_length() {
    let rdiff = Rdiff::new();
    let base = noise(3, 100_000);
    let edited = mixture(&base, 2048, 90_000);
    for strong in [StrongKind::Md4, StrongKind::Blake2] {
        for weak in [WeakKind::Rollsum, WeakKind::RabinKarp] {
            for strong_len in 1..=strong.max_len() {
                let header = SignatureHeader {
                    weak,
                    strong,
                    strong_len,
                    block_len: 2048,
                };
                let sig = check_signature(&rdiff, header, &base);
                check_delta(&rdiff, header, &base, &sig, &edited);
            }
        }
    }
}

/// Files in which many blocks are equal, or equal but for their place.
#[test]
fn monotonous_files() {
    let rdiff = Rdiff::new();
    let zeroes = vec![0; 300_001];
    let ones = vec![0xff; 280_000];
    let short: Vec<u8> = b"abc".iter().copied().cycle().take(250_000).collect();
    let long: Vec<u8> = noise(4, 2048).into_iter().cycle().take(260_000).collect();
    let holes = [&zeroes[..100_000], &noise(5, 5_000), &zeroes[..90_000]].concat();
    let files = [&zeroes, &ones, &short, &long, &holes];
    for header in kinds(2048).into_iter().chain(kinds(700)) {
        for basis in files {
            let sig = check_signature(&rdiff, header, basis);
            for source in files {
                check_delta(&rdiff, header, basis, &sig, source);
            }
        }
    }
}

/// What librsync refuses of our making: a delta that ends in the reserved command.
#[test]
fn librsync_refuses_the_reserved_command() {
    let basis = noise(6, 10_000);
    let mut bad = delta(&signature(SignatureHeader::CSYNC2, &basis), &basis[..5000]);
    let rdiff = Rdiff::new();
    assert!(rdiff.patch(&basis, &bad).is_some());
    bad.pop();
    bad.push(csync_rs::rdiff::RESERVED_OPCODE);
    assert!(rdiff.patch(&basis, &bad).is_none());
}

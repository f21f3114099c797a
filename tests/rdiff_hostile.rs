//! Signatures, deltas and sources that mean ill: an error or the right result, in bounded time and memory.

#[path = "common/rdiff.rs"]
mod common;

use std::io::{ErrorKind, Read};

use common::{delta, delta_bytes, index, kinds, noise, patch, signature};
use csync_rs::rdiff::rollsum::{Rollsum, WeakSum};
use csync_rs::rdiff::{
    DeltaError, DeltaPlan, FormatError, IndexBuilder, PatchError, PlanItem, SignatureHeader,
};
use proptest::prelude::*;

fn forged(blocks: u32, mut record: impl FnMut(u32) -> (u32, [u8; 16])) -> Vec<u8> {
    let mut bytes = SignatureHeader::CSYNC2.encode().to_vec();
    for block in 0..blocks {
        let (weak, strong) = record(block);
        bytes.extend_from_slice(&weak.to_be_bytes());
        bytes.extend_from_slice(&strong);
    }
    bytes
}

/// Finds nothing. What the search does meanwhile is counted in `rdiff::search`; a search without a bound hashes
/// 8 GB and more here, and does not come back within the time that anybody waits.
fn no_match(signature: &[u8], source: &[u8]) {
    let index = index(signature);
    let plan = DeltaPlan::scan(&index, &mut &source[..], source.len() as u64, 0).expect("a plan");
    let len = source.len() as u64;
    assert!(plan.items().eq([PlanItem::Streamed { offset: 0, len }]));
}

#[test]
fn a_weak_sum_at_every_offset_of_the_source() {
    let source = vec![0; 16 << 20];
    let weak = Rollsum::of(&source[..2048]).digest();
    no_match(&forged(1, |_| (weak, [7; 16])), &source);
}

#[test]
fn a_million_equal_weak_sums() {
    let source = vec![0; 8 << 20];
    let weak = Rollsum::of(&source[..2048]).digest();
    let mut strong = 0u128;
    let signature = forged(1 << 20, |_| {
        strong = strong.wrapping_mul(0xda94_2042_e4dd_58b5).wrapping_add(1);
        (weak, strong.to_be_bytes())
    });
    no_match(&signature, &source);
}

#[test]
fn a_million_equal_blocks() {
    let basis = vec![0; 2048];
    let record = signature(SignatureHeader::CSYNC2, &basis)[12..].to_vec();
    let mut strong = [0; 16];
    strong.copy_from_slice(&record[4..]);
    let weak = Rollsum::of(&basis).digest();
    let signature = forged(1 << 20, |_| (weak, strong));
    let source = vec![0; 3 << 20];
    let index = index(&signature);
    let plan = DeltaPlan::scan(&index, &mut &source[..], 3 << 20, 0).expect("a plan");
    let len = 3 << 20;
    assert!(plan.items().eq([PlanItem::Copy { offset: 0, len }]));
    assert!(index.memory() <= 32 << 20);
}

/// A forged signature may spoil the search where it is forged, not elsewhere.
#[test]
fn an_honest_part_is_found_behind_a_forged_one() {
    let basis = noise(1, 1 << 20);
    let zeroes = vec![0; 4 << 20];
    let mut bytes = signature(SignatureHeader::CSYNC2, &basis);
    let weak = Rollsum::of(&zeroes[..2048]).digest();
    bytes.extend_from_slice(&weak.to_be_bytes());
    bytes.extend_from_slice(&[7; 16]);
    let source = [&zeroes[..], &basis, &zeroes].concat();
    let plan =
        DeltaPlan::scan(&index(&bytes), &mut &source[..], source.len() as u64, 0).expect("a plan");
    assert!(plan.delta_len() < (8 << 20) + 4096, "{}", plan.delta_len());
}

/// The window is not sized by a block length from the peer.
#[test]
fn blocks_longer_than_any_memory() {
    for header in kinds(i32::MAX as u32) {
        let basis = noise(2, 10_000);
        let bytes = signature(header, &basis);
        assert!(delta(&bytes, &basis).len() <= 10_010);
        let mut source = noise(2, 100_000);
        let plan =
            DeltaPlan::scan(&index(&bytes), &mut &source[..], 1 << 40, 1000).expect("a plan");
        assert_eq!(plan.source_len(), 1 << 40);
        source.truncate(500);
        assert!(patch(&basis, &delta(&bytes, &source), 10).expect("a good delta") == source);
    }
}

/// A list of commands is bounded even if each byte of the source is a command.
#[test]
fn a_signature_that_wants_a_command_for_each_byte() {
    let header = SignatureHeader {
        block_len: 1,
        ..SignatureHeader::CSYNC2
    };
    let basis: Vec<u8> = (0..=255).collect();
    let source = noise(3, 2 << 20);
    let plan = DeltaPlan::scan(
        &index(&signature(header, &basis)),
        &mut &source[..],
        source.len() as u64,
        0,
    )
    .expect("a plan");
    assert!(plan.memory() < 80 << 20);
    assert!(patch(&basis, &delta_bytes(&plan, &source), 65536).expect("a good delta") == source);
}

/// Errors come from the reader, a source that grows is not followed, one that shrinks is noticed.
#[test]
fn sources_that_fail_grow_and_shrink() {
    struct Failing(usize);
    impl Read for Failing {
        fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
            if self.0 == 0 {
                return Err(ErrorKind::Other.into());
            }
            let len = self.0.min(buf.len());
            self.0 -= len;
            buf[..len].fill(1);
            Ok(len)
        }
    }
    struct Interrupted<'d>(&'d [u8], bool);
    impl Read for Interrupted<'_> {
        fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
            self.1 = !self.1;
            if self.1 {
                return Err(ErrorKind::Interrupted.into());
            }
            let len = buf.len().min(1000);
            self.0.read(&mut buf[..len])
        }
    }
    let basis = noise(4, 300_000);
    let index = index(&signature(SignatureHeader::CSYNC2, &basis));
    let len = basis.len() as u64;
    for good in [0, 1, 5000, 299_999] {
        let error = DeltaPlan::scan(&index, &mut Failing(good), len, 1 << 20).expect_err("fails");
        assert!(matches!(error, DeltaError::Source(e) if e.kind() == ErrorKind::Other));
    }
    let grown = [&basis[..], b"more"].concat();
    let plan = DeltaPlan::scan(&index, &mut &grown[..], len, 0).expect("a plan");
    assert!(plan.items().eq([PlanItem::Copy { offset: 0, len }]));
    let plan = DeltaPlan::scan(&index, &mut &basis[..250_000], len, 0).expect("a plan");
    assert_eq!(plan.source_len(), 250_000);
    let mut interrupted = Interrupted(&basis, false);
    let plan = DeltaPlan::scan(&index, &mut interrupted, len, 0).expect("a plan");
    assert!(plan.items().eq([PlanItem::Copy { offset: 0, len }]));
}

/// Without a basis nothing is searched for, and nothing is read that is not kept.
#[test]
fn an_empty_basis() {
    struct Untouched;
    impl Read for Untouched {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            panic!("nobody should read this");
        }
    }
    let index = index(&signature(SignatureHeader::CSYNC2, &[]));
    let plan = DeltaPlan::scan(&index, &mut Untouched, 1 << 33, 64 << 20).expect("a plan");
    assert_eq!(plan.items().count(), 8);
    let source = noise(5, 600_000);
    let plan = DeltaPlan::scan(&index, &mut &source[..], 600_000, 600_000).expect("a plan");
    assert!(plan.items().eq([PlanItem::Captured(&source)]));
    let plan = DeltaPlan::scan(&index, &mut &source[..1000], 600_000, 600_000).expect("a plan");
    assert!(plan.items().eq([PlanItem::Captured(&source[..1000])]));
}

/// A false match of the short last block would copy what is not there; the patch refuses it.
#[test]
fn a_copy_of_more_than_the_last_block_has() {
    let basis = noise(6, 5000);
    let whole = signature(SignatureHeader::CSYNC2, &noise(7, 2048))[12..].to_vec();
    let mut bytes = signature(SignatureHeader::CSYNC2, &basis);
    let last = bytes.len() - whole.len();
    bytes[last..].copy_from_slice(&whole);
    let delta = delta(&bytes, &noise(7, 2048));
    let error = patch(&basis, &delta, 100).expect_err("beyond the basis");
    assert!(matches!(error, PatchError::BeyondBasis { .. }));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_as_a_delta(body in prop::collection::vec(any::<u8>(), 0..200), step in 1..50usize) {
        let delta = [&0x7273_0236u32.to_be_bytes()[..], &body].concat();
        let basis = noise(8, 1000);
        // Either way, as long as it returns.
        let _ = patch(&basis, &delta, step);
    }

    #[test]
    fn a_delta_with_a_byte_changed(at in any::<usize>(), byte in any::<u8>()) {
        let basis = noise(9, 20_000);
        let mut delta = delta(&signature(SignatureHeader::CSYNC2, &basis[..15_000]), &basis);
        let at = at % delta.len();
        delta[at] = byte;
        if let Ok(new) = patch(&basis, &delta, 1000) {
            // At worst every byte is a command.
            prop_assert!(new.len() <= delta.len() * basis.len());
        }
    }

    #[test]
    fn any_bytes_as_a_signature(
        kind in 0..4usize,
        block_len in prop_oneof![1..100u32, any::<u32>()],
        strong_len in 0..40u32,
        records in prop::collection::vec(0..3u8, 0..2000),
        announced_more in prop_oneof![4 => Just(0u64), 1 => any::<u64>()],
        step in 1..100usize,
    ) {
        let header = SignatureHeader { block_len, strong_len, ..kinds(1)[kind] };
        let bytes = [&header.encode()[..], &records].concat();
        let announced = (bytes.len() as u64).saturating_add(announced_more);
        let build = || -> Result<_, FormatError> {
            let mut builder = IndexBuilder::new(announced)?;
            for piece in bytes.chunks(step) {
                builder.push(piece)?;
            }
            builder.finish()
        };
        if let Ok(index) = build() {
            prop_assert_eq!(announced_more, 0);
            let source = vec![0; 3000];
            let plan = DeltaPlan::scan(&index, &mut &source[..], 3000, 0).expect("a plan");
            prop_assert_eq!(plan.source_len(), 3000);
            delta_bytes(&plan, &source);
        }
    }
}

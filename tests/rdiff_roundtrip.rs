//! Random edits of random files, through signature, delta and patch, with every cut in between.

#[path = "common/rdiff.rs"]
mod common;

use common::{Trickle, delta_bytes, kinds, noise, patch, signature};
use csync_rs::rdiff::{DeltaPlan, Index, IndexBuilder, PlanItem, SignatureHeader};
use proptest::prelude::*;

/// One change to a file; places and lengths are taken modulo what there is.
#[derive(Clone, Debug)]
enum Edit {
    Insert { at: usize, seed: u64, len: usize },
    Remove { at: usize, len: usize },
    Overwrite { at: usize, seed: u64, len: usize },
    Move { from: usize, to: usize, len: usize },
    Repeat { at: usize, len: usize, times: usize },
    Fill { at: usize, byte: u8, len: usize },
}

impl Edit {
    fn apply(&self, file: &mut Vec<u8>) {
        let range = |at: usize, len: usize, file: &[u8]| {
            let at = at % (file.len() + 1);
            at..(at + len).min(file.len())
        };
        match *self {
            Self::Insert { at, seed, len } => {
                let at = at % (file.len() + 1);
                file.splice(at..at, noise(seed, len));
            }
            Self::Remove { at, len } => {
                let range = range(at, len, file);
                file.drain(range);
            }
            Self::Overwrite { at, seed, len } => {
                let range = range(at, len, file);
                let bytes = noise(seed, range.len());
                file[range].copy_from_slice(&bytes);
            }
            Self::Move { from, to, len } => {
                let range = range(from, len, file);
                let part: Vec<u8> = file.drain(range).collect();
                let to = to % (file.len() + 1);
                file.splice(to..to, part);
            }
            Self::Repeat { at, len, times } => {
                let range = range(at, len, file);
                let part = file[range.clone()].repeat(times);
                file.splice(range.end..range.end, part);
            }
            Self::Fill { at, byte, len } => {
                let range = range(at, len, file);
                file[range].fill(byte);
            }
        }
    }
}

fn edit() -> impl Strategy<Value = Edit> {
    let at = any::<usize>;
    let len = || 0..5000usize;
    prop_oneof![
        (at(), any::<u64>(), len()).prop_map(|(at, seed, len)| Edit::Insert { at, seed, len }),
        (at(), len()).prop_map(|(at, len)| Edit::Remove { at, len }),
        (at(), any::<u64>(), len()).prop_map(|(at, seed, len)| Edit::Overwrite { at, seed, len }),
        (at(), at(), len()).prop_map(|(from, to, len)| Edit::Move { from, to, len }),
        (at(), len(), 1..4usize).prop_map(|(at, len, times)| Edit::Repeat { at, len, times }),
        (at(), any::<u8>(), len()).prop_map(|(at, byte, len)| Edit::Fill { at, byte, len }),
    ]
}

fn header() -> impl Strategy<Value = SignatureHeader> {
    let block_len = prop_oneof![1..20u32, 20..3000u32, Just(2048), Just(65536)];
    (block_len, 0..4usize, 8..=32u32).prop_map(|(block_len, kind, strong_len)| {
        let header = kinds(block_len)[kind];
        SignatureHeader {
            strong_len: strong_len.min(header.strong.max_len()),
            ..header
        }
    })
}

fn index_in_pieces(signature: &[u8], step: usize) -> Index {
    let mut builder = IndexBuilder::new(signature.len() as u64).expect("a good length");
    for piece in signature.chunks(step) {
        builder.push(piece).expect("a good piece");
    }
    builder.finish().expect("a good signature")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn edited_files_arrive(
        header in header(),
        seed in any::<u64>(),
        len in 0..200_000usize,
        edits in prop::collection::vec(edit(), 0..8),
        (sig_step, read_step, patch_step) in (1..5000usize, 1..70_000usize, 1..5000usize),
        budget in prop_oneof![Just(0usize), 0..5000usize, Just(usize::MAX)],
    ) {
        let basis = noise(seed, len);
        let mut source = basis.clone();
        for edit in &edits {
            edit.apply(&mut source);
        }
        let index = index_in_pieces(&signature(header, &basis), sig_step);
        let mut reader = Trickle { data: &source, step: read_step };
        let plan = DeltaPlan::scan(&index, &mut reader, source.len() as u64, budget).expect("a plan");
        let captured: usize = plan.items().map(|item| match item {
            PlanItem::Captured(bytes) => bytes.len(),
            _ => 0,
        }).sum();
        prop_assert!(captured <= budget);
        let delta = delta_bytes(&plan, &source);
        let new = patch(&basis, &delta, patch_step).expect("a good delta");
        prop_assert!(new == source);
        if edits.is_empty() && len > 0 {
            prop_assert_eq!(plan.items().count(), 1);
        }
    }

    #[test]
    fn few_different_bytes_arrive(
        header in header(),
        basis in prop::collection::vec(0..2u8, 0..3000),
        source in prop::collection::vec(0..2u8, 0..3000),
        patch_step in 1..100usize,
    ) {
        let index = index_in_pieces(&signature(header, &basis), 64);
        let plan = DeltaPlan::scan(&index, &mut &source[..], source.len() as u64, 100).expect("a plan");
        let new = patch(&basis, &delta_bytes(&plan, &source), patch_step).expect("a good delta");
        prop_assert!(new == source);
    }
}

#[test]
fn one_byte_at_a_time() {
    let basis = noise(1, 70_000);
    let mut source = basis.clone();
    source.insert(30_000, 7);
    for header in kinds(2048) {
        let index = index_in_pieces(&signature(header, &basis), 1);
        let mut reader = Trickle {
            data: &source,
            step: 1,
        };
        let plan =
            DeltaPlan::scan(&index, &mut reader, source.len() as u64, 1 << 20).expect("a plan");
        let delta = delta_bytes(&plan, &source);
        assert!(delta.len() < 2100 + 40);
        assert!(patch(&basis, &delta, 1).expect("a good delta") == source);
    }
}

/// In zeroes every block is equal; one copy must do, since the block that continues is preferred.
#[test]
fn equal_blocks_make_one_copy() {
    for period in [1, 3, 2048, 4096] {
        let basis: Vec<u8> = noise(2, period).into_iter().cycle().take(1 << 20).collect();
        for header in kinds(2048) {
            let index = index_in_pieces(&signature(header, &basis), 1 << 16);
            let plan =
                DeltaPlan::scan(&index, &mut &basis[..], basis.len() as u64, 0).expect("a plan");
            let items: Vec<_> = plan.items().collect();
            let len = basis.len() as u64;
            assert_eq!(
                items,
                [PlanItem::Copy { offset: 0, len }],
                "period {period}"
            );
        }
    }
}

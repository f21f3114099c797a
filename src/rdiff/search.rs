//! The search for a block of the basis at any offset of the source.
//!
//! In three steps, each of which leaves little to the next. A *sweep* rolls the weak sum over a stretch of
//! positions, and the filter of the index turns most of them away. The table of the index is asked for the
//! others, and knows the blocks that have their weak sum. The strong sum decides. Each step takes a whole
//! stretch at once, so that a processor need not wait for the memory at each position; the result is that of
//! one position after the other.

use std::ops::Range;

use pulp::Arch;

use super::allowance::Allowance;
use super::index::{Candidates, Index};
use super::lanes::WeakLanes;
use super::strong::StrongBatch;
use super::sweep::{Suspect, Suspects, sweep};

/// The most positions that are looked at in the first stretch after a match, and what share of a block. The
/// next stretches grow, so that where a match comes soon little is looked at in vain.
const FIRST_STRETCH: usize = 256;
const FIRST_SHARE: usize = 8;

/// Finds blocks, front to back.
pub(crate) struct Search<'i, L> {
    index: &'i Index,
    block_len: usize,
    arch: Arch,
    allowance: Allowance,
    /// Positions passed in a row without a match.
    vain: usize,
    suspects: Suspects,
    found: Vec<Found<'i>>,
    strong: StrongBatch,
    lanes: std::marker::PhantomData<L>,
}

/// A position with the weak sum of some blocks.
#[derive(Clone, Copy)]
struct Found<'i> {
    at: usize,
    candidates: Candidates<'i>,
}

impl<'i, L: WeakLanes> Search<'i, L> {
    pub(crate) fn new(index: &'i Index) -> Self {
        let header = index.header();
        Self {
            index,
            block_len: header.block_len as usize,
            arch: Arch::new(),
            allowance: Allowance::new(index),
            vain: 0,
            suspects: Suspects::default(),
            found: Vec::new(),
            strong: StrongBatch::new(header.strong, header.block_len as usize),
            lanes: std::marker::PhantomData,
        }
    }

    /// What bounds the work in vain; the bytes that a match covers are to be told to it.
    pub(crate) fn allowance(&mut self) -> &mut Allowance {
        &mut self.allowance
    }

    /// Finds the first position of `data` at which a block of the basis stands. Returns the bytes passed
    /// over and the block; without a block what is left is shorter than one.
    ///
    /// `data` holds a block at least.
    pub(crate) fn first_match(&mut self, data: &[u8]) -> (usize, Option<u32>) {
        let positions = data.len() - self.block_len + 1;
        let mut passed = 0;
        while passed < positions {
            let rest = &data[passed..];
            let first = (self.block_len / FIRST_SHARE).clamp(1, FIRST_STRETCH);
            let stretch = self.vain.max(first);
            let swept = self.look_at(rest, stretch);
            if let Some((at, block)) = self.settle(rest) {
                self.allowance.pass(at);
                self.vain = 0;
                return (passed + at, Some(block));
            }
            self.allowance.pass(swept);
            self.vain = self.vain.saturating_add(swept);
            passed += swept;
        }
        (positions, None)
    }

    /// Finds where in a stretch at the front of `data` weak sums of the basis stand; returns its length.
    fn look_at(&mut self, data: &[u8], stretch: usize) -> usize {
        self.found.clear();
        let (filter, suspects) = (self.index.filter(), &mut self.suspects);
        let swept = sweep::<L>(self.arch, filter, data, self.block_len, stretch, suspects);
        // Where the source is monotonous, the same sum comes again and again.
        let mut last = None;
        for &Suspect { at, weak } in self.suspects.iter().flatten() {
            let candidates = match last {
                Some((before, candidates)) if before == weak => candidates,
                _ => self.index.look_up(weak),
            };
            last = Some((weak, candidates));
            if !candidates.is_empty() {
                let at = at as usize;
                self.found.push(Found { at, candidates });
            }
        }
        swept
    }

    /// Lets the strong sums decide, as far as the allowance goes: the first position and its block.
    fn settle(&mut self, data: &[u8]) -> Option<(usize, u32)> {
        let mut hashed = 0..0;
        for next in 0..self.found.len() {
            let Found { at, candidates } = self.found[next];
            if !self.allowance.allows(at) {
                continue;
            }
            if !hashed.contains(&next) {
                // The first alone, since mostly it is a match; after one that is none, several at once.
                let affordable = self.allowance.blocks(at, self.block_len);
                let count = match next {
                    0 => 1,
                    _ => affordable.clamp(1, self.strong.most()),
                };
                hashed = next..self.found.len().min(next + count);
                self.hash(data, hashed.clone());
            }
            let strong = &self.strong.sums()[next - hashed.start];
            if let Some(block) = self.index.select(candidates, strong) {
                return Some((at, block));
            }
            self.allowance.spend(self.block_len);
        }
        None
    }

    fn hash(&mut self, data: &[u8], found: Range<usize>) {
        let block_len = self.block_len;
        let blocks = self.found[found]
            .iter()
            .map(|found| &data[found.at..found.at + block_len]);
        self.strong.hash(blocks);
    }
}

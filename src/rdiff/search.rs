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
    effort: Effort,
    lanes: std::marker::PhantomData<L>,
}

/// A position with the weak sum of some blocks.
#[derive(Clone, Copy)]
struct Found<'i> {
    at: usize,
    candidates: Candidates<'i>,
}

/// What the search has done so far: what a peer who means ill can drive up.
#[derive(Debug, Default)]
struct Effort {
    /// Positions whose weak sums were computed.
    swept: usize,
    /// Weak sums that were looked up in the table.
    looked_up: usize,
    /// Blocks whose strong sums were computed.
    hashed: usize,
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
            strong: StrongBatch::new(Arch::new(), header.strong),
            effort: Effort::default(),
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
        self.effort.swept += swept;
        // Where the source is monotonous, the same sum comes again and again.
        let mut last = None;
        for &Suspect { at, weak } in self.suspects.iter().flatten() {
            let candidates = match last {
                Some((before, candidates)) if before == weak => candidates,
                _ => {
                    self.effort.looked_up += 1;
                    self.index.look_up(weak)
                }
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
        self.effort.hashed += found.len();
        let block_len = self.block_len;
        let blocks = self.found[found]
            .iter()
            .map(|found| &data[found.at..found.at + block_len]);
        self.strong.hash(blocks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rdiff::filter;
    use crate::rdiff::lanes::RollsumLanes;
    use crate::rdiff::rollsum::{Rollsum, WeakSum};
    use crate::rdiff::signature::BlockSums;
    use crate::rdiff::{IndexBuilder, SignatureHeader};

    const BLOCK: usize = 2048;

    fn noise(seed: u64, len: usize) -> Vec<u8> {
        let mut state = seed;
        let mut byte = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 56) as u8
        };
        (0..len).map(|_| byte()).collect()
    }

    fn index(records: &[u8]) -> Index {
        let bytes = [&SignatureHeader::CSYNC2.encode(), records].concat();
        let mut builder = IndexBuilder::new(bytes.len() as u64).expect("a good length");
        builder.push(&bytes).expect("good records");
        builder.finish().expect("a good signature")
    }

    /// A signature with these weak sums, whose strong sums are of no block.
    fn forged(weak: impl Iterator<Item = u32>) -> Index {
        let strong = |number: u32| u128::from(number).to_be_bytes();
        let record = |(number, weak): (usize, u32)| {
            [&weak.to_be_bytes()[..], &strong(number as u32)].concat()
        };
        index(&weak.enumerate().flat_map(record).collect::<Vec<_>>())
    }

    /// Searches through all of `source`, which has no block of the index.
    fn effort(index: &Index, source: &[u8]) -> Effort {
        let mut search = Search::<RollsumLanes>::new(index);
        let mut at = 0;
        while source.len() - at >= BLOCK {
            let window = &source[at..source.len().min(at + (256 << 10))];
            let (passed, found) = search.first_match(window);
            assert_eq!(found, None);
            at += passed;
        }
        search.effort
    }

    /// However a signature is made: one sweep of the source, at most one look-up for each position, and not
    /// more strong sums than the allowance has for the bytes passed.
    #[test]
    fn malice_is_bounded_in_proportion_to_the_source() {
        let source = noise(1, 3 << 20);
        let positions = source.len() - BLOCK + 1;
        let honest = {
            let mut records = Vec::new();
            BlockSums::new(SignatureHeader::CSYNC2).append(&noise(2, 64 << 20), &mut records);
            effort(&index(&records), &source)
        };
        assert!(honest.looked_up < positions / 50, "{honest:?}");
        assert!(honest.hashed < positions / 10_000, "{honest:?}");

        // Each weak sum of the source itself: all pass the filter and are found.
        let mut sum = Rollsum::of(&source[..BLOCK]);
        let met = forged((0..1 << 20).map(|at| {
            let weak = sum.digest();
            sum.rotate(source[at], source[at + BLOCK]);
            weak
        }));
        // Sums that crowd into a few words of the filter.
        let crowded = forged(
            (0..1 << 24)
                .filter(|&weak| filter::place(weak) >> 12 == 7)
                .take(1 << 18),
        );
        let alone = forged(std::iter::repeat_n(
            Rollsum::of(&source[..BLOCK]).digest(),
            1 << 18,
        ));
        for index in [met, crowded, alone] {
            let effort = effort(&index, &source);
            assert!(
                effort.swept >= positions && effort.swept <= 2 * positions,
                "{effort:?}"
            );
            assert!(effort.looked_up <= effort.swept, "{effort:?}");
            let allowed = 16 * source.len() + (16 << 20);
            assert!(effort.hashed * BLOCK <= allowed + 8 * BLOCK, "{effort:?}");
        }
    }
}

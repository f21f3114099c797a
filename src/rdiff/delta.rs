//! The search: which parts of a source stand in the basis that a signature describes.
//!
//! One pass over the source, in three ways of moving. Where the last block matched, the next ones are
//! expected to follow in the basis, and are compared by the run. Elsewhere the weak sum is rolled along
//! byte by byte until it is that of some block, and the strong sum decides. What is left at the end is
//! shorter than a block, and can only be the short last block of the basis.

use std::collections::TryReserveError;
use std::io::Read;

use thiserror::Error;

use super::format::WeakKind;
use super::index::{Candidates, Index};
use super::plan::PlanBuilder;
pub use super::plan::{DeltaPlan, PlanItem};
use super::rollsum::{RabinKarp, Rollsum, WeakSum};
use super::signature::BlockSums;
use super::strong::strong_sum;
use super::window::Window;

/// The window on the source, where a block is much smaller: large enough to read in few calls, small
/// enough for a core's own cache.
const WINDOW_LEN: usize = 256 * 1024;

/// The window holds at least this many blocks.
const WINDOW_BLOCKS: usize = 4;

/// Longer blocks are not searched for, since the window would be sized by the peer. (librsync itself
/// takes blocks of this length for files of 256 TB.)
const MAX_BLOCK_LEN: usize = 16 << 20;

/// The list of commands may take this much memory, and [`LIST_BYTES_PER_BLOCK`] besides.
const LIST_BYTES: usize = 64 << 20;
const LIST_BYTES_PER_BLOCK: usize = 8;

/// Why there is no delta.
#[derive(Debug, Error)]
pub enum DeltaError {
    /// The source cannot be read.
    #[error("cannot read the source: {0}")]
    Source(#[source] std::io::Error),
    /// There is no memory for the window or the plan.
    #[error("out of memory for the delta")]
    OutOfMemory(#[from] TryReserveError),
}

impl DeltaPlan {
    /// Finds in `source` the blocks of `index`, in one pass.
    ///
    /// Reads at most `source_len` bytes: a source that grows meanwhile is not followed. Captures the
    /// first `literal_budget` bytes of literal data, the others are to be read again when the delta is
    /// sent. Where there is no basis and the budget does not hold the source, nothing is read at all.
    pub fn scan(
        index: &Index,
        source: &mut dyn Read,
        source_len: u64,
        literal_budget: usize,
    ) -> Result<Self, DeltaError> {
        let header = index.header();
        if index.is_empty() || header.block_len as usize > MAX_BLOCK_LEN {
            return plan_literals(source, source_len, literal_budget);
        }
        match header.weak {
            WeakKind::Rollsum => {
                Scan::<Rollsum>::new(index, source, source_len, literal_budget)?.run()
            }
            WeakKind::RabinKarp => {
                Scan::<RabinKarp>::new(index, source, source_len, literal_budget)?.run()
            }
        }
    }
}

/// The plan where there is nothing to search for.
fn plan_literals(
    source: &mut dyn Read,
    source_len: u64,
    literal_budget: usize,
) -> Result<DeltaPlan, DeltaError> {
    if source_len > literal_budget as u64 {
        return Ok(DeltaPlan::whole_file(source_len));
    }
    let mut window = Window::new(source, source_len, WINDOW_LEN)?;
    let mut plan = PlanBuilder::new(literal_budget, LIST_BYTES);
    while !window.is_last() {
        window.fill().map_err(DeltaError::Source)?;
        plan.literal(window.bytes())?;
        window.consume(window.bytes().len());
    }
    Ok(plan.finish()?)
}

/// The state of a search.
struct Scan<'s, W> {
    window: Window<'s>,
    plan: PlanBuilder,
    matcher: Matcher<'s, W>,
}

impl<'s, W: WeakSum> Scan<'s, W> {
    fn new(
        index: &'s Index,
        source: &'s mut dyn Read,
        source_len: u64,
        literal_budget: usize,
    ) -> Result<Self, DeltaError> {
        let block_len = index.header().block_len as usize;
        let window_len = WINDOW_LEN.max(WINDOW_BLOCKS * block_len);
        let list_limit = (index.block_count() as usize)
            .saturating_mul(LIST_BYTES_PER_BLOCK)
            .saturating_add(LIST_BYTES);
        Ok(Self {
            window: Window::new(source, source_len, window_len)?,
            plan: PlanBuilder::new(literal_budget, list_limit),
            matcher: Matcher::new(index),
        })
    }

    fn run(mut self) -> Result<DeltaPlan, DeltaError> {
        loop {
            self.window.fill().map_err(DeltaError::Source)?;
            let done = self.matcher.scan(self.window.bytes(), &mut self.plan)?;
            self.window.consume(done);
            if self.window.is_last() {
                break;
            }
        }
        self.matcher
            .scan_tail(self.window.bytes(), &mut self.plan)?;
        Ok(self.plan.finish()?)
    }
}

/// Finds blocks in the bytes of a window.
struct Matcher<'i, W> {
    index: &'i Index,
    block_len: usize,
    /// The block that follows the last match in the basis.
    expected: Option<u32>,
    allowance: Allowance,
    sums: BlockSums,
    /// Records of a run of blocks of the source.
    records: Vec<u8>,
    kind: std::marker::PhantomData<W>,
}

impl<'i, W: WeakSum> Matcher<'i, W> {
    fn new(index: &'i Index) -> Self {
        Self {
            index,
            block_len: index.header().block_len as usize,
            expected: None,
            allowance: Allowance::new(index),
            sums: BlockSums::new(*index.header()),
            records: Vec::new(),
            kind: std::marker::PhantomData,
        }
    }

    /// Plans all of `data` but an end that is shorter than a block. Returns how much was planned.
    fn scan(&mut self, data: &[u8], plan: &mut PlanBuilder) -> Result<usize, TryReserveError> {
        let mut done = 0;
        while data.len() - done >= self.block_len {
            let rest = &data[done..];
            let run = self.expected_run(rest);
            if let (Some(block), true) = (self.expected, run > 0) {
                done += self.plan_run(block, run, rest, plan)?;
                continue;
            }
            let (skipped, found) = self.search(rest);
            plan.literal(&rest[..skipped])?;
            done += skipped;
            self.expected = None;
            if let Some(block) = found {
                done += self.plan_run(block, 1, &rest[skipped..], plan)?;
            }
        }
        Ok(done)
    }

    /// Plans the end of the source, which is shorter than a block.
    fn scan_tail(&mut self, data: &[u8], plan: &mut PlanBuilder) -> Result<(), TryReserveError> {
        match self.tail_match(data) {
            Some((start, block)) => {
                plan.literal(&data[..start])?;
                plan.copy(self.index.offset(block), &data[start..])
            }
            None => plan.literal(data),
        }
    }

    /// Plans a copy of `count` blocks; returns its length.
    fn plan_run(
        &mut self,
        block: u32,
        count: usize,
        data: &[u8],
        plan: &mut PlanBuilder,
    ) -> Result<usize, TryReserveError> {
        let len = count * self.block_len;
        plan.copy(self.index.offset(block), &data[..len])?;
        self.allowance.pass(len);
        // A run lies within the basis, and the number of its blocks is a u32.
        self.expected = block.checked_add(count as u32);
        Ok(len)
    }

    /// How many blocks at the front of `data` are the expected ones.
    fn expected_run(&mut self, data: &[u8]) -> usize {
        let Some(first) = self.expected else {
            return 0;
        };
        let here = self.index.records(first, 1);
        let weak = W::of(&data[..self.block_len]).digest();
        if !here.starts_with(&weak.to_be_bytes()) {
            return 0;
        }
        let mut run = 0;
        let mut batch = FIRST_BATCH;
        loop {
            let found =
                self.compare_batch(first + run as u32, batch, &data[run * self.block_len..]);
            run += found;
            if found < batch {
                return run;
            }
            batch = (2 * batch).min(MAX_BATCH);
        }
    }

    /// How many blocks at the front of `data` are those from `first` on; looks at no more than `batch`.
    fn compare_batch(&mut self, first: u32, batch: usize, data: &[u8]) -> usize {
        let expected = self.index.records(first, batch);
        let record_len = self.index.record_len();
        let count = (expected.len() / record_len).min(data.len() / self.block_len);
        self.records.clear();
        self.sums
            .append(&data[..count * self.block_len], &mut self.records);
        let pairs = self
            .records
            .chunks_exact(record_len)
            .zip(expected.chunks_exact(record_len));
        pairs.take_while(|(ours, theirs)| ours == theirs).count()
    }

    /// Rolls along `data` to the first block that is in the basis. Returns the bytes passed over and the
    /// block; without a block what is left is shorter than one.
    fn search(&mut self, data: &[u8]) -> (usize, Option<u32>) {
        let index = self.index;
        let mut roller = Roller::<W>::new(data, self.block_len);
        while let Some(candidates) = roller.next_candidates(index) {
            if let Some(block) = self.select(candidates, roller.block(), roller.at) {
                self.allowance.pass(roller.at);
                return (roller.at, Some(block));
            }
            if !roller.step() {
                break;
            }
        }
        let passed = data.len() - self.block_len + 1;
        self.allowance.pass(passed);
        (passed, None)
    }

    /// Lets the strong sum decide, if the allowance is not used up.
    fn select(&mut self, candidates: Candidates<'_>, block: &[u8], passed: usize) -> Option<u32> {
        if !self.allowance.allows(passed) {
            return None;
        }
        let strong = strong_sum(self.index.header().strong, block);
        let found = self.index.select(candidates, &strong);
        if found.is_none() {
            self.allowance.spend(block.len());
        }
        found
    }

    /// Where in `data` its end begins to be the last block of the basis.
    fn tail_match(&mut self, data: &[u8]) -> Option<(usize, u32)> {
        let last = self.index.last_block()?;
        let weak = self.index.weak(last);
        let mut sum = W::of(data);
        for start in 0..data.len() {
            if sum.digest() == weak && self.is_tail(&data[start..], last) {
                return Some((start, last));
            }
            sum.roll_out(data[start]);
        }
        None
    }

    fn is_tail(&mut self, data: &[u8], last: u32) -> bool {
        if !self.allowance.allows(0) {
            return false;
        }
        self.allowance.spend(data.len());
        strong_sum(self.index.header().strong, data).starts_with(self.index.strong(last))
    }
}

/// Blocks hashed at once when a run begins: what the fast hasher takes in one go.
const FIRST_BATCH: usize = 8;

/// Blocks hashed at once in a long run.
const MAX_BATCH: usize = 32;

/// Moves along some bytes, with the weak sum of the block that begins there.
struct Roller<'d, W> {
    data: &'d [u8],
    block_len: usize,
    at: usize,
    sum: W,
}

impl<'d, W: WeakSum> Roller<'d, W> {
    /// Begins at the front of `data`, which holds a block at least.
    fn new(data: &'d [u8], block_len: usize) -> Self {
        Self {
            data,
            block_len,
            at: 0,
            sum: W::of(&data[..block_len]),
        }
    }

    fn block(&self) -> &'d [u8] {
        &self.data[self.at..self.at + self.block_len]
    }

    /// Moves on by one byte, if a whole block is left behind it.
    fn step(&mut self) -> bool {
        let Some(&into) = self.data.get(self.at + self.block_len) else {
            return false;
        };
        self.sum.rotate(self.data[self.at], into);
        self.at += 1;
        true
    }

    /// Moves on to a block whose weak sum is in the index; stays where it is if that is one.
    fn next_candidates<'i>(&mut self, index: &'i Index) -> Option<Candidates<'i>> {
        let candidates = index.candidates(self.sum.digest());
        if !candidates.is_empty() {
            return Some(candidates);
        }
        let leaving = &self.data[self.at..];
        let entering = &leaving[self.block_len..];
        for (passed, (&out, &into)) in leaving.iter().zip(entering).enumerate() {
            self.sum.rotate(out, into);
            let candidates = index.candidates(self.sum.digest());
            if !candidates.is_empty() {
                self.at += passed + 1;
                return Some(candidates);
            }
        }
        None
    }
}

/// Bounds the strong sums that are computed in vain, in proportion to the bytes passed.
///
/// A peer can write weak sums into a signature that stand at every offset of the source, with strong
/// sums that never match. Without a bound each offset would cost the hashing of a block.
struct Allowance {
    /// Bytes that may still be hashed in vain; below zero if the last block was a long one.
    left: i64,
    /// What each byte passed adds to it.
    per_byte: i64,
}

impl Allowance {
    const PER_BYTE: u64 = 16;
    const START: i64 = 16 << 20;

    /// Weak sums of honest data agree by chance about once in so many pairs.
    const CHANCE_BITS: u32 = 29;

    fn new(index: &Index) -> Self {
        let block_len = u64::from(index.header().block_len);
        // What honest data costs where there are very many blocks. Both factors are below 2^32.
        let by_chance = (index.block_count() * block_len) >> Self::CHANCE_BITS;
        let per_byte = Self::PER_BYTE + 4 * by_chance;
        Self {
            left: Self::START,
            per_byte: i64::try_from(per_byte).unwrap_or(i64::MAX),
        }
    }

    /// Whether a block may be hashed, `passed` bytes after the last call of [`Allowance::pass`].
    fn allows(&self, passed: usize) -> bool {
        self.left.saturating_add(self.earned(passed)) > 0
    }

    fn spend(&mut self, bytes: usize) {
        self.left = self.left.saturating_sub(bytes as i64);
    }

    fn pass(&mut self, bytes: usize) {
        self.left = self.left.saturating_add(self.earned(bytes));
    }

    fn earned(&self, bytes: usize) -> i64 {
        self.per_byte.saturating_mul(bytes as i64)
    }
}

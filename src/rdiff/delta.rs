//! The delta: which parts of a source stand in the basis that a signature describes.
//!
//! One pass over the source, in three ways of moving. Where the last block matched, the next ones are
//! expected to follow in the basis, and are compared by the run. Elsewhere a block of the basis is searched
//! for at each offset (see `search`). What is left at the end is shorter than a block, and can only be the
//! short last block of the basis.

use std::collections::TryReserveError;
use std::io::Read;

use thiserror::Error;

use super::format::WeakKind;
use super::index::Index;
use super::lanes::{RabinKarpLanes, RollsumLanes, WeakLanes};
use super::plan::PlanBuilder;
pub use super::plan::{DeltaPlan, PlanItem};
use super::rollsum::WeakSum;
use super::search::Search;
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
                Scan::<RollsumLanes>::new(index, source, source_len, literal_budget)?.run()
            }
            WeakKind::RabinKarp => {
                Scan::<RabinKarpLanes>::new(index, source, source_len, literal_budget)?.run()
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
struct Scan<'s, L> {
    window: Window<'s>,
    plan: PlanBuilder,
    matcher: Matcher<'s, L>,
}

impl<'s, L: WeakLanes> Scan<'s, L> {
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
struct Matcher<'i, L> {
    index: &'i Index,
    block_len: usize,
    /// The block that follows the last match in the basis.
    expected: Option<u32>,
    search: Search<'i, L>,
    sums: BlockSums,
    /// Records of a run of blocks of the source.
    records: Vec<u8>,
}

impl<'i, L: WeakLanes> Matcher<'i, L> {
    fn new(index: &'i Index) -> Self {
        Self {
            index,
            block_len: index.header().block_len as usize,
            expected: None,
            search: Search::new(index),
            sums: BlockSums::new(*index.header()),
            records: Vec::new(),
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
            let (skipped, found) = self.search.first_match(rest);
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
        self.search.allowance().pass(len);
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
        let weak = L::Sum::of(&data[..self.block_len]).digest();
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

    /// Where in `data` its end begins to be the last block of the basis.
    fn tail_match(&mut self, data: &[u8]) -> Option<(usize, u32)> {
        let last = self.index.last_block()?;
        let weak = self.index.weak(last);
        let mut sum = L::Sum::of(data);
        for start in 0..data.len() {
            if sum.digest() == weak && self.is_tail(&data[start..], last) {
                return Some((start, last));
            }
            sum.roll_out(data[start]);
        }
        None
    }

    fn is_tail(&mut self, data: &[u8], last: u32) -> bool {
        if !self.search.allowance().allows(0) {
            return false;
        }
        self.search.allowance().spend(data.len());
        strong_sum(self.index.header().strong, data).starts_with(self.index.strong(last))
    }
}

/// Blocks hashed at once when a run begins: what the fast hasher takes in one go.
const FIRST_BATCH: usize = 8;

/// Blocks hashed at once in a long run.
const MAX_BATCH: usize = 32;

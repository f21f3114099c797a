//! A bound on the strong sums that are computed in vain.

use super::index::Index;

/// Bounds the strong sums that are computed in vain, in proportion to the bytes passed.
///
/// A peer can write weak sums into a signature that stand at every offset of the source, with strong
/// sums that never match. Without a bound each offset would cost the hashing of a block.
pub(crate) struct Allowance {
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

    pub(crate) fn new(index: &Index) -> Self {
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
    pub(crate) fn allows(&self, passed: usize) -> bool {
        self.left.saturating_add(self.earned(passed)) > 0
    }

    /// How many blocks of this length may be hashed then, one after the other.
    pub(crate) fn blocks(&self, passed: usize, block_len: usize) -> usize {
        let left = self.left.saturating_add(self.earned(passed));
        usize::try_from(left).unwrap_or(0) / block_len
    }

    pub(crate) fn spend(&mut self, bytes: usize) {
        self.left = self.left.saturating_sub(bytes as i64);
    }

    pub(crate) fn pass(&mut self, bytes: usize) {
        self.left = self.left.saturating_add(self.earned(bytes));
    }

    fn earned(&self, bytes: usize) -> i64 {
        self.per_byte.saturating_mul(bytes as i64)
    }
}

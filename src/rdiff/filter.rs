//! Says for most weak sums that no block has them.
//!
//! One word of memory is looked at for a sum, and two bits in it. About one in a hundred foreign sums gets
//! through.

use std::collections::TryReserveError;

use super::zeroed;

/// Spreads weak sums, which are far from even: half of a rollsum is a plain sum of bytes.
#[inline(always)]
pub(crate) fn hash(weak: u32) -> u32 {
    (weak ^ weak >> 15).wrapping_mul(0x9e37_79b1)
}

/// A word has [`WORD_BITS`] bits; the two that stand for a hash are chosen by its low ones.
const WORD_BITS: u32 = u32::BITS;

/// Moves the bits of `word` that stand for `hash` to the top, and joins them.
#[inline(always)]
fn joined(word: u32, hash: u32) -> u32 {
    (word << (hash % WORD_BITS)) & (word << (hash / WORD_BITS % WORD_BITS))
}

/// A set of weak sums that is wrong at times, but never about one that is in it.
pub(crate) struct Filter {
    /// One for each block, rounded down to a power of two.
    words: Vec<u32>,
}

impl Filter {
    /// The smallest and the largest filter. Smaller ones would save nothing worth having; where there are
    /// more blocks than this, a filter is of little use.
    const MIN_WORDS: usize = 1 << 12;
    const MAX_WORDS: usize = 1 << 24;

    /// Makes an empty filter for so many sums: four bytes for each, where there are more than a few.
    pub(crate) fn for_blocks(count: u32) -> Result<Self, TryReserveError> {
        let words = match count.checked_ilog2() {
            Some(log) => (1usize << log).clamp(Self::MIN_WORDS, Self::MAX_WORDS),
            None => Self::MIN_WORDS,
        };
        Ok(Self {
            words: zeroed(words)?,
        })
    }

    /// Bytes of memory.
    pub(crate) fn memory(&self) -> usize {
        size_of::<u32>() * self.words.capacity()
    }

    /// Takes in a weak sum.
    pub(crate) fn add(&mut self, weak: u32) {
        const TOP: u32 = 1 << (WORD_BITS - 1);
        let hash = hash(weak);
        let at = hash >> self.shift();
        self.words[at as usize] |=
            TOP >> (hash % WORD_BITS) | TOP >> (hash / WORD_BITS % WORD_BITS);
    }

    /// Whether this weak sum may be in the set.
    pub(crate) fn has(&self, weak: u32) -> bool {
        let hash = hash(weak);
        let word = self.words[(hash >> self.shift()) as usize];
        joined(word, hash) >> (WORD_BITS - 1) != 0
    }

    fn shift(&self) -> u32 {
        u32::BITS - self.words.len().trailing_zeros()
    }

    /// Gives the filter to `visitor` as an array, whose length the compiler knows: so the look-up of many
    /// sums at once needs no checks.
    pub(crate) fn visit<V: Visitor>(&self, visitor: V) {
        macro_rules! by_length {
            ($($log:literal)*) => {
                match self.words.len() {
                    $(len if len == 1 << $log => {
                        if let Some(words) = self.words.first_chunk::<{ 1 << $log }>() {
                            visitor.visit(Words(words));
                        }
                    })*
                    len => unreachable!("a filter of {len} words"),
                }
            };
        }
        by_length!(12 13 14 15 16 17 18 19 20 21 22 23 24);
    }
}

/// What is done with a filter of any length.
pub(crate) trait Visitor {
    /// Does it with a filter of this length.
    fn visit<const LEN: usize>(self, words: Words<'_, LEN>);
}

/// A filter of a known length, which is a power of two.
#[derive(Clone, Copy)]
pub(crate) struct Words<'f, const LEN: usize>(&'f [u32; LEN]);

impl<const LEN: usize> Words<'_, LEN> {
    /// Looks up several weak sums. The top bit of a result says whether the sum may be in the set.
    #[inline(always)]
    pub(crate) fn look_up<const N: usize>(&self, weak: &[u32; N]) -> [u32; N] {
        let hashes = weak.map(hash);
        let words: [u32; N] = std::array::from_fn(|lane| {
            self.0[(hashes[lane] >> (u32::BITS - LEN.trailing_zeros())) as usize]
        });
        std::array::from_fn(|lane| joined(words[lane], hashes[lane]))
    }
}

//! Says for most weak sums that no block has them.
//!
//! One word of memory is looked at for a sum, and four bits in it, one in each byte. About one in a hundred
//! foreign sums gets through. All is 16-bit arithmetic on the halves of a sum, of which a vector register
//! holds many.

use std::collections::TryReserveError;

use super::zeroed;

/// Words that 16 bits tell apart: a filter is a part of such a bank, or one, or several.
pub(crate) const BANK: usize = 1 << 16;

/// Spreads the lower half of a sum over the upper one.
pub(crate) const PLACE_FACTOR: u16 = 0x9e37;
/// Spreads the upper half of a sum over the lower one.
pub(crate) const BANK_FACTOR: u16 = 0xc2b3;
/// The bits of the lower half that stand at these places choose a bit of the word already.
pub(crate) const BANK_SHIFT: i32 = 3;

/// The part of each byte of a sum that chooses a bit of the word's same byte.
pub(crate) const BIT_CHOICE: u8 = 7;

/// The upper half of the product.
fn multiply_high(one: u16, other: u16) -> u16 {
    (u32::from(one) * u32::from(other) >> 16) as u16
}

/// Where in its bank the word of a sum stands.
#[inline(always)]
pub(crate) fn place(weak: u32) -> u16 {
    let (low, high) = (weak as u16, (weak >> 16) as u16);
    high.wrapping_add(multiply_high(low, PLACE_FACTOR))
}

/// The number of the bank, of which a filter takes as many bits as it has use for.
#[inline(always)]
fn bank(weak: u32) -> u16 {
    let (low, high) = (weak as u16, (weak >> 16) as u16);
    (low >> BANK_SHIFT).wrapping_add(multiply_high(high, BANK_FACTOR))
}

/// The number of the word, of `len`.
#[inline(always)]
pub(crate) fn index(bank: u16, place: u16, len: usize) -> usize {
    (usize::from(bank) * BANK | usize::from(place)) & (len - 1)
}

/// The bits of the word.
#[inline(always)]
fn bits(weak: u32) -> u32 {
    u32::from_le_bytes(weak.to_le_bytes().map(|byte| 1 << (byte & BIT_CHOICE)))
}

/// A set of weak sums that is wrong at times, but never about one that is in it.
pub(crate) struct Filter {
    /// A power of two.
    words: Vec<u32>,
}

impl Filter {
    /// The smallest and the largest filter. Smaller ones would save nothing worth having; where there are
    /// more blocks than this, a filter is of little use.
    const MIN_WORDS: usize = 1 << 12;
    const MAX_WORDS: usize = 1 << 24;

    /// Makes an empty filter for so many sums: two to four bytes for each, where there are more than a few.
    pub(crate) fn for_blocks(count: u32) -> Result<Self, TryReserveError> {
        let count = count as usize;
        // Up to two sums for a word, a single bank is worth more than two: it is faster, and fits the cache.
        let most = if count <= 2 * BANK {
            BANK
        } else {
            Self::MAX_WORDS
        };
        let words = (1 << count.max(1).ilog2()).clamp(Self::MIN_WORDS, most);
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
        let at = self.at(weak);
        self.words[at] |= bits(weak);
    }

    /// Whether this weak sum may be in the set.
    #[inline(always)]
    pub(crate) fn has(&self, weak: u32) -> bool {
        let bits = bits(weak);
        self.words[self.at(weak)] & bits == bits
    }

    /// All words: a power of two.
    pub(crate) fn words(&self) -> &[u32] {
        &self.words
    }

    #[inline(always)]
    fn at(&self, weak: u32) -> usize {
        index(bank(weak), place(weak), self.words.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(count: usize) -> impl Iterator<Item = u32> {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        std::iter::repeat_with(move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 32) as u32
        })
        .take(count)
    }

    #[test]
    fn what_was_added_is_there_and_little_else() {
        for count in [1, 1000, 5000, 1 << 15, 1 << 16, 1 << 17, 200_000, 1 << 19] {
            let mut filter = Filter::for_blocks(count).expect("memory");
            let bytes = 4 * (count as usize).max(Filter::MIN_WORDS);
            assert!(filter.memory() <= bytes);
            let mut sums = noise(count as usize + 100_000);
            let own: Vec<u32> = sums.by_ref().take(count as usize).collect();
            own.iter().for_each(|&weak| filter.add(weak));
            assert!(own.iter().all(|&weak| filter.has(weak)));
            let passed = sums.filter(|&weak| filter.has(weak)).count();
            assert!(
                passed < 2_500,
                "{passed} of 100,000 pass with {count} blocks"
            );
        }
    }
}

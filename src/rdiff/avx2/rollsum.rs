//! The rollsum of a whole block.

use std::arch::x86_64::__m256i;

use pulp::x86::V3;
use pulp::{NullaryFnOnce, as_arrays, cast};

use super::super::rollsum::{Rollsum, WeakSum};

/// Bytes that are added up at once.
const STRIDE: usize = 32;

/// The sum of `block`.
pub(crate) fn rollsum(simd: V3, block: &[u8]) -> Rollsum {
    simd.vectorize(Run { simd, block })
}

struct Run<'d> {
    simd: V3,
    block: &'d [u8],
}

impl NullaryFnOnce for Run<'_> {
    type Output = Rollsum;

    #[inline(always)]
    fn call(self) -> Rollsum {
        let (strides, rest) = as_arrays::<STRIDE, u8>(self.block);
        let simd = self.simd.avx2;
        let zero: __m256i = cast([0u8; STRIDE]);
        let ones: __m256i = cast([1i16; STRIDE / 2]);
        // How often `s2` has a byte of a stride at the stride's end.
        let mut weights = [0u8; STRIDE];
        for (i, weight) in weights.iter_mut().enumerate() {
            *weight = (STRIDE - i) as u8;
        }
        let weights: __m256i = cast(weights);
        // All may overflow, since only the low bits of their sums count.
        let (mut sum, mut sums_before, mut weighted) = (zero, zero, zero);
        for stride in strides {
            let bytes: __m256i = cast(*stride);
            sums_before = simd._mm256_add_epi32(sums_before, sum);
            sum = simd._mm256_add_epi32(sum, simd._mm256_sad_epu8(bytes, zero));
            let pairs = simd._mm256_maddubs_epi16(bytes, weights);
            weighted = simd._mm256_add_epi32(weighted, simd._mm256_madd_epi16(pairs, ones));
        }
        let s2 = total(sums_before)
            .wrapping_mul(STRIDE as u32)
            .wrapping_add(total(weighted));
        let mut sum = Rollsum::of_values(total(sum), s2, strides.len() * STRIDE);
        sum.extend(rest);
        sum
    }
}

/// The sum of all lanes.
#[inline(always)]
fn total(lanes: __m256i) -> u32 {
    let lanes: [u32; 8] = cast(lanes);
    lanes.iter().fold(0, |sum, &lane| sum.wrapping_add(lane))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_the_plain_sum_at_all_lengths_and_alignments() {
        let Some(simd) = V3::try_new() else {
            return;
        };
        let data: Vec<u8> = (0..70_000u32)
            .map(|i| (i.wrapping_mul(i) >> 5) as u8 | 0x80)
            .collect();
        for start in 0..64 {
            for len in (0..300).chain([2048, 65_535, 69_000]) {
                let block = &data[start..start + len];
                let (ours, plain) = (rollsum(simd, block), Rollsum::of(block));
                assert_eq!(ours.digest(), plain.digest(), "{len} from {start}");
            }
        }
    }
}

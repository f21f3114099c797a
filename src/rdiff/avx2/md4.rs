//! MD4 of many blocks at once.
//!
//! Each block is hashed in a 32-bit lane. A step of MD4 waits for the one before, so two registers of lanes
//! that know nothing of each other are nearly as fast as one.
//!
//! The algorithm is RFC 1320's; its names are kept.

// One index for several arrays. Iterators would bring closures, and these be compiled without the vectors.
#![allow(clippy::needless_range_loop)]

use std::arch::x86_64::__m256i;

use pulp::x86::V3;
use pulp::{NullaryFnOnce, as_arrays, cast};

/// Blocks in a register.
pub(crate) const LANES: usize = 8;

/// Bytes that a compression takes in.
const CHUNK: usize = 64;

/// The length at the end of the last chunk.
const LENGTH: usize = 8;

/// One word of each block, for `GROUPS` registers of them.
type Words<const GROUPS: usize> = [__m256i; GROUPS];

/// The sums of blocks of the same length.
pub(crate) fn md4<const GROUPS: usize>(
    simd: V3,
    blocks: [[&[u8]; LANES]; GROUPS],
) -> [[[u8; 16]; LANES]; GROUPS] {
    simd.vectorize(Run { simd, blocks })
}

struct Run<'d, const GROUPS: usize> {
    simd: V3,
    blocks: [[&'d [u8]; LANES]; GROUPS],
}

impl<const GROUPS: usize> NullaryFnOnce for Run<'_, GROUPS> {
    type Output = [[[u8; 16]; LANES]; GROUPS];

    #[inline(always)]
    fn call(self) -> Self::Output {
        let Self { simd, blocks } = self;
        let mut state = State::<GROUPS>::new(simd);
        let mut chunks: [[&[[u8; CHUNK]]; LANES]; GROUPS] = [[&[]; LANES]; GROUPS];
        let mut ends = [[[0; 2 * CHUNK]; LANES]; GROUPS];
        let mut end_len = CHUNK;
        for group in 0..GROUPS {
            for lane in 0..LANES {
                let block = blocks[group][lane];
                let (whole, rest) = as_arrays(block);
                chunks[group][lane] = whole;
                end_len = pad(&mut ends[group][lane], rest, block.len());
            }
        }
        let whole = blocks[0][0].len() / CHUNK;
        for i in 0..whole {
            state.compress(simd, &words(simd, |group, lane| &chunks[group][lane][i]));
        }
        for at in (0..end_len).step_by(CHUNK) {
            let end = |group: usize, lane: usize| match ends[group][lane][at..].first_chunk() {
                Some(chunk) => chunk,
                None => unreachable!("an end is made of whole chunks"),
            };
            state.compress(simd, &words(simd, end));
        }
        state.sums()
    }
}

/// Makes the end of a block of `len` bytes, of which `rest` fill no chunk. Returns the length of the end.
fn pad(end: &mut [u8; 2 * CHUNK], rest: &[u8], len: usize) -> usize {
    end[..rest.len()].copy_from_slice(rest);
    end[rest.len()] = 0x80;
    let end_len = (rest.len() + 1 + LENGTH).next_multiple_of(CHUNK);
    let bits = (len as u64).wrapping_mul(8);
    end[end_len - LENGTH..end_len].copy_from_slice(&bits.to_le_bytes());
    end_len
}

/// The words of a chunk of each block.
#[inline(always)]
fn words<'d, const GROUPS: usize>(
    simd: V3,
    chunk: impl Fn(usize, usize) -> &'d [u8; CHUNK],
) -> [Words<GROUPS>; CHUNK / 4] {
    let mut words = [[cast([0u32; LANES]); GROUPS]; CHUNK / 4];
    for group in 0..GROUPS {
        let mut front: [__m256i; LANES] = [cast([0u32; LANES]); LANES];
        let mut back = front;
        for lane in 0..LANES {
            [front[lane], back[lane]] = cast(*chunk(group, lane));
        }
        let (front, back) = (columns(simd, front), columns(simd, back));
        for i in 0..LANES {
            words[i][group] = front[i];
            words[i + LANES][group] = back[i];
        }
    }
    words
}

/// Makes columns of rows.
#[inline(always)]
fn columns(simd: V3, rows: [__m256i; LANES]) -> [__m256i; LANES] {
    let simd = simd.avx2;
    let mut pairs = rows;
    for i in 0..4 {
        pairs[2 * i] = simd._mm256_unpacklo_epi32(rows[2 * i], rows[2 * i + 1]);
        pairs[2 * i + 1] = simd._mm256_unpackhi_epi32(rows[2 * i], rows[2 * i + 1]);
    }
    let mut fours = pairs;
    for i in 0..2 {
        for half in 0..2 {
            let (one, other) = (pairs[4 * i + half], pairs[4 * i + 2 + half]);
            fours[4 * i + 2 * half] = simd._mm256_unpacklo_epi64(one, other);
            fours[4 * i + 2 * half + 1] = simd._mm256_unpackhi_epi64(one, other);
        }
    }
    let mut columns = fours;
    for i in 0..4 {
        columns[i] = simd._mm256_permute2x128_si256::<0x20>(fours[i], fours[i + 4]);
        columns[i + 4] = simd._mm256_permute2x128_si256::<0x31>(fours[i], fours[i + 4]);
    }
    columns
}

/// The four words that become the sum.
struct State<const GROUPS: usize>([Words<GROUPS>; 4]);

/// One step of all lanes: `$a` takes in the word `$x`.
macro_rules! step {
    ($simd:ident, $mix:ident + $constant:ident, $a:ident $b:ident $c:ident $d:ident, $x:expr, $shift:literal) => {
        for group in 0..GROUPS {
            let mixed = $mix($simd, $b[group], $c[group], $d[group]);
            let sum = $simd.avx2._mm256_add_epi32(
                $simd.avx2._mm256_add_epi32($a[group], $x[group]),
                $simd.avx2._mm256_add_epi32(mixed, $constant),
            );
            $a[group] = $simd.avx2._mm256_or_si256(
                $simd.avx2._mm256_slli_epi32::<$shift>(sum),
                $simd.avx2._mm256_srli_epi32::<{ 32 - $shift }>(sum),
            );
        }
    };
}

/// Four steps, after which each word of the state has changed.
macro_rules! steps {
    ($simd:ident, $mix:ident + $constant:ident, $a:ident $b:ident $c:ident $d:ident,
     [$x1:expr, $x2:expr, $x3:expr, $x4:expr], $s1:literal $s2:literal $s3:literal $s4:literal) => {
        step!($simd, $mix + $constant, $a $b $c $d, $x1, $s1);
        step!($simd, $mix + $constant, $d $a $b $c, $x2, $s2);
        step!($simd, $mix + $constant, $c $d $a $b, $x3, $s3);
        step!($simd, $mix + $constant, $b $c $d $a, $x4, $s4);
    };
}

impl<const GROUPS: usize> State<GROUPS> {
    #[inline(always)]
    fn new(_: V3) -> Self {
        let word = |value: u32| [cast([value; LANES]); GROUPS];
        Self([
            word(0x6745_2301),
            word(0xefcd_ab89),
            word(0x98ba_dcfe),
            word(0x1032_5476),
        ])
    }

    #[inline(always)]
    fn compress(&mut self, simd: V3, x: &[Words<GROUPS>; CHUNK / 4]) {
        let [mut a, mut b, mut c, mut d] = self.0;
        let constant: __m256i = cast([0u32; LANES]);
        for x in as_arrays::<4, _>(x).0 {
            steps!(simd, f + constant, a b c d, [x[0], x[1], x[2], x[3]], 3 7 11 19);
        }
        let constant: __m256i = cast([0x5a82_7999_u32; LANES]);
        for i in 0..4 {
            let x = [x[i], x[i + 4], x[i + 8], x[i + 12]];
            steps!(simd, g + constant, a b c d, [x[0], x[1], x[2], x[3]], 3 5 9 13);
        }
        let constant: __m256i = cast([0x6ed9_eba1_u32; LANES]);
        for i in [0, 2, 1, 3] {
            let x = [x[i], x[i + 8], x[i + 4], x[i + 12]];
            steps!(simd, h + constant, a b c d, [x[0], x[1], x[2], x[3]], 3 9 11 15);
        }
        for group in 0..GROUPS {
            for (word, new) in self.0.iter_mut().zip([a, b, c, d]) {
                word[group] = simd.avx2._mm256_add_epi32(word[group], new[group]);
            }
        }
    }

    #[inline(always)]
    fn sums(&self) -> [[[u8; 16]; LANES]; GROUPS] {
        let mut sums = [[[0; 16]; LANES]; GROUPS];
        for (i, words) in self.0.iter().enumerate() {
            for group in 0..GROUPS {
                let words: [u32; LANES] = cast(words[group]);
                for lane in 0..LANES {
                    sums[group][lane][4 * i..4 * i + 4].copy_from_slice(&words[lane].to_le_bytes());
                }
            }
        }
        sums
    }
}

/// The bits of `c` where `b` is set, and those of `d` elsewhere.
#[inline(always)]
fn f(simd: V3, b: __m256i, c: __m256i, d: __m256i) -> __m256i {
    let simd = simd.avx2;
    simd._mm256_xor_si256(d, simd._mm256_and_si256(b, simd._mm256_xor_si256(c, d)))
}

/// The bits that two of them have at least.
#[inline(always)]
fn g(simd: V3, b: __m256i, c: __m256i, d: __m256i) -> __m256i {
    let simd = simd.avx2;
    let either = simd._mm256_and_si256(d, simd._mm256_or_si256(b, c));
    simd._mm256_or_si256(simd._mm256_and_si256(b, c), either)
}

/// The bits that one or three of them have.
#[inline(always)]
fn h(simd: V3, b: __m256i, c: __m256i, d: __m256i) -> __m256i {
    let simd = simd.avx2;
    simd._mm256_xor_si256(simd._mm256_xor_si256(b, c), d)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::md4::{Digest, Md4};

    fn equal_the_reference<const GROUPS: usize>(simd: V3) {
        let data: Vec<u8> = (0..70_000u32)
            .map(|i| (i.wrapping_mul(i) >> 7) as u8)
            .collect();
        for start in 0..64 {
            for len in (0..300).chain([2047, 2048, 65_535]) {
                let block = |group, lane| &data[start + 97 * (LANES * group + lane)..][..len];
                let blocks: [[&[u8]; LANES]; GROUPS] =
                    std::array::from_fn(|group| std::array::from_fn(|lane| block(group, lane)));
                let sums = md4(simd, blocks);
                for (block, sum) in blocks.concat().iter().zip(sums.concat()) {
                    assert_eq!(sum[..], Md4::digest(block)[..], "{len} from {start}");
                }
            }
        }
    }

    #[test]
    fn lanes_equal_the_reference_at_all_lengths_and_alignments() {
        if let Some(simd) = V3::try_new() {
            equal_the_reference::<1>(simd);
            equal_the_reference::<2>(simd);
        }
    }
}

//! The sweep for rollsums with the 256-bit vectors of x86-64.
//!
//! Sixteen windows, each in a 16-bit lane. For sixteen positions of each at a time their sums are computed and
//! the places of their words in the filter; the words are fetched one by one, since there is nothing faster;
//! and the bits in them are compared in vectors again. Three such chunks are in work at once, one at each of
//! these steps, so that the memory is never waited for.

use std::arch::x86_64::{__m128i, __m256i};

use pulp::x86::V3;
use pulp::{NullaryFnOnce, as_arrays, cast};

use super::super::filter::{self, BANK, BANK_FACTOR, BANK_SHIFT, BIT_CHOICE, PLACE_FACTOR};
use super::super::lanes::LANES;
use super::super::rollsum::{CHAR_OFFSET, Rollsum};
use super::super::sweep::{LaneSweep, Suspect, Suspects};

/// Positions of each lane that are worked on together: the bytes of half a register.
const CHUNK: usize = 16;

/// One number for each position of a chunk and each lane.
type Grid<T> = [[T; LANES]; CHUNK];

/// Where each lane stands in a row of sums or words. When registers of 16-bit halves are joined to 32-bit
/// numbers, their quarters change places.
const SLOT: [usize; LANES] = [0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15];

/// Sweeps along the lanes.
pub(crate) fn sweep(simd: V3, sweep: LaneSweep<'_, Rollsum>) {
    match sweep.filter.words().first_chunk::<BANK>() {
        Some(bank) if sweep.filter.words().len() == BANK => simd.vectorize(Run {
            simd,
            words: bank,
            sweep,
        }),
        _ => simd.vectorize(Run {
            simd,
            words: sweep.filter.words(),
            sweep,
        }),
    }
}

/// The words of a filter, and how one is found.
trait Words: Copy {
    /// Whether the number of the bank matters.
    const BANKS: bool;

    /// The word at `place` of a bank.
    fn word(self, bank: u16, place: u16) -> u32;
}

impl Words for &[u32; BANK] {
    const BANKS: bool = false;

    #[inline(always)]
    fn word(self, _: u16, place: u16) -> u32 {
        self[usize::from(place)]
    }
}

impl Words for &[u32] {
    const BANKS: bool = true;

    #[inline(always)]
    fn word(self, bank: u16, place: u16) -> u32 {
        self[filter::index(bank, place, self.len())]
    }
}

/// What is known of a chunk, before its words are fetched.
#[derive(Clone)]
struct Chunk {
    weak: Grid<u32>,
    places: Grid<u16>,
    banks: Grid<u16>,
}

impl Chunk {
    const EMPTY: Self = Self {
        weak: [[0; LANES]; CHUNK],
        places: [[0; LANES]; CHUNK],
        banks: [[0; LANES]; CHUNK],
    };
}

struct Run<'d, W> {
    simd: V3,
    words: W,
    sweep: LaneSweep<'d, Rollsum>,
}

impl<W: Words> NullaryFnOnce for Run<'_, W> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { simd, words, sweep } = self;
        let lane_len = sweep.leaving[0].len();
        let mut leaving: [&[[u8; CHUNK]]; LANES] = [&[]; LANES];
        let mut entering = leaving;
        for lane in 0..LANES {
            (leaving[lane], _) = as_arrays(sweep.leaving[lane]);
            (entering[lane], _) = as_arrays(sweep.entering[lane]);
        }
        let chunks = lane_len / CHUNK;
        let mut sums = Sums::new(simd, &sweep.sums);
        let bits = Bits::new();
        let (mut one, mut two, mut three) = (Chunk::EMPTY, Chunk::EMPTY, Chunk::EMPTY);
        let (mut summed, mut fetched, mut tested) = (&mut one, &mut two, &mut three);
        let (mut one, mut two) = ([[0; LANES]; CHUNK], [[0; LANES]; CHUNK]);
        let (mut found, mut found_before) = (&mut one, &mut two);
        // The last two rounds sum up what is never looked at.
        for round in 0..chunks + 2 {
            let chunk = round.min(chunks - 1);
            let moves = moves(
                simd,
                rows(simd, &entering, chunk),
                rows(simd, &leaving, chunk),
            );
            for step in 0..CHUNK {
                summed.weak[step] = cast(sums.digests(simd));
                summed.places[step] = cast(places(simd, &sums));
                if W::BANKS {
                    summed.banks[step] = cast(banks(simd, &sums));
                }
                sums.rotate(simd, moves[step]);
                for (lane, slot) in SLOT.into_iter().enumerate() {
                    let (bank, place) = (fetched.banks[step][lane], fetched.places[step][lane]);
                    found[step][slot] = words.word(bank, place);
                }
                let hits = bits.hits(simd, cast(tested.weak[step]), cast(found_before[step]));
                if hits != 0 && round >= 2 {
                    let at = (round - 2) * CHUNK + step;
                    report(hits, &tested.weak[step], at, lane_len, sweep.suspects);
                }
            }
            (summed, fetched, tested) = (tested, summed, fetched);
            (found, found_before) = (found_before, found);
        }
    }
}

/// The two halves of the sums of all lanes.
struct Sums {
    s1: __m256i,
    s2: __m256i,
    /// The length of the windows, and what [`CHAR_OFFSET`] makes of it.
    count: __m256i,
    offsets: __m256i,
}

impl Sums {
    #[inline(always)]
    fn new(simd: V3, sums: &[Rollsum; LANES]) -> Self {
        let (mut s1, mut s2) = ([0; LANES], [0; LANES]);
        for lane in 0..LANES {
            (s1[lane], s2[lane]) = (sums[lane].s1 as u16, sums[lane].s2 as u16);
        }
        let count = sums[0].count;
        let all = |value: u32| simd.avx._mm256_set1_epi16(value as i16);
        Self {
            s1: cast(s1),
            s2: cast(s2),
            count: all(count),
            offsets: all(count.wrapping_mul(CHAR_OFFSET)),
        }
    }

    /// The sums as they stand in a signature, in the order of [`SLOT`].
    #[inline(always)]
    fn digests(&self, simd: V3) -> [__m256i; 2] {
        [
            simd.avx2._mm256_unpacklo_epi16(self.s1, self.s2),
            simd.avx2._mm256_unpackhi_epi16(self.s1, self.s2),
        ]
    }

    /// Moves each window on by one byte: of each pair in `moves` the lower one enters, the upper one leaves.
    #[inline(always)]
    fn rotate(&mut self, simd: V3, moves: __m256i) {
        const ENTER_LESS_LEAVE: i16 = i16::from_le_bytes([1, -1_i8 as u8]);
        let simd = simd.avx2;
        let signs = splat(ENTER_LESS_LEAVE);
        let out = simd._mm256_srli_epi16::<8>(moves);
        let gone = simd._mm256_add_epi16(simd._mm256_mullo_epi16(out, self.count), self.offsets);
        self.s1 = simd._mm256_add_epi16(self.s1, simd._mm256_maddubs_epi16(moves, signs));
        self.s2 = simd._mm256_add_epi16(self.s2, simd._mm256_sub_epi16(self.s1, gone));
    }
}

/// The same number in all lanes.
#[inline(always)]
fn splat(value: i16) -> __m256i {
    cast([value; LANES])
}

/// [`filter::place`] for all lanes.
#[inline(always)]
fn places(simd: V3, sums: &Sums) -> __m256i {
    let simd = simd.avx2;
    let mixed = simd._mm256_mulhi_epu16(sums.s1, splat(PLACE_FACTOR as i16));
    simd._mm256_add_epi16(sums.s2, mixed)
}

/// `filter::bank` for all lanes.
#[inline(always)]
fn banks(simd: V3, sums: &Sums) -> __m256i {
    let simd = simd.avx2;
    let mixed = simd._mm256_mulhi_epu16(sums.s2, splat(BANK_FACTOR as i16));
    simd._mm256_add_epi16(simd._mm256_srli_epi16::<BANK_SHIFT>(sums.s1), mixed)
}

/// Compares the bits of sums with words of the filter.
struct Bits {
    /// For each choice of a bit in a byte that bit.
    bits: __m256i,
}

impl Bits {
    #[inline(always)]
    fn new() -> Self {
        let mut bits = [0u8; 32];
        for (i, bit) in bits.iter_mut().enumerate() {
            *bit = 1 << (i % 8);
        }
        Self { bits: cast(bits) }
    }

    /// Two bits for each lane, all set where the filter has its sum.
    #[inline(always)]
    fn hits(&self, simd: V3, weak: [__m256i; 2], words: [__m256i; 2]) -> u32 {
        let simd = simd.avx2;
        let choice = cast([BIT_CHOICE; 32]);
        let first = simd._mm256_shuffle_epi8(self.bits, simd._mm256_and_si256(weak[0], choice));
        let second = simd._mm256_shuffle_epi8(self.bits, simd._mm256_and_si256(weak[1], choice));
        let hits = simd._mm256_packs_epi32(
            simd._mm256_cmpeq_epi32(simd._mm256_and_si256(words[0], first), first),
            simd._mm256_cmpeq_epi32(simd._mm256_and_si256(words[1], second), second),
        );
        simd._mm256_movemask_epi8(hits) as u32
    }
}

/// Writes down the lanes that are marked, at their position `at`.
#[inline(never)]
fn report(mut hits: u32, weak: &[u32; LANES], at: usize, lane_len: usize, suspects: &mut Suspects) {
    while hits != 0 {
        let lane = hits.trailing_zeros() as usize / 2;
        hits &= !(3 << (2 * lane));
        suspects[lane].push(Suspect {
            // A window is far shorter than 4 GiB.
            at: (lane * lane_len + at) as u32,
            weak: weak[SLOT[lane]],
        });
    }
}

/// The bytes of a chunk, two lanes in a register: one of the first eight and its fellow of the others.
#[inline(always)]
fn rows(simd: V3, lanes: &[&[[u8; CHUNK]]; LANES], chunk: usize) -> [__m256i; LANES / 2] {
    let mut rows = [cast([0u8; 32]); LANES / 2];
    for (lane, row) in rows.iter_mut().enumerate() {
        let low: __m128i = cast(lanes[lane][chunk]);
        let high: __m128i = cast(lanes[lane + LANES / 2][chunk]);
        let low = simd.avx._mm256_castsi128_si256(low);
        *row = simd.avx2._mm256_inserti128_si256::<1>(low, high);
    }
    rows
}

/// For each position the bytes that enter and leave at all lanes, in pairs.
#[inline(always)]
fn moves(
    simd: V3,
    entering: [__m256i; LANES / 2],
    leaving: [__m256i; LANES / 2],
) -> [__m256i; CHUNK] {
    let (mut front, mut back) = (entering, leaving);
    for lane in 0..LANES / 2 {
        front[lane] = simd
            .avx2
            ._mm256_unpacklo_epi8(entering[lane], leaving[lane]);
        back[lane] = simd
            .avx2
            ._mm256_unpackhi_epi8(entering[lane], leaving[lane]);
    }
    let (front, back) = (turn(simd, front), turn(simd, back));
    let mut moves = [front[0]; CHUNK];
    // Not `copy_from_slice`, which would be a call.
    for step in 0..CHUNK / 2 {
        (moves[step], moves[step + CHUNK / 2]) = (front[step], back[step]);
    }
    moves
}

/// Makes columns of rows: eight 16-bit numbers in each half of a register.
#[inline(always)]
fn turn(simd: V3, mut rows: [__m256i; 8]) -> [__m256i; 8] {
    for _ in 0..3 {
        let old = rows;
        for i in 0..4 {
            rows[2 * i] = simd.avx2._mm256_unpacklo_epi16(old[i], old[i + 4]);
            rows[2 * i + 1] = simd.avx2._mm256_unpackhi_epi16(old[i], old[i + 4]);
        }
    }
    rows
}

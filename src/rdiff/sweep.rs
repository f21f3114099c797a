//! A first look at a stretch of the source: at which positions stands a block whose weak sum passes the
//! filter?

use pulp::{Arch, Simd, WithSimd};

use super::filter::Filter;
use super::lanes::{LANES, Lane, WeakLanes};
use super::rollsum::WeakSum;

/// A position of the source, with the weak sum of the block that begins there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Suspect {
    pub(crate) at: u32,
    pub(crate) weak: u32,
}

/// What a sweep found, lane by lane: in the order of the positions.
pub(crate) type Suspects = [Vec<Suspect>; LANES];

/// Bytes that a lane takes from the source at once.
const STEP: usize = size_of::<u32>();

/// Positions of each lane that are looked at before any is written down.
const CHUNK: usize = 8 * STEP;

/// Positions that are not worth the lanes.
const FEW: usize = LANES * CHUNK;

/// Puts into `suspects` the positions of `data` whose blocks pass the filter.
///
/// Looks at about `positions` of them from the front on, at most at those with a whole block behind them,
/// and returns at how many it looked.
pub(crate) fn sweep<L: WeakLanes>(
    arch: Arch,
    filter: &Filter,
    data: &[u8],
    block_len: usize,
    positions: usize,
    suspects: &mut Suspects,
) -> usize {
    suspects.iter_mut().for_each(Vec::clear);
    // The windows are moved on beyond the last position that they are looked at.
    let behind = data.len() - block_len;
    if positions.min(behind) < FEW {
        let positions = positions.min(behind + 1);
        sweep_singly::<L::Sum>(
            filter,
            &data[..positions + block_len - 1],
            block_len,
            &mut suspects[0],
        );
        return positions;
    }
    let lane_len = lane_len(positions.min(behind));
    let lanes = LaneSweep {
        filter,
        sums: arch.dispatch(FirstWindows {
            data,
            block_len,
            lane_len,
            sums: std::marker::PhantomData,
        }),
        leaving: std::array::from_fn(|lane| &data[lane * lane_len..][..lane_len]),
        entering: std::array::from_fn(|lane| &data[lane * lane_len + block_len..][..lane_len]),
        suspects,
    };
    L::sweep(arch, lanes);
    lane_len * LANES
}

/// How many of `positions` each lane takes.
fn lane_len(positions: usize) -> usize {
    const LINE: usize = 64;
    let len = positions / LANES / CHUNK * CHUNK;
    // Lanes far apart: an odd number of cache lines, so that they do not crowd into one part of the cache.
    match len / LINE {
        0..16 => len,
        lines => ((lines - 1) | 1) * LINE,
    }
}

/// The first window of each lane.
struct FirstWindows<'d, W> {
    data: &'d [u8],
    block_len: usize,
    lane_len: usize,
    sums: std::marker::PhantomData<W>,
}

impl<W: WeakSum> WithSimd for FirstWindows<'_, W> {
    type Output = [W; LANES];

    /// Their sums.
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> [W; LANES] {
        let Self {
            data,
            block_len,
            lane_len,
            ..
        } = self;
        let mut sums = [W::of(&data[..block_len]); LANES];
        for lane in 1..LANES {
            let (from, to) = ((lane - 1) * lane_len, lane * lane_len);
            sums[lane] = if lane_len < block_len / 2 {
                let mut sum = sums[lane - 1];
                sum.skip(&data[from..to], &data[from + block_len..to + block_len]);
                sum
            } else {
                W::of(&data[to..to + block_len])
            };
        }
        sums
    }
}

/// Looks at each position of `data`, one after the other.
fn sweep_singly<W: WeakSum>(
    filter: &Filter,
    data: &[u8],
    block_len: usize,
    suspects: &mut Vec<Suspect>,
) {
    let mut sum = W::of(&data[..block_len]);
    let positions = data.len() - block_len + 1;
    for at in 0..positions {
        let weak = sum.digest();
        if filter.has(weak) {
            suspects.push(Suspect {
                at: at as u32,
                weak,
            });
        }
        if at + 1 < positions {
            sum.rotate(data[at], data[at + block_len]);
        }
    }
}

/// A sweep in lanes, each of which goes along a part of the stretch.
pub(crate) struct LaneSweep<'d, W> {
    pub(crate) filter: &'d Filter,
    /// The sums of the lanes' first windows.
    pub(crate) sums: [W; LANES],
    /// For each lane the bytes that leave its window, and those that enter: as many, in whole chunks.
    pub(crate) leaving: [&'d [u8]; LANES],
    pub(crate) entering: [&'d [u8]; LANES],
    pub(crate) suspects: &'d mut Suspects,
}

impl<W: WeakSum> LaneSweep<'_, W> {
    /// Does it in plain arithmetic, as vectors where the compiler finds a way.
    pub(crate) fn plainly<L: WeakLanes<Sum = W>>(self, arch: Arch) {
        let lanes = L::new(self.sums);
        arch.dispatch(PlainSweep { sweep: self, lanes });
    }
}

struct PlainSweep<'d, L: WeakLanes> {
    sweep: LaneSweep<'d, L::Sum>,
    lanes: L,
}

impl<L: WeakLanes> WithSimd for PlainSweep<'_, L> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { sweep, mut lanes } = self;
        let lane_len = sweep.leaving[0].len();
        let mut weak = [Lane::default(); CHUNK];
        for at in (0..lane_len).step_by(CHUNK) {
            let leaving = chunks_at(&sweep.leaving, at);
            let entering = chunks_at(&sweep.entering, at);
            for step in 0..CHUNK / STEP {
                let (out, into) = (words_at(&leaving, step), words_at(&entering, step));
                for byte in 0..STEP {
                    weak[step * STEP + byte] = lanes.digests();
                    lanes.rotate(bytes_of(out, byte), bytes_of(into, byte));
                }
            }
            for (i, sums) in weak.iter().enumerate() {
                for (lane, &weak) in sums.iter().enumerate() {
                    if sweep.filter.has(weak) {
                        // A window is far shorter than 4 GiB.
                        let at = (lane * lane_len + at + i) as u32;
                        sweep.suspects[lane].push(Suspect { at, weak });
                    }
                }
            }
        }
    }
}

/// The next [`CHUNK`] bytes of each lane.
#[inline(always)]
fn chunks_at<'d>(lanes: &[&'d [u8]; LANES], at: usize) -> [&'d [u8; CHUNK]; LANES] {
    std::array::from_fn(|lane| match lanes[lane][at..].first_chunk() {
        Some(chunk) => chunk,
        None => unreachable!("a lane is made of whole chunks"),
    })
}

/// [`STEP`] bytes of each lane.
#[inline(always)]
fn words_at(lanes: &[&[u8; CHUNK]; LANES], step: usize) -> Lane {
    std::array::from_fn(|lane| match lanes[lane][step * STEP..].first_chunk() {
        Some(bytes) => u32::from_le_bytes(*bytes),
        None => unreachable!("a chunk is made of whole steps"),
    })
}

/// One byte of each lane's [`STEP`].
#[inline(always)]
fn bytes_of(words: Lane, byte: usize) -> Lane {
    words.map(|word| word >> (8 * byte) & 0xff)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rdiff::lanes::{RabinKarpLanes, RollsumLanes};

    fn noise(len: usize) -> Vec<u8> {
        (0..len as u32)
            .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect()
    }

    /// The same stretch position by position, and in lanes with and without vectors, with filters that are a
    /// part of a bank, a bank, and several.
    fn all_ways_agree<L: WeakLanes>() {
        let data = noise(9000);
        for blocks in [5000, 70_000, 300_000] {
            let mut filter = Filter::for_blocks(blocks).expect("memory");
            for block in data.windows(16).step_by(5) {
                filter.add(L::Sum::of(block).digest());
            }
            let lens = (0..300)
                .chain((FEW - 8..3 * FEW).step_by(7))
                .chain([4096, 8000]);
            for (start, len) in lens.enumerate() {
                for block_len in [1, 16, 700] {
                    ways_agree::<L>(&filter, &data[start % 64..][..len + block_len], block_len);
                }
            }
        }
    }

    fn ways_agree<L: WeakLanes>(filter: &Filter, data: &[u8], block_len: usize) {
        let positions = data.len() - block_len + 1;
        for arch in [Arch::new(), Arch::Scalar] {
            let mut found = Suspects::default();
            let swept = sweep::<L>(arch, filter, data, block_len, positions, &mut found);
            assert!(
                swept >= positions / 2 && swept <= positions,
                "{swept} of {positions}"
            );
            let mut plain = Vec::new();
            let data = &data[..swept + block_len - 1];
            sweep_singly::<L::Sum>(filter, data, block_len, &mut plain);
            assert_eq!(found.concat(), plain);
            assert!(block_len != 16 || plain.len() >= swept / 5);
        }
    }

    #[test]
    fn all_ways_to_sweep_rollsums_agree() {
        all_ways_agree::<RollsumLanes>();
    }

    #[test]
    fn all_ways_to_sweep_rabin_karp_agree() {
        all_ways_agree::<RabinKarpLanes>();
    }

    #[test]
    fn lanes_share_nearly_all_positions() {
        for positions in FEW..5000 {
            let len = lane_len(positions);
            assert!(len % STEP == 0 && len * LANES <= positions);
            assert!(len * LANES > positions / 2, "{len} of {positions}");
        }
    }
}

//! The weak sums of many windows that move in step, each in a lane of its own.
//!
//! A rolling sum hangs on the one before it, so one window alone keeps a processor waiting. Windows on
//! different stretches of the same data know nothing of each other. All is plain arithmetic on arrays, which
//! the compiler turns into vectors where [`pulp`] has found that the machine has them.

use pulp::Arch;

use super::rollsum::{CHAR_OFFSET, RabinKarp, Rollsum, WeakSum};
use super::sweep::LaneSweep;

/// Windows that move together: the 16-bit lanes of an AVX2 register.
pub(crate) const LANES: usize = 16;

/// One number of each window.
pub(crate) type Lane = [u32; LANES];

/// The sums of [`LANES`] windows of the same length.
pub(crate) trait WeakLanes {
    /// The sum of one window.
    type Sum: WeakSum;

    /// Puts the sums of the windows side by side.
    fn new(sums: [Self::Sum; LANES]) -> Self;

    /// The sums as they stand in a signature.
    fn digests(&self) -> Lane;

    /// Moves each window on by one byte.
    fn rotate(&mut self, out: Lane, into: Lane);

    /// Sweeps in the best way that there is for this sum on this machine.
    fn sweep(arch: Arch, sweep: LaneSweep<'_, Self::Sum>)
    where
        Self: Sized,
    {
        sweep.plainly::<Self>(arch);
    }
}

/// [`Rollsum`] in lanes.
pub(crate) struct RollsumLanes {
    /// The length of the windows, of which 16 bits matter.
    count: u32,
    s1: Lane,
    s2: Lane,
}

impl WeakLanes for RollsumLanes {
    type Sum = Rollsum;

    fn new(sums: [Rollsum; LANES]) -> Self {
        Self {
            count: sums[0].count & 0xffff,
            s1: sums.map(|sum| sum.s1),
            s2: sums.map(|sum| sum.s2),
        }
    }

    #[inline(always)]
    fn digests(&self) -> Lane {
        std::array::from_fn(|lane| self.s2[lane] << 16 | self.s1[lane] & 0xffff)
    }

    #[inline(always)]
    fn rotate(&mut self, out: Lane, into: Lane) {
        let offsets = self.count.wrapping_mul(CHAR_OFFSET);
        for lane in 0..LANES {
            let s1 = &mut self.s1[lane];
            *s1 = s1.wrapping_add(into[lane]).wrapping_sub(out[lane]);
            self.s2[lane] = self.s2[lane]
                .wrapping_add(*s1)
                .wrapping_sub(offsets)
                .wrapping_sub(self.count.wrapping_mul(out[lane]));
        }
    }

    fn sweep(arch: Arch, sweep: LaneSweep<'_, Rollsum>) {
        match arch {
            #[cfg(target_arch = "x86_64")]
            Arch::V3(simd) => super::avx2::sweep(simd, sweep),
            _ => sweep.plainly::<Self>(arch),
        }
    }
}

/// [`RabinKarp`] in lanes.
pub(crate) struct RabinKarpLanes {
    power: u32,
    hash: Lane,
}

impl WeakLanes for RabinKarpLanes {
    type Sum = RabinKarp;

    fn new(sums: [RabinKarp; LANES]) -> Self {
        Self {
            power: sums[0].power,
            hash: sums.map(|sum| sum.hash),
        }
    }

    #[inline(always)]
    fn digests(&self) -> Lane {
        self.hash
    }

    #[inline(always)]
    fn rotate(&mut self, out: Lane, into: Lane) {
        for lane in 0..LANES {
            let gone = self
                .power
                .wrapping_mul(out[lane].wrapping_add(RabinKarp::ADJUSTMENT));
            self.hash[lane] = self.hash[lane]
                .wrapping_mul(RabinKarp::MULTIPLIER)
                .wrapping_add(into[lane])
                .wrapping_sub(gone);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes_move_like_single_sums<L: WeakLanes>() {
        let data: Vec<u8> = (0..3500u32).map(|i| ((i * i) >> 5) as u8).collect();
        for (len, step) in [(1, 1), (7, 100), (64, 31), (300, 150)] {
            let mut sums: [L::Sum; LANES] =
                std::array::from_fn(|lane| L::Sum::of(&data[lane * step..lane * step + len]));
            let mut lanes = L::new(sums);
            for at in 0..200 {
                assert_eq!(
                    lanes.digests(),
                    std::array::from_fn(|lane| sums[lane].digest())
                );
                let byte = |lane: usize, at: usize| data[lane * step + at];
                lanes.rotate(
                    std::array::from_fn(|lane| byte(lane, at).into()),
                    std::array::from_fn(|lane| byte(lane, at + len).into()),
                );
                for (lane, sum) in sums.iter_mut().enumerate() {
                    sum.rotate(byte(lane, at), byte(lane, at + len));
                }
            }
        }
    }

    #[test]
    fn rollsum_lanes_move_like_single_sums() {
        lanes_move_like_single_sums::<RollsumLanes>();
    }

    #[test]
    fn rabin_karp_lanes_move_like_single_sums() {
        lanes_move_like_single_sums::<RabinKarpLanes>();
    }
}

//! The weak sums: cheap to move along a file by one byte, so that a block is found at any offset.

/// A weak sum of the bytes in a window.
pub trait WeakSum: Copy {
    /// The sum of no bytes.
    fn new() -> Self;

    /// Takes in the bytes that follow the window.
    fn extend(&mut self, bytes: &[u8]);

    /// Moves the window on by one byte: `out` leaves at the front, `into` enters at the end.
    fn rotate(&mut self, out: u8, into: u8);

    /// Moves the window on by as many bytes as there are in `out` and in `into`.
    fn skip(&mut self, out: &[u8], into: &[u8]) {
        for (&out, &into) in out.iter().zip(into) {
            self.rotate(out, into);
        }
    }

    /// Drops the first byte of the window.
    fn roll_out(&mut self, out: u8);

    /// The sum as it stands in a signature.
    fn digest(&self) -> u32;

    /// The sum of `block`.
    #[inline(always)]
    fn of(block: &[u8]) -> Self {
        let mut sum = Self::new();
        sum.extend(block);
        sum
    }
}

/// rsync's sum: `s1` adds up the bytes, `s2` adds up the values that `s1` had.
///
/// Both count modulo 2^16. They are kept in 32 bits and cut when asked for, which is the same.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rollsum {
    pub(super) count: u32,
    pub(super) s1: u32,
    pub(super) s2: u32,
}

/// librsync adds this to every byte, so that runs of zeroes of different lengths differ.
pub(super) const CHAR_OFFSET: u32 = 31;

/// Bytes that [`Rollsum::extend`] takes at once: enough for the compiler to use whole vectors.
const STRIDE: usize = 32;

impl Rollsum {
    #[inline(always)]
    fn extend_stride(&mut self, bytes: &[u8; STRIDE]) {
        let (mut sum, mut weighted) = (0u16, 0u16);
        for (i, &byte) in bytes.iter().enumerate() {
            let byte = u16::from(byte);
            sum += byte;
            weighted = weighted.wrapping_add(byte * (STRIDE - i) as u16);
        }
        self.s2 = self
            .s2
            .wrapping_add(self.s1.wrapping_mul(STRIDE as u32))
            .wrapping_add(u32::from(weighted));
        self.s1 = self.s1.wrapping_add(u32::from(sum));
    }

    /// The sum of `len` bytes whose plain values add up to `s1` and `s2`.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn of_values(s1: u32, s2: u32, len: usize) -> Self {
        // Only the low 16 bits of a length matter.
        let count = len as u32;
        let mut sum = Self { count, s1, s2 };
        sum.add_offsets(count);
        sum
    }

    /// What [`CHAR_OFFSET`] adds for `len` bytes, after their plain values were added.
    fn add_offsets(&mut self, len: u32) {
        let triangle = if len % 2 == 0 {
            (len / 2).wrapping_mul(len.wrapping_add(1))
        } else {
            len.wrapping_mul(len / 2 + 1)
        };
        self.s1 = self.s1.wrapping_add(len.wrapping_mul(CHAR_OFFSET));
        self.s2 = self.s2.wrapping_add(triangle.wrapping_mul(CHAR_OFFSET));
    }
}

impl WeakSum for Rollsum {
    fn new() -> Self {
        Self::default()
    }

    #[inline(always)]
    fn extend(&mut self, bytes: &[u8]) {
        let mut strides = bytes.chunks_exact(STRIDE);
        for stride in &mut strides {
            if let Ok(stride) = stride.try_into() {
                self.extend_stride(stride);
            }
        }
        for &byte in strides.remainder() {
            self.s1 = self.s1.wrapping_add(u32::from(byte));
            self.s2 = self.s2.wrapping_add(self.s1);
        }
        // Only the low 16 bits of a length matter.
        let len = bytes.len() as u32;
        self.add_offsets(len);
        self.count = self.count.wrapping_add(len);
    }

    #[inline]
    fn rotate(&mut self, out: u8, into: u8) {
        let (out, into) = (u32::from(out), u32::from(into));
        self.s1 = self.s1.wrapping_add(into).wrapping_sub(out);
        self.s2 = self
            .s2
            .wrapping_add(self.s1)
            .wrapping_sub(self.count.wrapping_mul(out + CHAR_OFFSET));
    }

    fn skip(&mut self, out: &[u8], into: &[u8]) {
        let count = self.count;
        self.extend(into);
        // What is left stood behind all of `out`, so each of its bytes counted once more for each byte left.
        let gone = Self::of(out);
        self.s1 = self.s1.wrapping_sub(gone.s1);
        self.s2 = self
            .s2
            .wrapping_sub(gone.s2)
            .wrapping_sub(gone.s1.wrapping_mul(count));
        self.count = count;
    }

    fn roll_out(&mut self, out: u8) {
        let value = u32::from(out) + CHAR_OFFSET;
        self.s1 = self.s1.wrapping_sub(value);
        self.s2 = self.s2.wrapping_sub(self.count.wrapping_mul(value));
        self.count = self.count.wrapping_sub(1);
    }

    #[inline]
    fn digest(&self) -> u32 {
        self.s2 << 16 | self.s1 & 0xffff
    }
}

/// librsync's polynomial sum modulo 2^32.
#[derive(Clone, Copy, Debug)]
pub struct RabinKarp {
    pub(super) hash: u32,
    /// `MULTIPLIER` to the power of the window's length.
    pub(super) power: u32,
}

impl RabinKarp {
    /// The sum of no bytes; makes runs of zeroes of different lengths differ.
    const SEED: u32 = 1;
    pub(super) const MULTIPLIER: u32 = 0x0810_4225;
    /// `MULTIPLIER * INVERSE` is 1 modulo 2^32.
    const INVERSE: u32 = 0x98f0_09ad;
    /// Takes the seed's share out when a byte leaves.
    pub(super) const ADJUSTMENT: u32 = (Self::MULTIPLIER - 1).wrapping_mul(Self::SEED);
    const MULTIPLIER_2: u32 = Self::MULTIPLIER.wrapping_mul(Self::MULTIPLIER);
    const MULTIPLIER_3: u32 = Self::MULTIPLIER_2.wrapping_mul(Self::MULTIPLIER);
    const MULTIPLIER_4: u32 = Self::MULTIPLIER_2.wrapping_mul(Self::MULTIPLIER_2);

    /// Four bytes for one step of the slow chain of multiplications.
    fn extend_four(hash: u32, bytes: &[u8]) -> u32 {
        let factors = [Self::MULTIPLIER_3, Self::MULTIPLIER_2, Self::MULTIPLIER, 1];
        let new = bytes
            .iter()
            .zip(factors)
            .fold(0u32, |sum, (&byte, factor)| {
                sum.wrapping_add(u32::from(byte).wrapping_mul(factor))
            });
        hash.wrapping_mul(Self::MULTIPLIER_4).wrapping_add(new)
    }

    fn power(len: usize) -> u32 {
        // The powers repeat after 2^30 steps, so the low 32 bits of a length are enough.
        Self::MULTIPLIER.wrapping_pow(len as u32)
    }
}

impl WeakSum for RabinKarp {
    fn new() -> Self {
        Self {
            hash: Self::SEED,
            power: 1,
        }
    }

    fn extend(&mut self, bytes: &[u8]) {
        let fours = bytes.chunks_exact(4);
        let rest = fours.remainder();
        self.hash = fours.fold(self.hash, Self::extend_four);
        self.hash = rest.iter().fold(self.hash, |hash, &byte| {
            hash.wrapping_mul(Self::MULTIPLIER)
                .wrapping_add(u32::from(byte))
        });
        self.power = self.power.wrapping_mul(Self::power(bytes.len()));
    }

    #[inline]
    fn rotate(&mut self, out: u8, into: u8) {
        let gone = self
            .power
            .wrapping_mul(u32::from(out).wrapping_add(Self::ADJUSTMENT));
        self.hash = self
            .hash
            .wrapping_mul(Self::MULTIPLIER)
            .wrapping_add(u32::from(into))
            .wrapping_sub(gone);
    }

    fn roll_out(&mut self, out: u8) {
        self.power = self.power.wrapping_mul(Self::INVERSE);
        let gone = self
            .power
            .wrapping_mul(u32::from(out).wrapping_add(Self::ADJUSTMENT));
        self.hash = self.hash.wrapping_sub(gone);
    }

    #[inline]
    fn digest(&self) -> u32 {
        self.hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, one byte at a time, as rsync's paper has it.
    fn plain_rollsum(block: &[u8]) -> u32 {
        let (mut s1, mut s2) = (0u16, 0u16);
        for &byte in block {
            s1 = s1.wrapping_add(u16::from(byte) + 31);
            s2 = s2.wrapping_add(s1);
        }
        u32::from(s2) << 16 | u32::from(s1)
    }

    fn plain_rabin_karp(block: &[u8]) -> u32 {
        block.iter().fold(1u32, |hash, &byte| {
            hash.wrapping_mul(0x0810_4225).wrapping_add(u32::from(byte))
        })
    }

    fn noise(len: usize) -> Vec<u8> {
        let mut state = 0x1234_5678_9abc_def1u64;
        let mut byte = || {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 56) as u8
        };
        (0..len).map(|_| byte()).collect()
    }

    #[test]
    fn all_lengths_and_alignments_agree_with_the_definition() {
        let data = noise(400);
        for start in 0..64 {
            for len in 0..300 {
                let block = &data[start..start + len];
                assert_eq!(Rollsum::of(block).digest(), plain_rollsum(block));
                assert_eq!(RabinKarp::of(block).digest(), plain_rabin_karp(block));
            }
        }
    }

    #[test]
    fn long_blocks_agree_with_the_definition() {
        for len in [65535, 65536, 65537, 200_000] {
            let mut block = noise(len);
            assert_eq!(Rollsum::of(&block).digest(), plain_rollsum(&block));
            assert_eq!(RabinKarp::of(&block).digest(), plain_rabin_karp(&block));
            block.fill(0xff);
            assert_eq!(Rollsum::of(&block).digest(), plain_rollsum(&block));
        }
    }

    fn moves_like_a_fresh_sum<W: WeakSum>() {
        let data = noise(600);
        for len in [1, 2, 7, 64, 300] {
            let mut rolled = W::of(&data[..len]);
            for start in 1..data.len() - len {
                rolled.rotate(data[start - 1], data[start - 1 + len]);
                assert_eq!(rolled.digest(), W::of(&data[start..start + len]).digest());
            }
            let mut shrinking = W::of(&data[..len]);
            for start in 1..=len {
                shrinking.roll_out(data[start - 1]);
                assert_eq!(shrinking.digest(), W::of(&data[start..len]).digest());
            }
            for step in [0, 1, len, 299] {
                let mut skipped = W::of(&data[..len]);
                skipped.skip(&data[..step], &data[len..len + step]);
                let fresh = W::of(&data[step..len + step]);
                assert_eq!(skipped.digest(), fresh.digest());
                skipped.rotate(data[step], 7);
                let mut rotated = fresh;
                rotated.rotate(data[step], 7);
                assert_eq!(skipped.digest(), rotated.digest());
            }
            let mut grown = W::of(&data[..len]);
            grown.extend(&data[len..]);
            assert_eq!(grown.digest(), W::of(&data).digest());
        }
    }

    #[test]
    fn rollsum_moves_like_a_fresh_sum() {
        moves_like_a_fresh_sum::<Rollsum>();
    }

    #[test]
    fn rabin_karp_moves_like_a_fresh_sum() {
        moves_like_a_fresh_sum::<RabinKarp>();
    }
}

//! Input that is taken while output waits.
//!
//! Two peers that both write and do not read wait for each other for ever once the buffers between them are full. So
//! whoever is refused a write looks for input, keeps it here, and hands it out at the next reads.

use std::io;

/// What is taken at once.
const STEP: usize = 64 * 1024;

/// Input that came while output waited, up to a bound. Beyond it nothing more is taken, and the peer has to wait.
#[derive(Debug)]
pub struct EarlyInput {
    bytes: Vec<u8>,
    taken: usize,
    bound: usize,
    total: u64,
}

impl EarlyInput {
    /// The bound by default: 16 MiB.
    pub const BOUND: usize = 16 << 20;

    /// Nothing yet; holds `bound` bytes at most.
    pub fn new(bound: usize) -> Self {
        Self {
            bytes: Vec::new(),
            taken: 0,
            bound,
            total: 0,
        }
    }

    /// Moves bytes that came early to `buf`; 0 where there are none.
    pub fn take(&mut self, buf: &mut [u8]) -> usize {
        let waiting = &self.bytes[self.taken..];
        let count = waiting.len().min(buf.len());
        buf[..count].copy_from_slice(&waiting[..count]);
        self.taken += count;
        if self.taken == self.bytes.len() {
            self.bytes = Vec::new();
            self.taken = 0;
        }
        count
    }

    /// How many bytes have come early, ever.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Whether more may be taken.
    pub fn has_room(&self) -> bool {
        self.bytes.len() - self.taken < self.bound
    }

    /// Takes what `read` gives without waiting, until it is refused, ends, or the bound is reached. What `read`
    /// answers then shows again at the next real read.
    pub fn fill(&mut self, mut read: impl FnMut(&mut [u8]) -> io::Result<usize>) {
        self.forget_taken();
        while self.has_room() {
            let start = self.bytes.len();
            self.bytes.resize(start + STEP, 0);
            let count = read(&mut self.bytes[start..]).unwrap_or(0);
            self.bytes.truncate(start + count);
            self.total += count as u64;
            if count == 0 {
                break;
            }
        }
    }

    /// Without this, a peer that is always ahead would make the buffer grow for ever. Only once half of it was handed
    /// out: each byte is moved once at most, on average.
    fn forget_taken(&mut self) {
        if self.taken > self.bytes.len() / 2 {
            self.bytes.drain(..self.taken);
            self.taken = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_out_in_order_and_the_bound_holds() {
        let mut early = EarlyInput::new(100_000);
        let mut next = 0_u32;
        let mut endless = |buf: &mut [u8]| {
            buf.fill_with(|| {
                next += 1;
                next as u8
            });
            Ok(buf.len())
        };
        early.fill(&mut endless);
        assert!(!early.has_room());
        let mut out = vec![0; 300_000];
        let count = early.take(&mut out);
        assert_eq!(count, 2 * STEP);
        assert!(
            out[..count]
                .iter()
                .zip(1_u32..)
                .all(|(byte, number)| *byte == number as u8)
        );
        assert_eq!(early.take(&mut out), 0);
        assert!(early.has_room());
    }

    #[test]
    fn a_peer_that_is_always_ahead_does_not_make_it_grow() {
        let mut early = EarlyInput::new(100_000);
        let mut next = 0_u32;
        let mut expected = 0_u32;
        for _ in 0..1000 {
            early.fill(|buf| {
                buf.fill_with(|| {
                    next += 1;
                    next as u8
                });
                Ok(buf.len())
            });
            let mut out = vec![0; 50_000];
            assert_eq!(early.take(&mut out), out.len());
            for byte in out {
                expected += 1;
                assert_eq!(byte, expected as u8);
            }
            assert!(early.bytes.len() < 8 * STEP);
        }
        assert_eq!(early.total(), u64::from(next));
    }
}

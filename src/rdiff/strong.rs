//! The strong sums: they alone decide that two blocks are equal.

use ::md4::{Digest, Md4};
use blake2::Blake2b;
use blake2::digest::consts::U32;
use pulp::Arch;

#[cfg(target_arch = "x86_64")]
use super::avx2::{MD4_LANES, md4};
use super::format::StrongKind;

/// A whole strong sum; the bytes behind a shorter kind are zero.
pub(crate) type StrongSum = [u8; 32];

/// The records of csync2's kind of signature for the blocks in `data`, several blocks hashed at a time.
pub(crate) fn md4_records(block_len: u32, strong_len: u32, data: &[u8]) -> fast_rsync::Signature {
    let options = fast_rsync::SignatureOptions {
        block_size: block_len,
        crypto_hash_size: strong_len,
    };
    fast_rsync::Signature::calculate(data, options)
}

/// A strong sum in the making, for a block that comes in pieces.
#[derive(Clone)]
pub(crate) enum StrongHasher {
    Md4(Md4),
    // Several times the size of the other.
    Blake2(Box<Blake2b<U32>>),
}

impl StrongHasher {
    pub(crate) fn new(kind: StrongKind) -> Self {
        match kind {
            StrongKind::Md4 => Self::Md4(Md4::new()),
            StrongKind::Blake2 => Self::Blake2(Box::default()),
        }
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Md4(hasher) => hasher.update(bytes),
            Self::Blake2(hasher) => hasher.update(bytes),
        }
    }

    pub(crate) fn finish(self) -> StrongSum {
        match self {
            Self::Md4(hasher) => padded(&hasher.finalize()),
            Self::Blake2(hasher) => padded(&hasher.finalize()),
        }
    }
}

/// The strong sum of a whole block.
pub(crate) fn strong_sum(kind: StrongKind, block: &[u8]) -> StrongSum {
    match kind {
        StrongKind::Md4 => padded(&Md4::digest(block)),
        StrongKind::Blake2 => padded(&Blake2b::<U32>::digest(block)),
    }
}

/// The strong sums of several blocks of the same length, computed at once where that is faster.
pub(crate) struct StrongBatch {
    kind: StrongKind,
    arch: Arch,
    sums: Vec<StrongSum>,
}

impl StrongBatch {
    pub(crate) fn new(arch: Arch, kind: StrongKind) -> Self {
        Self {
            kind,
            arch,
            sums: Vec::new(),
        }
    }

    /// How many blocks are best hashed at once.
    pub(crate) fn most(&self) -> usize {
        match (self.kind, self.arch) {
            #[cfg(target_arch = "x86_64")]
            (StrongKind::Md4, Arch::V3(_)) => 2 * MD4_LANES,
            _ => 1,
        }
    }

    /// Computes the sums of some blocks, [`StrongBatch::most`] at most.
    pub(crate) fn hash<'d>(
        &mut self,
        blocks: impl ExactSizeIterator<Item = &'d [u8]>,
    ) -> &[StrongSum] {
        self.sums.clear();
        match (self.kind, self.arch) {
            #[cfg(target_arch = "x86_64")]
            (StrongKind::Md4, Arch::V3(simd)) if blocks.len() > MD4_LANES => {
                self.hash_in_lanes::<2>(simd, blocks)
            }
            #[cfg(target_arch = "x86_64")]
            (StrongKind::Md4, Arch::V3(simd)) if blocks.len() > 1 => {
                self.hash_in_lanes::<1>(simd, blocks)
            }
            (kind, _) => self
                .sums
                .extend(blocks.map(|block| strong_sum(kind, block))),
        }
        &self.sums
    }

    /// Lanes that have no block of their own do as the last one does, for nothing.
    #[cfg(target_arch = "x86_64")]
    fn hash_in_lanes<'d, const GROUPS: usize>(
        &mut self,
        simd: pulp::x86::V3,
        mut blocks: impl ExactSizeIterator<Item = &'d [u8]>,
    ) {
        let count = blocks.len();
        let mut last: &[u8] = &[];
        let lanes: [[&[u8]; MD4_LANES]; GROUPS] = std::array::from_fn(|_| {
            std::array::from_fn(|_| {
                last = blocks.next().unwrap_or(last);
                last
            })
        });
        let sums = md4(simd, lanes);
        let sums = sums.as_flattened().iter().map(|sum| padded(sum));
        self.sums.extend(sums.take(count));
    }

    /// The sums computed last.
    pub(crate) fn sums(&self) -> &[StrongSum] {
        &self.sums
    }
}

fn padded(digest: &[u8]) -> StrongSum {
    let mut sum = StrongSum::default();
    sum[..digest.len()].copy_from_slice(digest);
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_equal_single_sums() {
        let data: Vec<u8> = (0..20_000u32).map(|i| ((i * i) >> 7) as u8).collect();
        let kinds = [StrongKind::Md4, StrongKind::Blake2];
        for (kind, arch) in kinds
            .map(|kind| [(kind, Arch::new()), (kind, Arch::Scalar)])
            .concat()
        {
            for block_len in [1, 55, 56, 64, 300, 2048] {
                let mut batch = StrongBatch::new(arch, kind);
                for count in [0, 1, 2, 7, 8, 9, 15, 16, 3] {
                    let blocks = || (0..count).map(|i| &data[i * 311..i * 311 + block_len]);
                    if count > batch.most() {
                        continue;
                    }
                    batch.hash(blocks());
                    assert!(
                        batch
                            .sums()
                            .iter()
                            .copied()
                            .eq(blocks().map(|b| strong_sum(kind, b)))
                    );
                }
            }
        }
    }
}

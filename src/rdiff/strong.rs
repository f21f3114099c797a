//! The strong sums: they alone decide that two blocks are equal.

use blake2::Blake2b;
use blake2::digest::consts::U32;
use md4::{Digest, Md4};

use super::format::{SignatureHeader, StrongKind};

/// A whole strong sum; the bytes behind a shorter kind are zero.
pub(crate) type StrongSum = [u8; 32];

/// Bytes of a whole MD4 sum.
const MD4_LEN: u32 = StrongKind::Md4.max_len();

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

/// The strong sums of several blocks that stand here and there, computed at once where that is faster.
pub(crate) struct StrongBatch {
    kind: StrongKind,
    block_len: usize,
    /// The blocks side by side.
    blocks: Vec<u8>,
    sums: Vec<StrongSum>,
}

impl StrongBatch {
    /// Blocks in a batch: the most that the fast hasher has lanes for.
    const LANES: usize = 8;

    /// Longer blocks are not worth copying together.
    const MAX_BLOCK_LEN: usize = 64 * 1024;

    pub(crate) fn new(kind: StrongKind, block_len: usize) -> Self {
        Self {
            kind,
            block_len,
            blocks: Vec::new(),
            sums: Vec::new(),
        }
    }

    /// How many blocks are best hashed at once.
    pub(crate) fn most(&self) -> usize {
        if self.kind == StrongKind::Md4 && self.block_len <= Self::MAX_BLOCK_LEN {
            Self::LANES
        } else {
            1
        }
    }

    /// Computes the sums of some blocks.
    pub(crate) fn hash<'d>(&mut self, blocks: impl ExactSizeIterator<Item = &'d [u8]>) {
        self.sums.clear();
        if blocks.len() < 2 || blocks.len() > self.most() {
            let kind = self.kind;
            self.sums
                .extend(blocks.map(|block| strong_sum(kind, block)));
            return;
        }
        let count = blocks.len();
        self.blocks.resize(Self::LANES * self.block_len, 0);
        for (own, block) in self.blocks.chunks_exact_mut(self.block_len).zip(blocks) {
            own.copy_from_slice(block);
        }
        // Lanes that have no block of their own are hashed with the others, for nothing.
        let records = md4_records(self.block_len as u32, MD4_LEN, &self.blocks);
        let strong = |record: &[u8]| padded(&record[SignatureHeader::WEAK_LEN..]);
        let record_len = SignatureHeader::WEAK_LEN + MD4_LEN as usize;
        let records = records.serialized()[SignatureHeader::LEN..].chunks_exact(record_len);
        self.sums.extend(records.take(count).map(strong));
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
        for kind in [StrongKind::Md4, StrongKind::Blake2] {
            for block_len in [1, 55, 56, 64, 300, 2048] {
                let mut batch = StrongBatch::new(kind, block_len);
                for count in [0, 1, 2, 7, 8, 9, 3] {
                    let blocks = || (0..count).map(|i| &data[i * 311..i * 311 + block_len]);
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

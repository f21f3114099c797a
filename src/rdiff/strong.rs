//! The strong sums: they alone decide that two blocks are equal.

use blake2::Blake2b;
use blake2::digest::consts::U32;
use md4::{Digest, Md4};

use super::format::StrongKind;

/// A whole strong sum; the bytes behind a shorter kind are zero.
pub(crate) type StrongSum = [u8; 32];

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

fn padded(digest: &[u8]) -> StrongSum {
    let mut sum = StrongSum::default();
    sum[..digest.len()].copy_from_slice(digest);
    sum
}

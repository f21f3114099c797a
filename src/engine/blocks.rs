//! The block sums of a local file, piece by piece.

use crate::rdiff::{BlockSums, SignatureHeader};
use std::fs::File;
use std::io::{self, Read};

/// What is read and hashed at once: fits the cache, and lets the SIMD hash fill its lanes.
const PIECE: usize = 64 * 1024;

/// The largest block length whose sums are made for a comparison: a buffer holds a whole block, and the
/// length is the peer's to choose. csync2 knows 2048 only.
pub const LONGEST_BLOCK: u32 = 16 << 20;

/// Hands out the records of a file's signature in order.
pub struct FileSums<'f> {
    file: &'f File,
    left: u64,
    sums: BlockSums,
    piece: Vec<u8>,
    records: Vec<u8>,
}

impl<'f> FileSums<'f> {
    /// The records of the first `length` bytes of `file`, from its position on.
    pub fn new(file: &'f File, length: u64, header: SignatureHeader) -> Self {
        let block = header.block_len as usize;
        let piece = (PIECE / block).max(1) * block;
        let piece = usize::try_from(length).map_or(piece, |length| piece.min(length));
        Self {
            file,
            left: length,
            sums: BlockSums::new(header),
            piece: vec![0; piece],
            records: Vec::new(),
        }
    }

    /// The records of the next piece; empty at the end.
    ///
    /// # Errors
    /// What reading says; `UnexpectedEof` where the file has become shorter.
    pub fn next(&mut self) -> io::Result<&[u8]> {
        self.records.clear();
        let count =
            usize::try_from(self.left).map_or(self.piece.len(), |left| left.min(self.piece.len()));
        let piece = &mut self.piece[..count];
        self.file.read_exact(piece)?;
        self.left -= count as u64;
        if count > 0 {
            self.sums.append(piece, &mut self.records);
        }
        Ok(&self.records)
    }
}

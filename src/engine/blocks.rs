//! The block sums of a local file, piece by piece.

use super::Threads;
use crate::rdiff::{BlockSums, SignatureHeader, Team};
use std::fs::File;
use std::io;
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt;

/// What one thread reads and hashes at once: fits the cache, and lets the SIMD hash fill its lanes.
const PIECE: usize = 64 * 1024;

/// The largest block length whose sums are made for a comparison: a buffer holds a whole block, and the
/// length is the peer's to choose. csync2 knows 2048 only.
pub const LONGEST_BLOCK: u32 = 16 << 20;

/// The block lengths for which several threads are worth their buffers: with shorter blocks the records of a round are
/// as long as the file, with longer ones each thread holds a block. The length may be the peer's to choose.
const SHARED_BLOCKS: RangeInclusive<u32> = 512..=65536;

/// Hands out the records of a file's signature in order.
pub struct FileSums<'f> {
    file: &'f File,
    offset: u64,
    left: u64,
    hashing: Hashing,
    records: Vec<u8>,
}

enum Hashing {
    Alone { sums: BlockSums, piece: Vec<u8> },
    Together(Team),
}

impl Hashing {
    fn new(length: u64, header: SignatureHeader, threads: Threads) -> Self {
        // Without memory for all of them, one does.
        match team(length, header, threads) {
            Some(team) => Self::Together(team),
            None => {
                let block = header.block_len as usize;
                let piece = (PIECE / block).max(1) * block;
                let piece = usize::try_from(length).map_or(piece, |length| piece.min(length));
                Self::Alone {
                    sums: BlockSums::new(header),
                    piece: vec![0; piece],
                }
            }
        }
    }

    /// What is hashed at once.
    fn most(&self) -> u64 {
        match self {
            Self::Alone { piece, .. } => piece.len() as u64,
            Self::Together(team) => team.round_len(),
        }
    }
}

/// Several threads, where the file is worth them.
fn team(length: u64, header: SignatureHeader, threads: Threads) -> Option<Team> {
    if length < Team::LARGE || !SHARED_BLOCKS.contains(&header.block_len) {
        return None;
    }
    let count = threads.count();
    if count.get() == 1 {
        return None;
    }
    Team::new(header, count, threads.start).ok()
}

impl<'f> FileSums<'f> {
    /// The records of the first `length` bytes of `file`, wherever its position is.
    pub fn new(file: &'f File, length: u64, header: SignatureHeader, threads: Threads) -> Self {
        Self {
            file,
            offset: 0,
            left: length,
            hashing: Hashing::new(length, header, threads),
            records: Vec::new(),
        }
    }

    /// The records of the next pieces; empty at the end.
    ///
    /// # Errors
    /// What reading says; `UnexpectedEof` where the file has become shorter.
    pub fn next(&mut self) -> io::Result<&[u8]> {
        self.records.clear();
        let count = self.left.min(self.hashing.most());
        if count == 0 {
            return Ok(&self.records);
        }
        match &mut self.hashing {
            Hashing::Alone { sums, piece } => {
                let piece = &mut piece[..count as usize];
                self.file.read_exact_at(piece, self.offset)?;
                sums.append(piece, &mut self.records);
            }
            Hashing::Together(team) => {
                let file = self.file;
                let read_at = |offset, piece: &mut [u8]| file.read_exact_at(piece, offset);
                let records = team.round(&read_at, self.offset, count)?;
                self.offset += count;
                self.left -= count;
                return Ok(records);
            }
        }
        self.offset += count;
        self.left -= count;
        Ok(&self.records)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rdiff::{StrongKind, WeakKind};
    use std::io::Write;
    use std::num::NonZeroUsize;

    fn all(file: &File, length: u64, header: SignatureHeader, count: usize) -> io::Result<Vec<u8>> {
        let threads = Threads {
            limit: NonZeroUsize::new(count),
            ..Threads::default()
        };
        let (mut sums, mut all) = (FileSums::new(file, length, header, threads), Vec::new());
        loop {
            match sums.next()? {
                [] => return Ok(all),
                records => all.extend_from_slice(records),
            }
        }
    }

    /// Sizes around every border: of blocks, of pieces, of a thread's share and of a round.
    #[test]
    fn any_number_of_threads_makes_the_same_signature() -> io::Result<()> {
        let share = 8 << 20;
        let content: Vec<u8> = (0..3 * share as u32 + 70_000)
            .map(|number| (number.wrapping_mul(2_654_435_761) >> 11) as u8)
            .collect();
        let mut file = tempfile::tempfile()?;
        file.write_all(&content)?;
        let borders = [0, 2048, PIECE, share, 2 * share, 3 * share];
        let sizes = borders.iter().flat_map(|border| {
            [
                border.saturating_sub(2048),
                border.saturating_sub(1),
                *border,
                border + 1,
                border + 2049,
            ]
        });
        for size in sizes {
            let mut plain = Vec::new();
            BlockSums::new(SignatureHeader::CSYNC2).append(&content[..size], &mut plain);
            for count in [1, 2, 3] {
                let made = all(&file, size as u64, SignatureHeader::CSYNC2, count)?;
                assert!(made == plain, "{size} bytes, {count} threads");
            }
        }
        Ok(())
    }

    #[test]
    fn other_blocks_and_sums_as_well() -> io::Result<()> {
        let size = 17 << 20;
        let file = tempfile::tempfile()?;
        file.set_len(size)?;
        for (block_len, strong) in [
            (511, StrongKind::Md4),
            (512, StrongKind::Md4),
            (3000, StrongKind::Blake2),
            (65536, StrongKind::Md4),
            (65537, StrongKind::Md4),
            (1 << 20, StrongKind::Md4),
        ] {
            let header = SignatureHeader {
                weak: WeakKind::Rollsum,
                strong,
                block_len,
                strong_len: 16,
            };
            let one = all(&file, size, header, 1)?;
            assert_eq!(Some(one.len() as u64 + 12), header.signature_len(size));
            assert!(all(&file, size, header, 3)? == one, "blocks of {block_len}");
        }
        Ok(())
    }

    #[test]
    fn a_file_that_became_shorter_is_an_error() -> io::Result<()> {
        let file = tempfile::tempfile()?;
        for short in [0, 1, 8 << 20, 20 << 20] {
            file.set_len(short)?;
            for count in [1, 2, 3] {
                let result = all(&file, short + (17 << 20), SignatureHeader::CSYNC2, count);
                let kind = result.map_err(|error| error.kind());
                assert_eq!(kind, Err(io::ErrorKind::UnexpectedEof));
            }
        }
        Ok(())
    }

    #[test]
    fn small_files_and_odd_blocks_start_no_thread() {
        let many = Threads {
            limit: NonZeroUsize::new(3),
            start: |_| panic!("a thread"),
        };
        let with_blocks = |block_len| SignatureHeader {
            block_len,
            ..SignatureHeader::CSYNC2
        };
        assert!(team(Team::LARGE - 1, SignatureHeader::CSYNC2, many).is_none());
        assert!(team(Team::LARGE, SignatureHeader::CSYNC2, many).is_some());
        assert!(team(1 << 40, with_blocks(511), many).is_none());
        assert!(team(1 << 40, with_blocks(65537), many).is_none());
        let one = Threads {
            limit: NonZeroUsize::new(1),
            ..many
        };
        assert!(team(1 << 40, SignatureHeader::CSYNC2, one).is_none());
    }

    #[test]
    fn where_no_thread_starts_one_does_it_all() -> io::Result<()> {
        let size = 33 << 20;
        let file = tempfile::tempfile()?;
        file.set_len(size)?;
        let none = Threads {
            limit: NonZeroUsize::new(3),
            start: |_| {},
        };
        let mut sums = FileSums::new(&file, size, SignatureHeader::CSYNC2, none);
        let mut made = Vec::new();
        while sums.left > 0 {
            made.extend_from_slice(sums.next()?);
        }
        assert!(made == all(&file, size, SignatureHeader::CSYNC2, 1)?);
        Ok(())
    }
}

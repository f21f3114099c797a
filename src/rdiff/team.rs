//! The sums of a large file's blocks, made by several threads.
//!
//! The threads live for one round only, in which each takes a piece of the file: nothing is left running
//! when a call returns, and the process may fork. One set of buffers serves all rounds.

use std::collections::TryReserveError;
use std::io;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::thread;

use super::format::SignatureHeader;
use super::signature::BlockSums;

/// About as much as a thread hashes in a round: far more work than it is to start the thread.
const SHARE: usize = 8 << 20;

/// About as much as is read and hashed at once: it stays in a core's own cache.
const PIECE: usize = 64 << 10;

/// Reads so many bytes of the file from an offset on, all of them or with an error. Several threads call it.
pub type ReadAt<'f> = dyn Fn(u64, &mut [u8]) -> io::Result<()> + Sync + 'f;

/// Several threads that make the records of consecutive blocks.
pub struct Team {
    members: Vec<Member>,
    /// What each member hashes in a round: whole pieces, which are whole blocks.
    share: usize,
}

/// What one thread works with.
struct Member {
    /// Its part of the file in this round.
    own: Range<u64>,
    sums: BlockSums,
    piece: Vec<u8>,
    records: Vec<u8>,
}

impl Team {
    /// Files that are smaller are not worth a second thread.
    pub const LARGE: u64 = 2 * SHARE as u64;

    /// Gathers so many threads, the calling one counted; they make sums as `header` describes them.
    ///
    /// # Errors
    /// There is no memory for the pieces, of which each holds a block at least.
    pub fn new(header: SignatureHeader, threads: NonZeroUsize) -> Result<Self, TryReserveError> {
        let block_len = header.block_len as usize;
        let piece = PIECE.next_multiple_of(block_len);
        let member = || {
            Ok::<_, TryReserveError>(Member {
                own: 0..0,
                sums: BlockSums::new(header),
                piece: super::zeroed(piece)?,
                records: Vec::new(),
            })
        };
        Ok(Self {
            members: (0..threads.get())
                .map(|_| member())
                .collect::<Result<_, _>>()?,
            share: SHARE.max(piece) / piece * piece,
        })
    }

    /// The most bytes that a round takes: a multiple of the block length.
    pub fn round_len(&self) -> u64 {
        self.share as u64 * self.members.len() as u64
    }

    /// Makes the records of the blocks from `offset` on: of [`Team::round_len`] bytes, or of the `len` that
    /// are left of the file. Returns them in pieces, in their order.
    ///
    /// # Errors
    /// What reading says, where it fails first.
    pub fn round(
        &mut self,
        read_at: &ReadAt<'_>,
        offset: u64,
        len: u64,
    ) -> io::Result<impl Iterator<Item = &[u8]>> {
        let (share, end) = (self.share as u64, offset.saturating_add(len));
        let mut begin = offset;
        for member in &mut self.members {
            member.own = begin..end.min(begin.saturating_add(share)).max(begin);
            begin = member.own.end;
            // Of an earlier round; not every member takes part in the last one.
            member.records.clear();
        }
        match self.hash_together(read_at) {
            Some(result) => result?,
            None => self.hash_in_turn(read_at)?,
        }
        Ok(self.members.iter().map(|member| &member.records[..]))
    }

    /// Each member in a thread of its own, the first in this one. None if the system has no more threads.
    fn hash_together(&mut self, read_at: &ReadAt<'_>) -> Option<io::Result<()>> {
        let (first, others) = self.members.split_first_mut()?;
        thread::scope(|scope| {
            let busy = others.iter_mut().filter(|member| !member.own.is_empty());
            let threads: Vec<_> = busy
                .map(|member| thread::Builder::new().spawn_scoped(scope, || member.hash(read_at)))
                .collect::<Result<_, _>>()
                .ok()?;
            let result = first.hash(read_at);
            let results = threads.into_iter().map(|thread| {
                let result = thread.join();
                result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            Some(results.fold(result, |before, result| before.and(result)))
        })
    }

    fn hash_in_turn(&mut self, read_at: &ReadAt<'_>) -> io::Result<()> {
        self.members
            .iter_mut()
            .try_for_each(|member| member.hash(read_at))
    }
}

impl Member {
    fn hash(&mut self, read_at: &ReadAt<'_>) -> io::Result<()> {
        // A round that lacked threads begins anew.
        self.records.clear();
        let mut offset = self.own.start;
        while offset < self.own.end {
            let most = self.piece.len();
            let len = usize::try_from(self.own.end - offset).map_or(most, |left| left.min(most));
            let piece = &mut self.piece[..len];
            read_at(offset, piece)?;
            self.sums.append(piece, &mut self.records);
            offset += len as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threads(count: usize) -> NonZeroUsize {
        NonZeroUsize::new(count).expect("not zero")
    }

    /// All records of `data`, round by round.
    fn records(header: SignatureHeader, count: usize, data: &[u8]) -> Vec<u8> {
        let mut team = Team::new(header, threads(count)).expect("memory");
        let read_at = |offset: u64, piece: &mut [u8]| {
            piece.copy_from_slice(&data[offset as usize..][..piece.len()]);
            Ok(())
        };
        let (mut offset, mut all) = (0, Vec::new());
        while offset < data.len() as u64 {
            let len = team.round_len().min(data.len() as u64 - offset);
            for records in team.round(&read_at, offset, len).expect("readable") {
                all.extend_from_slice(records);
            }
            offset += len;
        }
        all
    }

    #[test]
    fn any_number_of_threads_makes_the_same_records() {
        let data: Vec<u8> = (0..(20 << 20) + 1234u32)
            .map(|i| (i ^ i >> 11) as u8)
            .collect();
        for block_len in [2048, 3000] {
            let header = SignatureHeader {
                block_len,
                ..SignatureHeader::CSYNC2
            };
            let mut plain = Vec::new();
            BlockSums::new(header).append(&data, &mut plain);
            for count in [1, 2, 3] {
                assert!(records(header, count, &data) == plain, "{count} threads");
            }
        }
        assert!(records(SignatureHeader::CSYNC2, 2, &[]).is_empty());
    }

    #[test]
    fn errors_of_any_thread_come_through() {
        let mut team = Team::new(SignatureHeader::CSYNC2, threads(2)).expect("memory");
        let len = team.round_len();
        for bad in [0, len / 2 - 1, len / 2, len - 1] {
            let read_at = |offset: u64, piece: &mut [u8]| {
                if (offset..offset + piece.len() as u64).contains(&bad) {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                Ok(())
            };
            let kind = team
                .round(&read_at, 0, len)
                .map(|_| ())
                .map_err(|error| error.kind());
            assert_eq!(kind, Err(io::ErrorKind::UnexpectedEof));
            assert!(team.round(&read_at, 0, bad.saturating_sub(1 << 20)).is_ok());
        }
    }
}

//! The sums of a large file's blocks, made by several threads.
//!
//! The threads live for one round only, in which each takes the next piece of the file whenever it is free: one that the
//! system does not let run keeps nobody waiting, and the file is read front to back. Nothing is left running when a call
//! returns, and the process may fork. One set of buffers serves all rounds, which grow as long as they are quick.

use std::collections::TryReserveError;
use std::io;
use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::format::SignatureHeader;
use super::signature::BlockSums;

/// About as much as there is to hash for each thread in the first round: far more work than it is to start the thread.
const SHARE: usize = 8 << 20;

/// What a share grows to, since the threads of each round are started anew.
const LARGEST_SHARE: usize = 32 << 20;

/// Rounds that are over sooner are made larger, and after one that takes longer than [`SLOW`] the next is as small as the
/// first: whoever waits for a round's records, to show how far it is or to stop it all, should not wait long.
const QUICK: Duration = Duration::from_millis(25);
const SLOW: Duration = Duration::from_millis(100);

/// About as much as is read and hashed at once: it stays in a core's own cache.
const PIECE: usize = 64 << 10;

/// Reads so many bytes of the file from an offset on, all of them or with an error. Several threads call it.
pub type ReadAt<'f> = dyn Fn(u64, &mut [u8]) -> io::Result<()> + Sync + 'f;

/// Runs what starts the threads. Whoever embeds this may see to it that they take no signals: a thread inherits the
/// signal mask of the one that starts it.
pub type Start = fn(&mut dyn FnMut());

/// The name of the threads.
pub const THREAD_NAME: &str = "csync-rs-sums";

/// Several threads that make the records of consecutive blocks.
pub struct Team {
    members: Vec<Member>,
    /// What is read and hashed at once: whole blocks.
    piece: usize,
    header: SignatureHeader,
    /// What there is to hash for each thread in the next round.
    share: usize,
    /// Of the last round.
    records: Vec<u8>,
    start: Start,
    /// The system had no thread for us: the calling one does it all.
    alone: bool,
}

/// What one thread works with.
struct Member {
    sums: BlockSums,
    piece: Vec<u8>,
    records: Vec<u8>,
}

/// A piece of the file, and the place for its records.
struct Task<'r> {
    offset: u64,
    len: usize,
    records: &'r mut [u8],
}

/// The tasks that nobody has taken yet.
type Tasks<'t, 'r> = Mutex<&'t mut (dyn Iterator<Item = Task<'r>> + Send)>;

impl Team {
    /// Files that are smaller are not worth a second thread.
    pub const LARGE: u64 = 2 * SHARE as u64;

    /// Gathers so many threads, the calling one counted, to be started by `start`; they make sums as `header` describes
    /// them. Where the system has no more threads, the calling one does it all.
    ///
    /// # Errors
    /// There is no memory for the pieces, of which each holds a block at least, or for a round's records.
    pub fn new(
        header: SignatureHeader,
        threads: NonZeroUsize,
        start: Start,
    ) -> Result<Self, TryReserveError> {
        let piece = PIECE.next_multiple_of(header.block_len as usize);
        let member = || {
            Ok::<_, TryReserveError>(Member {
                sums: BlockSums::new(header),
                piece: super::zeroed(piece)?,
                records: Vec::new(),
            })
        };
        let members = (0..threads.get())
            .map(|_| member())
            .collect::<Result<Vec<_>, _>>()?;
        let mut team = Self {
            members,
            piece,
            header,
            share: LARGEST_SHARE,
            records: Vec::new(),
            start,
            alone: threads.get() == 1,
        };
        let most = team.records_len(team.round_len());
        team.records.try_reserve_exact(most)?;
        team.share = SHARE;
        Ok(team)
    }

    /// The most bytes that the next round takes: a multiple of the block length.
    pub fn round_len(&self) -> u64 {
        (self.share.max(self.piece) / self.piece * self.piece) as u64 * self.members.len() as u64
    }

    fn records_len(&self, len: u64) -> usize {
        (self.header.block_count(len) * self.header.record_len()) as usize
    }

    /// Makes the records of the blocks from `offset` on: of [`Team::round_len`] bytes, or of the `len` that
    /// are left of the file.
    ///
    /// # Errors
    /// What reading says.
    pub fn round(&mut self, read_at: &ReadAt<'_>, offset: u64, len: u64) -> io::Result<&[u8]> {
        let len = len.min(self.round_len());
        let begun = Instant::now();
        self.records.clear();
        self.records.resize(self.records_len(len), 0);
        let (piece, step) = (self.piece, self.records_len(self.piece as u64));
        let places = self.records.chunks_mut(step).enumerate();
        let mut tasks = places.map(|(number, records)| {
            let begin = number as u64 * piece as u64;
            Task {
                offset: offset + begin,
                len: (len - begin).min(piece as u64) as usize,
                records,
            }
        });
        let tasks: Tasks<'_, '_> = Mutex::new(&mut tasks);
        // A thread for each whole share, and this one.
        let useful = usize::try_from(len / SHARE as u64).unwrap_or(usize::MAX);
        let count = if self.alone { 1 } else { useful.max(1) };
        let busy = self.members.iter_mut().take(count);
        let (result, complete) = work_together(busy, self.start, &tasks, read_at);
        // Where the system had no thread, it is not asked again in the next round.
        self.alone |= !complete;
        self.share = match begun.elapsed() {
            taken if taken < QUICK => (2 * self.share).min(LARGEST_SHARE),
            taken if taken > SLOW => SHARE,
            _ => self.share,
        };
        result.map(|()| &self.records[..])
    }
}

/// Each member in a thread of its own, the first in this one, until all tasks are done. Says as well whether there were
/// threads for all; those that started do the tasks of the others.
fn work_together<'m>(
    mut members: impl Iterator<Item = &'m mut Member>,
    start: Start,
    tasks: &Tasks<'_, '_>,
    read_at: &ReadAt<'_>,
) -> (io::Result<()>, bool) {
    let Some(first) = members.next() else {
        return (Ok(()), true);
    };
    thread::scope(|scope| {
        let (mut threads, mut complete) = (Vec::new(), true);
        start(&mut || {
            for member in members.by_ref() {
                let builder = thread::Builder::new().name(THREAD_NAME.to_owned());
                match builder.spawn_scoped(scope, || member.work(tasks, read_at)) {
                    Ok(thread) => threads.push(thread),
                    Err(_) => {
                        complete = false;
                        break;
                    }
                }
            }
        });
        let result = first.work(tasks, read_at);
        let results = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        (results.fold(result, io::Result::and), complete)
    })
}

impl Member {
    /// Does one task after the other until there are no more.
    fn work(&mut self, tasks: &Tasks<'_, '_>, read_at: &ReadAt<'_>) -> io::Result<()> {
        loop {
            let task = tasks.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(task) = task else {
                return Ok(());
            };
            let piece = &mut self.piece[..task.len];
            read_at(task.offset, piece)?;
            self.records.clear();
            self.sums.append(piece, &mut self.records);
            task.records.copy_from_slice(&self.records);
        }
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
        let mut team = Team::new(header, threads(count), |start| start()).expect("memory");
        let read_at = |offset: u64, piece: &mut [u8]| {
            piece.copy_from_slice(&data[offset as usize..][..piece.len()]);
            Ok(())
        };
        let (mut offset, mut all) = (0, Vec::new());
        while offset < data.len() as u64 {
            let len = team.round_len().min(data.len() as u64 - offset);
            all.extend_from_slice(team.round(&read_at, offset, len).expect("readable"));
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
    fn quick_rounds_grow_and_a_slow_one_ends_that() {
        let mut team =
            Team::new(SignatureHeader::CSYNC2, threads(2), |start| start()).expect("memory");
        let (first, most) = (team.round_len(), 2 * LARGEST_SHARE as u64);
        let quick = |_: u64, _: &mut [u8]| Ok(());
        // (One that another process delays changes nothing.)
        while team.round_len() < most {
            team.round(&quick, 0, 1).expect("readable");
        }
        assert_eq!(team.round_len(), most);
        let slow = |_: u64, _: &mut [u8]| {
            thread::sleep(2 * SLOW);
            Ok(())
        };
        team.round(&slow, 0, 1).expect("readable");
        assert_eq!(team.round_len(), first);
    }

    #[test]
    fn errors_of_any_thread_come_through() {
        let mut team =
            Team::new(SignatureHeader::CSYNC2, threads(2), |start| start()).expect("memory");
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

//! A transport that is watched: progress is reported, a silent peer is given up, and another thread can end it.

use super::retry::is_repeated;
use super::{Direction, Transport};
use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Between two reports of progress.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

/// How far a verb has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes that went over the connection since the verb began, with headers.
    pub done: u64,
    /// Bytes of the payloads announced so far, either way; 0 before the first.
    pub announced: u64,
}

/// Why this side ends a transfer that nothing is wrong with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Stopped {
    /// The program wants it so.
    #[error("cancelled")]
    Cancelled,
    /// Nothing has moved for so long.
    #[error("timed out")]
    Silent(Duration),
}

impl Stopped {
    /// In words, with what was being done.
    pub fn while_doing(self, doing: &str) -> String {
        match self {
            Self::Cancelled => format!("{self} while {doing}"),
            Self::Silent(limit) => {
                let limit = limit.as_millis();
                format!("{self} while {doing}: nothing moved for {limit} ms")
            }
        }
    }
}

impl From<Stopped> for io::Error {
    fn from(stopped: Stopped) -> Self {
        Self::other(stopped)
    }
}

/// Watches over `inner` for the time of one verb.
pub struct Supervised<'s> {
    inner: &'s mut dyn Transport,
    cancelled: &'s AtomicBool,
    silence: Option<Duration>,
    chunk: Option<NonZeroUsize>,
    observer: Option<&'s mut dyn FnMut(Progress) -> bool>,
    progress: Progress,
    taken_early: u64,
    /// When the connection has refused an attempt for the first time since something moved. What happens between the
    /// attempts (a file is hashed, or written) is no silence of the peer's.
    refused_since: Option<Instant>,
    began: Instant,
    last_report: Option<Instant>,
}

impl<'s> Supervised<'s> {
    /// Ends the transfer when `cancelled` becomes true, when nothing moves for `silence`, or when `observer` says so
    /// (false). No write is larger than `chunk`. The observer is called ten times a second at most, also while nothing
    /// moves, and by [`Supervised::finish`].
    pub fn new(
        inner: &'s mut dyn Transport,
        cancelled: &'s AtomicBool,
        silence: Option<Duration>,
        chunk: Option<NonZeroUsize>,
        observer: Option<&'s mut dyn FnMut(Progress) -> bool>,
    ) -> Self {
        Self {
            taken_early: inner.taken_early(),
            inner,
            cancelled,
            silence,
            chunk,
            observer,
            progress: Progress::default(),
            refused_since: None,
            began: Instant::now(),
            last_report: None,
        }
    }

    /// The last report. What the observer says to it has nothing to end any more.
    pub fn finish(mut self) {
        self.report();
    }

    fn report(&mut self) -> bool {
        self.last_report = Some(Instant::now());
        match &mut self.observer {
            Some(observer) => observer(self.progress),
            None => true,
        }
    }

    /// Ahead of an attempt.
    fn may_go_on(&self) -> Result<(), Stopped> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(Stopped::Cancelled);
        }
        Ok(())
    }

    /// A report, if the last one (or `before_first`, where there is none yet) is long enough ago.
    fn report_if_due(&mut self, before_first: Option<Instant>) {
        let due = self
            .last_report
            .or(before_first)
            .is_none_or(|last| last.elapsed() >= REPORT_INTERVAL);
        if self.observer.is_some() && due && !self.report() {
            self.cancelled.store(true, Ordering::Relaxed);
        }
    }

    fn end_silence(&self, since: Instant) -> Result<(), Stopped> {
        match self.silence {
            Some(silence) if since.elapsed() >= silence => Err(Stopped::Silent(silence)),
            _ => Ok(()),
        }
    }

    /// Behind an attempt.
    fn account(&mut self, attempt: io::Result<usize>) -> io::Result<usize> {
        match &attempt {
            Ok(0) => {}
            Ok(count) => {
                self.progress.done += *count as u64;
                self.refused_since = None;
                self.report_if_due(None);
            }
            Err(error) if is_repeated(error) => self.refused()?,
            Err(_) => {}
        }
        attempt
    }

    fn refused(&mut self) -> Result<(), Stopped> {
        let taken_early = self.inner.taken_early();
        if taken_early != self.taken_early {
            self.taken_early = taken_early;
            self.refused_since = None;
        }
        let since = *self.refused_since.get_or_insert_with(Instant::now);
        self.report_if_due(Some(self.began));
        self.end_silence(since)
    }
}

impl Transport for Supervised<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.may_go_on()?;
        let attempt = self.inner.read(buf);
        self.account(attempt)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.may_go_on()?;
        let attempt = self.inner.write(bytes);
        self.account(attempt)
    }

    fn max_payload(&self) -> Option<NonZeroUsize> {
        match (self.chunk, self.inner.max_payload()) {
            (Some(chunk), Some(payload)) => Some(chunk.min(payload)),
            (chunk, payload) => chunk.or(payload),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.may_go_on()?;
        let attempt = self.inner.flush().map(|()| 0);
        self.account(attempt).map(|_| ())
    }

    fn wait(&mut self, direction: Direction, refusals: u32, limit: Duration) {
        // Not beyond the moment at which it would be given up.
        let left = match (self.silence, self.refused_since) {
            (Some(silence), Some(since)) => silence.saturating_sub(since.elapsed()),
            _ => limit,
        };
        // At least what counts as a wait everywhere.
        let left = left.max(Duration::from_millis(1));
        self.inner.wait(direction, refusals, limit.min(left));
    }

    fn sends_files(&self) -> bool {
        // What the kernel sends by itself is not cut to a chunk of the program's choice.
        self.chunk.is_none() && self.inner.sends_files()
    }

    fn send_file(&mut self, file: &File, offset: u64, count: usize) -> io::Result<usize> {
        self.may_go_on()?;
        let count = self.chunk.map_or(count, |chunk| chunk.get().min(count));
        let attempt = self.inner.send_file(file, offset, count);
        self.account(attempt)
    }

    fn waits_elsewhere(&mut self, since: Instant) -> Result<(), Stopped> {
        self.report_if_due(Some(self.began));
        self.may_go_on()?;
        self.end_silence(since)
    }

    fn taken_early(&self) -> u64 {
        self.inner.taken_early()
    }

    fn announced(&mut self, direction: Direction, length: u64) {
        self.progress.announced = self.progress.announced.saturating_add(length);
        self.inner.announced(direction, length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::{DescriptorPair, read_full, write_all};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_silent_peer_is_given_up() -> io::Result<()> {
        let (near, _far) = UnixStream::pair()?;
        let mut pair = DescriptorPair::new(near.as_fd(), near.as_fd(), false)?;
        let cancelled = AtomicBool::new(false);
        let silence = Some(Duration::from_millis(50));
        let mut supervised = Supervised::new(&mut pair, &cancelled, silence, None, None);
        let error = read_full(&mut supervised, &mut [0]).map_err(|error| error.to_string());
        assert_eq!(
            error,
            Err("timed out while receiving: nothing moved for 50 ms".into())
        );
        Ok(())
    }

    #[test]
    fn the_observer_sees_the_end_and_can_cancel() -> io::Result<()> {
        let (near, _far) = UnixStream::pair()?;
        let mut pair = DescriptorPair::new(near.as_fd(), near.as_fd(), false)?;
        let cancelled = AtomicBool::new(false);
        let mut seen = Vec::new();
        let mut observer = |progress: Progress| {
            seen.push(progress.done);
            false
        };
        let mut supervised =
            Supervised::new(&mut pair, &cancelled, None, None, Some(&mut observer));
        assert!(write_all(&mut supervised, b"abc").is_ok());
        assert!(write_all(&mut supervised, b"def").is_err());
        supervised.finish();
        assert_eq!(seen, [3, 3]);
        Ok(())
    }
}

//! Moving bytes: what a connection must be able to do, and the one place that says when a call is
//! repeated. Knows nothing of files or of librsync's formats.
#![forbid(unsafe_code)]

mod descriptor;
mod early;
mod retry;
mod supervised;
#[cfg(feature = "tls")]
pub mod tls;

pub use descriptor::{DescriptorPair, Output};
pub use early::EarlyInput;
pub use retry::{
    ConnectionError, FileSent, LONGEST_WAIT, chunk, flush, read_full, send_file, write_all,
};
pub use supervised::{Progress, Stopped, Supervised};

use std::fs::File;
use std::io::{self, ErrorKind};
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

/// The most that one TLS record carries, and the largest write on csync2's connection: 16,384 bytes.
/// `CSYNC_CHUNK` in C.
pub const CSYNC_CHUNK: usize = 16384;

/// The largest write to a transport that names no limit: a plain stream, where fewer calls are faster and nothing is
/// cut into records.
pub const STREAM_CHUNK: usize = 128 * 1024;

/// Which way bytes were to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the peer to us.
    Read,
    /// From us to the peer.
    Write,
}

/// The errno in an error of a transport's, where it has one.
pub fn errno_of(error: &io::Error) -> Option<i32> {
    #[cfg(feature = "tls")]
    if let Some(errno) = tls::errno_of(error) {
        return Some(errno);
    }
    error.raw_os_error()
}

/// A connection to a peer.
///
/// `read`, `write` and `send_file` are single attempts, free to do less than they were asked; [`read_full`] and
/// [`write_all`] hold the rules for repeating them.
pub trait Transport {
    /// Reads at most `buf.len()` bytes, once. `Ok(0)` is the end of the stream *or* nothing right now: csync2's
    /// own `conn_read` cannot tell them apart. `Interrupted` and `WouldBlock` mean "ask again".
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize>;

    /// Writes at most `bytes.len()` bytes, once; never called with more than [`Transport::max_payload`]
    /// allows. A repeated call passes the same bytes at the same address.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// The largest `write` that is carried in one piece; `None` where there is no such limit. May change at any time.
    fn max_payload(&self) -> Option<NonZeroUsize> {
        None
    }

    /// Sends what `write` may have held back.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Waits, for `limit` at most, until another attempt may succeed: the one before was refused for the `refusals`th
    /// time in a row. Waiting too short is harmless.
    fn wait(&mut self, direction: Direction, refusals: u32, limit: Duration);

    /// Whether [`Transport::send_file`] is worth a try.
    fn sends_files(&self) -> bool {
        false
    }

    /// Sends at most `count` bytes of `file` from `offset` on without their passing through this process, once;
    /// `Unsupported` where there is no such way.
    fn send_file(&mut self, file: &File, offset: u64, count: usize) -> io::Result<usize> {
        let _ = (file, offset, count);
        Err(ErrorKind::Unsupported.into())
    }

    /// Something else than the connection has been waited for since `since`: whether to go on with it.
    ///
    /// # Errors
    /// Why not.
    fn waits_elsewhere(&mut self, since: Instant) -> Result<(), Stopped> {
        let _ = since;
        Ok(())
    }

    /// How many bytes were taken in while output waited, ever: a peer that sends them is not silent.
    fn taken_early(&self) -> u64 {
        0
    }

    /// A payload of `length` bytes begins: for those who want to know how much there is.
    fn announced(&mut self, direction: Direction, length: u64) {
        let _ = (direction, length);
    }
}

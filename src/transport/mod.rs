//! Moving bytes: what a connection must be able to do, and the one place that says when a call is
//! repeated. Knows nothing of files or of librsync's formats.
#![forbid(unsafe_code)]

mod retry;

pub use retry::{ConnectionError, chunk, read_full, write_all};

use std::io;
use std::num::NonZeroUsize;
use std::time::Duration;

/// The largest piece that is handed to a transport which names no limit of its own: 16,384 bytes, the
/// most that one TLS record carries. `CSYNC_CHUNK` in C.
pub const CSYNC_CHUNK: usize = 16384;

/// Which way bytes were to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the peer to us.
    Read,
    /// From us to the peer.
    Write,
}

/// A connection to a peer.
///
/// `read` and `write` are single attempts, free to do less than they were asked; [`read_full`] and
/// [`write_all`] hold the rules for repeating them.
pub trait Transport {
    /// Reads at most `buf.len()` bytes, once. `Ok(0)` is the end of the stream *or* nothing right now: csync2's
    /// own `conn_read` cannot tell them apart. `Interrupted` and `WouldBlock` mean "ask again".
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize>;

    /// Writes at most `bytes.len()` bytes, once; never called with more than [`Transport::max_payload`]
    /// allows. A repeated call passes the same bytes at the same address.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// The largest `write` that is carried in one piece; `None` where there is no such limit.
    fn max_payload(&self) -> Option<NonZeroUsize> {
        None
    }

    /// Waits, for `limit` at most, until another attempt may succeed. Waiting too short is harmless.
    fn wait(&mut self, direction: Direction, limit: Duration);
}

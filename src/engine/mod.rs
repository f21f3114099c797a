//! The verbs, written once, against [`Transport`], `rdiff` and `files`: send, receive, signature, check,
//! delta, patch, and push and pull made of them. Knows nothing of C, of `FILE *`, or of csync2's globals. For callers with
//! commands of their own around the verbs, `pipeline` keeps requests that are sent ahead of the answers, and `inert`
//! makes a delta that may leave with the request that announces it.
//!
//! What every verb promises: whatever happens to files here, the peer gets exactly what it was told to
//! expect and everything it announced is read, so that the next command finds both ends in step. Only a lost
//! connection ends that.
#![forbid(unsafe_code)]

mod blocks;
mod check;
mod delta;
mod error;
mod inert;
mod output;
mod patch;
mod pipeline;
mod recv;
mod send;
mod signature;
mod threads;
mod whole;

pub use check::{Comparison, check};
pub use delta::delta;
pub use error::Error;
pub use inert::inert_delta;
pub use patch::patch;
pub use pipeline::Pipeline;
pub use recv::{Sink, recv};
pub use send::{refuse, send, send_file};
pub use signature::{Signed, signature, write_signature};
pub use threads::Threads;
pub use whole::{pull, push};

use crate::files::Ownership;
use crate::transport::Transport;
use crate::wire::{FrameReader, Header, read_header};
use std::path::PathBuf;

/// Where messages go, with csync2's levels: 0 is always shown, 3 is the most detailed.
pub trait Log {
    /// Takes one message, without an end of line.
    fn log(&self, level: i32, message: &str);
}

/// What the caller wants done its way.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where new files are staged; beside their target without one.
    pub temp_dir: Option<PathBuf>,
    /// Whether a replaced file's owner and group are left alone.
    pub ownership: Ownership,
    /// New files are on the disk before they take the old one's name.
    pub sync: bool,
    /// How many literal bytes a delta may hold in memory; what goes beyond is read again when it is sent.
    pub literal_budget: usize,
    /// Who hashes large files.
    pub threads: Threads,
}

impl Settings {
    /// Literal bytes that are held by default: 64 MiB.
    pub const LITERAL_BUDGET: usize = 64 << 20;
}

/// One connection and what goes with it, for the time of one call.
pub struct Session<'s> {
    /// The peer.
    pub transport: &'s mut dyn Transport,
    /// The host's log.
    pub log: &'s dyn Log,
    /// The host's wishes.
    pub settings: Settings,
}

impl Session<'_> {
    /// The payload that the peer sends next.
    fn receive(&mut self) -> Result<FrameReader<'_>, Error> {
        match read_header(self.transport)? {
            Header::Stream(length) => {
                self.log.log(3, &format!("Receiving {length} bytes."));
                Ok(FrameReader::new(self.transport, length))
            }
            Header::Refused => Err(Error::Refused),
            Header::Text(text) => Err(Error::Unexpected(text)),
        }
    }
}

/// The length of a buffer for `total` bytes: no longer than these, since most files of a tree are small.
fn at_most(length: usize, total: u64) -> usize {
    usize::try_from(total).map_or(length, |total| length.min(total))
}

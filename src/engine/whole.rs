//! Whole files, with an answer: what `PATCH` is in csync2, without csync2's commands around it.
//!
//! ```text
//! pull                                push
//!   signature of the old file  ->
//!                              <-       delta, or ERROR
//!   octet-stream 0, or ERROR   ->                          the file is in place, or is not
//! ```

use super::{Error, Session, delta, patch, signature};
use crate::wire::{FrameWriter, send_error};
use std::path::Path;

/// Sends the file at `path` to a peer that pulls, as a delta to what it has, and reads its answer.
///
/// # Errors
/// As [`delta`]; [`Error::Refused`] where the peer could not put the file in place. Both ends are in step after each
/// but a lost connection.
pub fn push(session: &mut Session<'_>, path: &Path) -> Result<(), Error> {
    let sent = delta(session, path);
    if let Err(Error::Connection(_) | Error::Cancelled(_)) = sent {
        return sent;
    }
    let answer = session.receive().and_then(|mut frame| Ok(frame.drain()?));
    // Our own error says more than the answer to it; but for a lost connection.
    match (sent, answer) {
        (_, Err(Error::Connection(lost))) => Err(lost.into()),
        (Err(error), _) => Err(error),
        (Ok(()), answer) => answer,
    }
}

/// Receives the file at `path` from a peer that pushes, as a delta to what is there, and answers it.
///
/// # Errors
/// As [`patch`]. Both ends are in step after each but a lost connection.
pub fn pull(session: &mut Session<'_>, path: &Path) -> Result<(), Error> {
    let signed = signature(session, path)?;
    let readable = signed.readable();
    let patched = match patch(session, path, Some(signed)) {
        // Our own error says more than the peer's.
        Err(Error::Refused) => readable.and(Err(Error::Refused)),
        patched => patched,
    };
    match patched {
        Ok(()) => Ok(FrameWriter::announce(session.transport, 0).finish()?),
        Err(Error::Connection(lost)) => Err(lost.into()),
        Err(error) => {
            send_error(session.transport)?;
            Err(error)
        }
    }
}

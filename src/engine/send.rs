//! Sending content as it is.

use super::{Error, Session};
use crate::wire::FrameWriter;
use std::io::{ErrorKind, Read};

/// Announces `length` bytes and sends them from `source`.
///
/// # Errors
/// A lost connection; or `source` failed or ended early, in the middle of a payload that cannot be taken back:
/// the caller must close the connection.
pub fn send(session: &mut Session<'_>, source: &mut dyn Read, length: u64) -> Result<(), Error> {
    let mut frame = FrameWriter::announce(session.transport, length);
    while frame.owed() > 0 {
        let read = source.read(frame.room()?);
        match read {
            Ok(0) => {
                let ended = ErrorKind::UnexpectedEof;
                return Err(Error::file("reading data to be sent", ended));
            }
            Ok(count) => frame.advance(count),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::file("reading data to be sent", error)),
        }
    }
    Ok(frame.finish()?)
}

//! Sending content as it is.

use super::{Error, Session};
use crate::wire::FrameWriter;
use std::io::{self, ErrorKind, Read};

/// Announces `length` bytes and sends them from `source`.
///
/// # Errors
/// A lost connection. [`Error::File`]: `source` failed before anything had left, and the peer got `ERROR`.
/// [`Error::Unfinished`]: it failed in the middle of a payload that cannot be taken back; the caller must close the
/// connection.
pub fn send(session: &mut Session<'_>, source: &mut dyn Read, length: u64) -> Result<(), Error> {
    let mut frame = FrameWriter::announce(session.transport, length);
    while frame.owed() > 0 {
        match read_some(source, frame.room()?) {
            Ok(count) => frame.advance(count),
            Err(error) if frame.withdraw()? => {
                return Err(Error::file("reading data to be sent", error));
            }
            Err(error) => return Err(Error::Unfinished(error)),
        }
    }
    Ok(frame.finish()?)
}

/// Reads at least one byte; an end is an error, since more was announced.
fn read_some(source: &mut dyn Read, buf: &mut [u8]) -> io::Result<usize> {
    loop {
        match source.read(buf) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

//! Sending content as it is.

use super::{Error, Session};
use crate::wire::{FrameWriter, send_error};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileExt;

/// Announces `length` bytes and sends them from `source`.
///
/// # Errors
/// A lost connection. [`Error::File`]: `source` failed before anything had left, and the peer got `ERROR`.
/// [`Error::Unfinished`]: it failed in the middle of a payload that cannot be taken back; the caller must close the
/// connection.
pub fn send(session: &mut Session<'_>, source: &mut dyn Read, length: u64) -> Result<(), Error> {
    send_rest(FrameWriter::announce(session.transport, length), source)
}

/// As [`send`], for a file, from its start to its end wherever its position is.
///
/// # Errors
/// As [`send`].
pub fn send_file(session: &mut Session<'_>, file: &File, length: u64) -> Result<(), Error> {
    let mut frame = FrameWriter::announce(session.transport, length);
    let offset = frame.put_file(file, 0, length)?;
    send_rest(frame, &mut From { file, offset })
}

/// Answers a peer that waits for a payload which cannot be had, with `ERROR`.
///
/// # Errors
/// `error`, or a lost connection.
pub fn refuse(session: &mut Session<'_>, error: Error) -> Result<(), Error> {
    send_error(session.transport)?;
    Err(error)
}

/// A file read from an offset on.
struct From<'f> {
    file: &'f File,
    offset: u64,
}

impl Read for From<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buf, self.offset)?;
        self.offset += count as u64;
        Ok(count)
    }
}

fn send_rest(mut frame: FrameWriter<'_>, source: &mut dyn Read) -> Result<(), Error> {
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

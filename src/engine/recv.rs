//! Receiving content as it is.

use super::{Error, Session, at_most};
use crate::transport::{LONGEST_WAIT, Stopped};
use crate::wire::FrameReader;
use std::io::{self, ErrorKind, Write};
use std::time::{Duration, Instant};

/// What is received and written at once.
const BUFFER: usize = 64 * 1024;

const STEP: &str = "writing received data";

/// Where received content goes.
pub trait Sink {
    /// Writes some of `bytes`; `WouldBlock` where nothing is taken now.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Passes on what it holds back.
    fn flush(&mut self) -> io::Result<()>;

    /// Waits, `limit` at most, until another write may be taken; false where it cannot wait, and a refused write is an
    /// error as any other.
    fn wait(&mut self, limit: Duration) -> bool;
}

impl<W: Write> Sink for W {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Write::write(self, bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Write::flush(self)
    }

    fn wait(&mut self, _: Duration) -> bool {
        false
    }
}

/// Reads one payload and writes it to `sink`. Returns its length.
///
/// # Errors
/// The peer's whole payload was read after each, but for a lost connection and a cancelled call. `ETIMEDOUT`: the sink
/// took nothing for the time that the session allows.
pub fn recv(session: &mut Session<'_>, sink: &mut dyn Sink) -> Result<u64, Error> {
    let mut frame = session.receive()?;
    let length = frame.owed();
    let mut buffer = vec![0; at_most(BUFFER, length)];
    let mut outcome = Ok(());
    while frame.owed() > 0 {
        let bytes = frame.read(&mut buffer)?;
        if outcome.is_ok() {
            outcome = write_all(&mut frame, sink, bytes)?;
        }
    }
    outcome
        .and_then(|()| sink.flush())
        .map_err(|error| Error::file(STEP, error))?;
    Ok(length)
}

/// Writes all of `bytes`, however long that takes, unless the session ends it. The inner error is the sink's own.
fn write_all(
    frame: &mut FrameReader<'_>,
    sink: &mut dyn Sink,
    bytes: &[u8],
) -> Result<io::Result<()>, Error> {
    let mut rest = bytes;
    let mut refused_since = None;
    while !rest.is_empty() {
        match sink.write(rest) {
            Ok(0) => return Ok(Err(ErrorKind::WriteZero.into())),
            Ok(count) => {
                rest = &rest[count..];
                refused_since = None;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock && sink.wait(LONGEST_WAIT) => {
                let since = *refused_since.get_or_insert_with(Instant::now);
                match frame.waits_elsewhere(since) {
                    Ok(()) => {}
                    Err(Stopped::Cancelled) => return Err(Error::Cancelled(STEP)),
                    Err(Stopped::Silent(_)) => return Ok(Err(ErrorKind::TimedOut.into())),
                }
            }
            Err(error) => return Ok(Err(error)),
        }
    }
    Ok(Ok(()))
}

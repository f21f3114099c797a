//! Receiving content as it is.

use super::{Error, Session};
use std::io::Write;

/// What is received and written at once.
const BUFFER: usize = 64 * 1024;

/// Reads one payload and writes it to `sink`. Returns its length.
///
/// # Errors
/// The peer's whole payload was read after each, but for a lost connection.
pub fn recv(session: &mut Session<'_>, sink: &mut dyn Write) -> Result<u64, Error> {
    let mut frame = session.receive()?;
    let length = frame.owed();
    let mut buffer = vec![0; BUFFER];
    let mut outcome = Ok(());
    while frame.owed() > 0 {
        let bytes = frame.read(&mut buffer)?;
        outcome = outcome.and_then(|()| sink.write_all(bytes));
    }
    outcome
        .and_then(|()| sink.flush())
        .map_err(|error| Error::file("writing received data", error))?;
    Ok(length)
}

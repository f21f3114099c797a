//! Sending the signature of a local file.

use super::blocks::FileSums;
use super::{Error, Session, Threads};
use crate::files::{Regular, Stamp, open_regular};
use crate::rdiff::SignatureHeader;
use crate::transport::ConnectionError;
use crate::wire::FrameWriter;
use rustix::io::Errno;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The signature of a missing file, as csync2 has always sent it: librsync before 1.0 made sums of 8 bytes, and
/// an existing empty file's says 16 today.
const MISSING: SignatureHeader = SignatureHeader {
    strong_len: 8,
    ..SignatureHeader::CSYNC2
};

/// What a signature was made of, for the patch that follows it: the delta that the peer will send fits this
/// version of the file and no other.
#[derive(Debug)]
pub struct Signed {
    pub(super) path: PathBuf,
    pub(super) basis: Basis,
}

/// The state of the basis when its signature was sent.
#[derive(Debug)]
pub(super) enum Basis {
    /// There was none.
    Missing,
    /// This version.
    Version(Stamp),
    /// It could not be read (an errno): the peer got a signature of nothing in its place.
    Unreadable(i32),
}

impl Signed {
    /// An error where the peer got a signature of nothing because the file could not be read.
    ///
    /// # Errors
    /// That one.
    pub fn readable(&self) -> Result<(), Error> {
        match self.basis {
            Basis::Unreadable(errno) => {
                let error = io::Error::from_raw_os_error(errno);
                Err(Error::file("reading the file for its signature", error))
            }
            _ => Ok(()),
        }
    }
}

/// Sends the signature of `path` (MD4, rollsum, blocks of 2048 bytes, sums of 16). Where it cannot be made,
/// the peer gets a valid signature of an empty file, since no failure word is understood by every peer here; the
/// patch that follows then fails, in step.
///
/// # Errors
/// The connection was lost. Troubles of the file go to the log and into the returned value.
pub fn signature(session: &mut Session<'_>, path: &Path) -> Result<Signed, Error> {
    let basis = match open_regular(path) {
        Ok(Some(basis)) => send_signature(session, path, &basis)?,
        Ok(None) => {
            session.log.log(3, "Basis file does not exist.");
            send_empty(session, MISSING)?;
            Basis::Missing
        }
        Err(error) => {
            let error = Error::file("opening the file for its signature", error);
            session
                .log
                .log(0, &format!("Signature of {}: {error}", path.display()));
            send_empty(session, SignatureHeader::CSYNC2)?;
            Basis::Unreadable(error.errno())
        }
    };
    Ok(Signed {
        path: path.to_owned(),
        basis,
    })
}

fn send_empty(session: &mut Session<'_>, header: SignatureHeader) -> Result<(), ConnectionError> {
    let mut frame = FrameWriter::announce(session.transport, SignatureHeader::LEN as u64);
    frame.put(&header.encode())?;
    frame.finish()
}

fn send_signature(session: &mut Session<'_>, path: &Path, basis: &Regular) -> Result<Basis, Error> {
    let header = SignatureHeader::CSYNC2;
    let size = basis.stamp.size();
    let Some(length) = header.signature_len(size) else {
        send_empty(session, header)?;
        return Ok(Basis::Unreadable(Errno::FBIG.raw_os_error()));
    };
    let mut frame = FrameWriter::announce(session.transport, length);
    frame.put(&header.encode())?;
    let mut sums = FileSums::new(&basis.file, size, header, session.settings.threads);
    let mut state = Basis::Version(basis.stamp);
    while frame.owed() > 0 {
        match sums.next() {
            Ok(records) => frame.put(records)?,
            Err(error) => {
                // No block of the peer's has a strong sum of zeroes: the filler matches nothing.
                let error = Error::file("reading the file for its signature", error);
                session
                    .log
                    .log(0, &format!("Signature of {}: {error}", path.display()));
                frame.fill(u64::MAX)?;
                state = Basis::Unreadable(error.errno());
            }
        }
    }
    frame.finish()?;
    Ok(state)
}

/// Writes the signature of an open file to `out`: what [`signature`] sends, without its header line.
///
/// # Errors
/// What reading or writing says.
pub fn write_signature(basis: &Regular, threads: Threads, out: &mut dyn Write) -> io::Result<()> {
    let header = SignatureHeader::CSYNC2;
    out.write_all(&header.encode())?;
    let mut sums = FileSums::new(&basis.file, basis.stamp.size(), header, threads);
    loop {
        match sums.next()? {
            [] => return Ok(()),
            records => out.write_all(records)?,
        }
    }
}

//! Comparing a local file with the peer's by its signature.

use super::blocks::{FileSums, LONGEST_BLOCK};
use super::{Error, Session, Threads};
use crate::files::open_regular;
use crate::rdiff::SignatureHeader;
use crate::wire::FrameReader;
use std::path::Path;

/// What a check found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// The peer has the same content.
    Same,
    /// It has not, or there is no telling: a patch will say more.
    Differs,
}

/// Reads the peer's signature and compares the local file with it, block by block, as it arrives; after the
/// first difference nothing more is hashed. The peer's own block length, sum length and kinds are used, so that
/// old and new versions of librsync compare equal.
///
/// What is not a regular file (`is_regular` false) is the same as an empty payload.
///
/// # Errors
/// The connection was lost. A file that cannot be read, and a peer that reports an error, are `Differs`: the
/// status line that follows must be read by the caller for the two to stay in step.
pub fn check(
    session: &mut Session<'_>,
    path: &Path,
    is_regular: bool,
) -> Result<Comparison, Error> {
    let (log, threads) = (session.log, session.settings.threads);
    let mut frame = match session.receive() {
        Ok(frame) => frame,
        Err(Error::Connection(lost)) => return Err(lost.into()),
        Err(error) => {
            log.log(0, &format!("Checking {}: {error}", path.display()));
            return Ok(Comparison::Differs);
        }
    };
    let same = if is_regular {
        same_as(&mut frame, path, threads)
    } else {
        Ok(frame.owed() == 0)
    };
    let same = match same {
        Ok(same) => same,
        Err(Error::Connection(lost)) => return Err(lost.into()),
        Err(error) => {
            log.log(0, &format!("Checking {}: {error}", path.display()));
            false
        }
    };
    frame.drain()?;
    Ok(if same {
        Comparison::Same
    } else {
        Comparison::Differs
    })
}

/// Whether the signature that `frame` carries is that of the file at `path`; may leave some of it unread.
fn same_as(frame: &mut FrameReader<'_>, path: &Path, threads: Threads) -> Result<bool, Error> {
    let file = match open_regular(path) {
        Ok(Some(file)) => file,
        Ok(None) => return Ok(frame.owed() == 0),
        Err(error) => return Err(Error::file("opening the file for the check", error)),
    };
    let length = frame.owed();
    let mut header = [0; SignatureHeader::LEN];
    if frame.read(&mut header)?.len() < header.len() {
        return Ok(false);
    }
    let header = SignatureHeader::parse(&header)?;
    let size = file.stamp.size();
    if header.signature_len(size) != Some(length) || header.block_len > LONGEST_BLOCK {
        return Ok(false);
    }
    let mut ours = FileSums::new(&file.file, size, header, threads);
    let mut theirs = Vec::new();
    while frame.owed() > 0 {
        let records = ours
            .next()
            .map_err(|error| Error::file("reading the file for the check", error))?;
        theirs.resize(records.len(), 0);
        if records.is_empty() || frame.read(&mut theirs)? != records {
            return Ok(false);
        }
    }
    Ok(true)
}

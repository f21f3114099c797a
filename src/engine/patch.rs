//! Receiving a delta and making the new file of it.

use super::signature::Basis;
use super::{Error, Session, Settings, Signed, at_most};
use crate::files::{Expected, NewFile, RangeCopier, Regular, Stamp, carry_over, open_regular};
use crate::rdiff::{PatchOutput, Patcher};
use crate::wire::FrameReader;
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// What is received, and what is written, at once.
const BUFFER: usize = 256 * 1024;

/// Copies of at least this length go from file to file; shorter ones are gathered with the literals around them.
const LONG_COPY: u64 = 64 * 1024;

/// Reads the peer's delta and replaces the file at `path` by what it makes of it. `signed` is what
/// [`super::signature`] returned for the signature that the delta answers; a file that is not that version any
/// more is left alone.
///
/// # Errors
/// The old file is untouched after each, nothing of the new one is left, and all of the delta was read, but for a
/// lost connection. `EAGAIN`: the file changed between signature and patch.
pub fn patch(session: &mut Session<'_>, path: &Path, signed: Option<Signed>) -> Result<(), Error> {
    let (settings, log) = (session.settings.clone(), session.log);
    session.log.log(3, "Receiving the delta from the peer.");
    let mut frame = session.receive()?;
    let outcome = apply(&mut frame, path, signed, &settings).and_then(|(basis, new)| {
        if let Some(basis) = &basis {
            carry_over(
                &basis.file,
                new.file(),
                settings.ownership,
                &mut |what, why| {
                    let error = Error::file("carrying the attributes over to the new file", why);
                    log.log(1, &format!("Patching {}: {error} ({what})", path.display()));
                },
            );
        }
        let expected = basis.map_or(Expected::Nothing, |basis| Expected::Version(basis.stamp));
        new.publish(expected, settings.sync)
            .map_err(|error| Error::file("putting the new file in place", error))
    });
    frame.drain()?;
    outcome
}

/// Makes the new file; may leave some of a bad delta unread.
fn apply(
    frame: &mut FrameReader<'_>,
    path: &Path,
    signed: Option<Signed>,
    settings: &Settings,
) -> Result<(Option<Regular>, NewFile), Error> {
    let basis = open_basis(path, signed)?;
    let new = make(frame, path, basis.as_ref(), settings).map_err(|error| match &basis {
        // A basis that became shorter meanwhile shows as one that cannot be read.
        Some(basis) if is_another(basis) => Error::changed(CHANGED),
        _ => error,
    })?;
    Ok((basis, new))
}

const CHANGED: &str = "patching the file, which changed since its signature,";

fn is_another(basis: &Regular) -> bool {
    Stamp::of(&basis.file).is_ok_and(|now| now != basis.stamp)
}

fn make(
    frame: &mut FrameReader<'_>,
    path: &Path,
    basis: Option<&Regular>,
    settings: &Settings,
) -> Result<NewFile, Error> {
    let new = NewFile::create(path, settings.temp_dir.as_deref())
        .map_err(|error| Error::file("creating the new file", error))?;
    let mut patcher = Patcher::new(basis.map_or(0, |basis| basis.stamp.size()));
    let mut output = Output::new(basis.map(|basis| &basis.file), new.file());
    let mut buffer = vec![0; at_most(BUFFER, frame.owed())];
    while frame.owed() > 0 {
        patcher.feed(frame.read(&mut buffer)?, &mut output)?;
    }
    patcher.finish()?;
    output
        .flush()
        .map_err(|error| Error::file("writing the new file", error))?;
    Ok(new)
}

/// Opens the file that the delta was made against. Only a missing one is an empty basis.
fn open_basis(path: &Path, signed: Option<Signed>) -> Result<Option<Regular>, Error> {
    let step = "opening the file to be patched";
    let signed = signed.filter(|signed| signed.path == path);
    if let Some(Basis::Unreadable(errno)) = signed.as_ref().map(|signed| &signed.basis) {
        return Err(Error::file(step, io::Error::from_raw_os_error(*errno)));
    }
    let basis = open_regular(path).map_err(|error| Error::file(step, error))?;
    let unchanged = match (signed.map(|signed| signed.basis), &basis) {
        (None, _) | (Some(Basis::Missing), None) => true,
        (Some(Basis::Version(stamp)), Some(basis)) => stamp == basis.stamp,
        _ => false,
    };
    if unchanged {
        Ok(basis)
    } else {
        Err(Error::changed(CHANGED))
    }
}

/// Gathers short pieces into large writes; long copies go from file to file.
struct Output<'f> {
    basis: Option<&'f File>,
    new: &'f File,
    pending: Vec<u8>,
    copier: RangeCopier,
}

impl<'f> Output<'f> {
    fn new(basis: Option<&'f File>, new: &'f File) -> Self {
        Self {
            basis,
            new,
            pending: Vec::new(),
            copier: RangeCopier::default(),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.new.write_all(&self.pending)?;
        self.pending.clear();
        Ok(())
    }

    fn make_room(&mut self, count: usize) -> io::Result<()> {
        if self.pending.len() + count > BUFFER {
            self.flush()?;
        }
        Ok(())
    }
}

impl PatchOutput for Output<'_> {
    fn literal(&mut self, data: &[u8]) -> io::Result<()> {
        self.make_room(data.len())?;
        if data.len() >= BUFFER / 2 {
            self.flush()?;
            return self.new.write_all(data);
        }
        self.pending.extend_from_slice(data);
        Ok(())
    }

    fn copy(&mut self, offset: u64, length: u64) -> io::Result<()> {
        // The patcher refuses copies beyond the basis, and without one every copy is beyond it.
        let basis = self.basis.ok_or(Errno::BADMSG)?;
        if length >= LONG_COPY {
            self.flush()?;
            return self.copier.copy(basis, offset, length, self.new);
        }
        let count = length as usize;
        self.make_room(count)?;
        let start = self.pending.len();
        self.pending.resize(start + count, 0);
        basis.read_exact_at(&mut self.pending[start..], offset)
    }
}

//! Receiving a delta and making the new file of it.

use super::signature::Basis;
use super::{Error, Session, Settings, Signed, at_most};
use crate::files::{Expected, NewFile, RangeCopier, Regular, Stamp, carry_over, open_regular};
use crate::rdiff::{PatchOutput, Patcher};
use crate::wire::FrameReader;
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, ErrorKind, IoSlice, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// What is received at once: with more the peer has to wait while it is written, with less more of it waits in memory for
/// a border.
const BUFFER: usize = 512 * 1024;

/// Literals are written up to multiples of so many bytes. 256 MiB to ext4 in writes of 256 KiB: 0.051 s of CPU time where
/// they begin and end at such borders, 0.067 elsewhere; 0.044 in writes of 1 MiB.
const BORDER: u64 = 256 * 1024;

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

/// Gathers short pieces into large writes, which end where the file's large pages do; long copies go from file to file.
struct Output<'f> {
    basis: Option<&'f File>,
    new: &'f File,
    written: u64,
    pending: Vec<u8>,
    copier: RangeCopier,
}

impl<'f> Output<'f> {
    fn new(basis: Option<&'f File>, new: &'f File) -> Self {
        Self {
            basis,
            new,
            written: 0,
            pending: Vec::new(),
            copier: RangeCopier::default(),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write(&[])
    }

    /// Writes what is pending, and `data` behind it.
    fn write(&mut self, data: &[u8]) -> io::Result<()> {
        write_all_vectored(
            self.new,
            &mut [IoSlice::new(&self.pending), IoSlice::new(data)],
        )?;
        self.written += (self.pending.len() + data.len()) as u64;
        self.pending.clear();
        Ok(())
    }
}

impl PatchOutput for Output<'_> {
    fn literal(&mut self, data: &[u8]) -> io::Result<()> {
        let end = self.written + (self.pending.len() + data.len()) as u64;
        // What is behind the last border waits for more.
        let behind = (end % BORDER) as usize;
        let rest = match data.len().checked_sub(behind) {
            Some(ahead) if end - self.written >= BORDER => {
                self.write(&data[..ahead])?;
                &data[ahead..]
            }
            _ => data,
        };
        self.pending.extend_from_slice(rest);
        Ok(())
    }

    fn copy(&mut self, offset: u64, length: u64) -> io::Result<()> {
        // The patcher refuses copies beyond the basis, and without one every copy is beyond it.
        let basis = self.basis.ok_or(Errno::BADMSG)?;
        if length >= LONG_COPY {
            self.flush()?;
            self.copier.copy(basis, offset, length, self.new)?;
            self.written += length;
            return Ok(());
        }
        if self.pending.len() as u64 + length > BORDER {
            self.flush()?;
        }
        let start = self.pending.len();
        self.pending.resize(start + length as usize, 0);
        basis.read_exact_at(&mut self.pending[start..], offset)
    }
}

fn write_all_vectored(mut file: &File, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
    IoSlice::advance_slices(&mut slices, 0);
    while !slices.is_empty() {
        match file.write_vectored(slices) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => IoSlice::advance_slices(&mut slices, count),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

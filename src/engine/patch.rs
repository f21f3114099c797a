//! Receiving a delta and making the new file of it.

use super::output::Output;
use super::signature::Basis;
use super::{Error, Log, Session, Settings, Signed, at_most};
use crate::files::{Expected, NewFile, Regular, Stamp, carry_over, open_regular};
use crate::rdiff::Patcher;
use crate::wire::FrameReader;
use std::io;
use std::path::Path;
use std::time::Instant;

/// What is received at once. While it is written nothing is received, so the peer should not have to wait for long.
const BUFFER: usize = 512 * 1024;

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
    let outcome = apply(&mut frame, path, signed, &settings, log).and_then(|(basis, new)| {
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
        new.publish(expected, settings.sync, &mut || go_on(&mut frame))
            .map_err(|error| Error::local("putting the new file in place", error))
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
    log: &dyn Log,
) -> Result<(Option<Regular>, NewFile), Error> {
    let basis = open_basis(path, signed)?;
    let new = make(frame, path, basis.as_ref(), settings, log).map_err(|error| match &basis {
        _ if error.is_our_own_end() => error,
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
    log: &dyn Log,
) -> Result<NewFile, Error> {
    let new = NewFile::create(path, settings.temp_dir.as_deref(), &mut |place, why| {
        let (path, place) = (path.display(), place.display());
        let text = format!("Patching {path}: staged beside it, not in {place}: {why}");
        log.log(1, &text);
    })
    .map_err(|error| Error::file("creating the new file", error))?;
    let mut patcher = Patcher::new(basis.map_or(0, |basis| basis.stamp.size()));
    let mut output = Output::new(basis.map(|basis| &basis.file), new.file());
    let mut buffer = vec![0; at_most(BUFFER, frame.owed())];
    while frame.owed() > 0 {
        let bytes = frame.read(&mut buffer)?;
        output.feed(&mut patcher, bytes, &mut || go_on(frame))?;
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

/// Whether the program still wants what the connection has no part in: local files are read and written.
fn go_on(frame: &mut FrameReader<'_>) -> io::Result<()> {
    Ok(frame.waits_elsewhere(Instant::now())?)
}

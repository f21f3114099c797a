//! Sending the delta from the peer's version of a file to ours.

use super::{Error, Session};
use crate::files::{Regular, Stamp, open_regular};
use crate::rdiff::{
    Command, DELTA_MAGIC, DeltaError, DeltaPlan, Index, IndexBuilder, PlanItem, RESERVED_OPCODE,
};
use crate::transport::{CSYNC_CHUNK, ConnectionError, Transport};
use crate::wire::{FrameReader, FrameWriter, send_error};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

/// Up to this size a file that the peer does not have is read before its length is announced, so that one that
/// changes meanwhile is still sent whole; a larger one is announced by its size and streamed.
const READ_AHEAD: u64 = 1 << 20;

/// Reads the peer's signature, then sends the delta, or `ERROR`: always exactly one of the two, unless the
/// connection is lost.
///
/// # Errors
/// Both ends are in step after each, but for a lost connection. `EAGAIN`: the file changed while it was read. The
/// peer then has what was read; or, where the file became shorter than announced, a delta that it refuses.
pub fn delta(session: &mut Session<'_>, path: &Path) -> Result<(), Error> {
    let prepared = match prepare(session, path) {
        Ok(prepared) => prepared,
        Err(lost @ (Error::Connection(_) | Error::Cancelled(_))) => return Err(lost),
        Err(error) => {
            send_error(session.transport)?;
            return Err(error);
        }
    };
    let (source, plan) = prepared;
    session.log.log(3, "Sending the delta to the peer.");
    let complete = send_plan(session, &source.file, &plan)?;
    complete.map_err(|error| Error::file("reading the file for its delta", error))?;
    let now = Stamp::of(&source.file)
        .map_err(|error| Error::file("looking at the file after its delta", error))?;
    if !now.same_content(&source.stamp) || plan.source_len() != source.stamp.size() {
        return Err(Error::changed("reading the file, which changed,"));
    }
    Ok(())
}

/// Everything that can fail before the first byte is sent.
fn prepare(session: &mut Session<'_>, path: &Path) -> Result<(Regular, DeltaPlan), Error> {
    session.log.log(3, "Receiving the signature from the peer.");
    let mut frame = session.receive()?;
    let index = receive_index(&mut frame);
    frame.drain()?;
    let index = index?;
    let source = open_regular(path)
        .and_then(|source| source.ok_or_else(|| Errno::NOENT.into()))
        .map_err(|error| Error::file("opening the file for its delta", error))?;
    let plan = plan(session, &index, &source)?;
    Ok((source, plan))
}

/// Takes the peer's signature in as it arrives; may leave some of a bad one unread.
fn receive_index(frame: &mut FrameReader<'_>) -> Result<Index, Error> {
    let mut builder = IndexBuilder::new(frame.owed())?;
    let mut buffer = vec![0; CSYNC_CHUNK];
    while frame.owed() > 0 {
        builder.push(frame.read(&mut buffer)?)?;
    }
    Ok(builder.finish()?)
}

fn plan(
    session: &mut Session<'_>,
    index: &Index,
    source: &Regular,
) -> Result<DeltaPlan, DeltaError> {
    let size = source.stamp.size();
    if index.is_empty() && size > READ_AHEAD {
        return Ok(DeltaPlan::whole_file(size));
    }
    let mut watched = Watched {
        file: &source.file,
        transport: session.transport,
    };
    DeltaPlan::scan(index, &mut watched, size, session.settings.literal_budget)
}

/// A file whose reading can be cancelled: a search may take long, and the connection has no part in it.
struct Watched<'s> {
    file: &'s File,
    transport: &'s mut dyn Transport,
}

impl Read for Watched<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.transport.waits_elsewhere(Instant::now())?;
        self.file.read(buf)
    }
}

/// Announces and sends the planned delta. The inner error says why it is one that the peer refuses.
fn send_plan(
    session: &mut Session<'_>,
    source: &File,
    plan: &DeltaPlan,
) -> Result<io::Result<()>, ConnectionError> {
    let mut frame = FrameWriter::announce(session.transport, plan.delta_len());
    frame.put(&DELTA_MAGIC.to_be_bytes())?;
    for item in plan.items() {
        frame.put(item.command().encode().as_ref())?;
        match item {
            PlanItem::Copy { .. } => {}
            PlanItem::Captured(bytes) => frame.put(bytes)?,
            PlanItem::Streamed { offset, len } => {
                if let Err(error) = stream(&mut frame, source, offset, len)? {
                    spoil(frame)?;
                    return Ok(Err(error));
                }
            }
        }
    }
    frame.put(Command::End.encode().as_ref())?;
    frame.finish()?;
    Ok(Ok(()))
}

/// Sends a range of the source; where it cannot be read, filler in place of the rest of it.
fn stream(
    frame: &mut FrameWriter<'_>,
    source: &File,
    offset: u64,
    length: u64,
) -> Result<io::Result<()>, ConnectionError> {
    let mut done = frame.put_file(source, offset, length)?;
    while done < length {
        let room = frame.room()?;
        let wanted = usize::try_from(length - done).map_or(room.len(), |left| left.min(room.len()));
        match source.read_at(&mut room[..wanted], offset + done) {
            Ok(0) => {
                frame.fill(length - done)?;
                return Ok(Err(Errno::AGAIN.into()));
            }
            Ok(count) => {
                frame.advance(count);
                done += count as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => {
                frame.fill(length - done)?;
                return Ok(Err(error));
            }
        }
    }
    Ok(Ok(()))
}

/// Ends a delta that must not be used: what is still owed begins with an opcode that no patch accepts, so that
/// the peer refuses the whole, keeps its old file, and both stay in step.
fn spoil(mut frame: FrameWriter<'_>) -> Result<(), ConnectionError> {
    frame.put(&[RESERVED_OPCODE])?;
    frame.fill(u64::MAX)?;
    frame.finish()
}

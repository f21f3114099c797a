//! When a read or a write is repeated. Every byte of this library passes through here.

use super::{Direction, STREAM_CHUNK, Stopped, Transport};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::num::NonZeroUsize;
use std::time::Duration;
use thiserror::Error;

/// How often in a row an empty read or write is repeated at once before it counts as the end.
///
/// Unpatched csync2 swallows GnuTLS's AGAIN (a key update, a session ticket) and reports an empty or short
/// read; the data is there at the next call. A closed connection answers every repeat with nothing.
const EMPTY_REPEATS: u32 = 8;

/// The longest single wait for what refuses for now.
pub const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// The connection cannot be used any more.
#[derive(Debug, Error)]
pub enum ConnectionError {
    /// The peer closed it.
    #[error("connection closed by the peer while {}", doing(.0))]
    Closed(Direction),
    /// An attempt failed.
    #[error("connection failed while {}: {}", doing(.0), crate::text::reason(.1))]
    Failed(Direction, #[source] io::Error),
    /// This side has ended it.
    #[error("{}", .1.while_doing(doing(.0)))]
    Stopped(Direction, Stopped),
}

impl ConnectionError {
    /// What `error`, of an attempt in this direction, means for the connection.
    fn of(direction: Direction, error: io::Error) -> Self {
        match error.downcast() {
            Ok(stopped) => Self::Stopped(direction, stopped),
            Err(error) => Self::Failed(direction, error),
        }
    }

    /// Which way bytes were to go.
    pub fn direction(&self) -> Direction {
        match self {
            Self::Closed(direction) | Self::Failed(direction, _) | Self::Stopped(direction, _) => {
                *direction
            }
        }
    }
}

fn doing(direction: &Direction) -> &'static str {
    match direction {
        Direction::Read => "receiving",
        Direction::Write => "sending",
    }
}

/// Counts the attempts without progress and says whether there is to be another.
struct Patience {
    direction: Direction,
    empty: u32,
    refused: u32,
}

impl Patience {
    fn new(direction: Direction) -> Self {
        Self {
            direction,
            empty: 0,
            refused: 0,
        }
    }

    /// `Ok(Some(n))`: progress; `Ok(None)`: try again; `Err`: the connection is lost.
    fn judge(
        &mut self,
        attempt: io::Result<usize>,
        transport: &mut dyn Transport,
    ) -> Result<Option<NonZeroUsize>, ConnectionError> {
        match attempt {
            Ok(count) => match NonZeroUsize::new(count) {
                Some(progress) => {
                    self.empty = 0;
                    self.refused = 0;
                    Ok(Some(progress))
                }
                None if self.empty < EMPTY_REPEATS => {
                    self.empty += 1;
                    Ok(None)
                }
                None => Err(ConnectionError::Closed(self.direction)),
            },
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(None),
            Err(error) if is_repeated(&error) => {
                self.refused = self.refused.saturating_add(1);
                transport.wait(self.direction, self.refused, LONGEST_WAIT);
                Ok(None)
            }
            Err(error) => Err(ConnectionError::of(self.direction, error)),
        }
    }
}

/// Reads at least one byte and at most `buf.len()`; an empty `buf` reads nothing.
///
/// # Errors
/// The peer closed the connection or it failed.
fn read_some(transport: &mut dyn Transport, buf: &mut [u8]) -> Result<usize, ConnectionError> {
    if buf.is_empty() {
        return Ok(0);
    }
    let mut patience = Patience::new(Direction::Read);
    loop {
        let attempt = transport.read(buf);
        if let Some(count) = patience.judge(attempt, transport)? {
            return Ok(count.get().min(buf.len()));
        }
    }
}

/// Fills `buf`.
///
/// # Errors
/// The peer closed the connection or it failed before `buf` was full.
pub fn read_full(transport: &mut dyn Transport, buf: &mut [u8]) -> Result<(), ConnectionError> {
    let mut filled = 0;
    while filled < buf.len() {
        filled += read_some(transport, &mut buf[filled..])?;
    }
    Ok(())
}

/// Writes all of `bytes`, in pieces no larger than the transport's limit ([`STREAM_CHUNK`] without one).
///
/// # Errors
/// The peer closed the connection or it failed before everything was written.
pub fn write_all(transport: &mut dyn Transport, bytes: &[u8]) -> Result<(), ConnectionError> {
    let mut patience = Patience::new(Direction::Write);
    let mut rest = bytes;
    while !rest.is_empty() {
        let limit = chunk(transport).min(rest.len());
        let attempt = transport.write(&rest[..limit]);
        if let Some(count) = patience.judge(attempt, transport)? {
            rest = &rest[count.get().min(limit)..];
        }
    }
    Ok(())
}

/// The largest write that this transport is given.
pub fn chunk(transport: &dyn Transport) -> usize {
    transport
        .max_payload()
        .map_or(STREAM_CHUNK, NonZeroUsize::get)
}

/// Sends what the transport holds back.
///
/// # Errors
/// The connection failed.
pub fn flush(transport: &mut dyn Transport) -> Result<(), ConnectionError> {
    let mut patience = Patience::new(Direction::Write);
    loop {
        // A flush has no count; one that is done is progress.
        let attempt = transport.flush().map(|()| 1);
        if patience.judge(attempt, transport)?.is_some() {
            return Ok(());
        }
    }
}

pub(super) fn is_repeated(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock)
}

/// What became of a range of a file that the transport was to send by itself.
pub enum FileSent {
    /// So many bytes have left; the file has no more.
    Part(u64),
    /// So many bytes have left, and the rest must be read and written: the transport cannot do it, or file or
    /// connection failed, and reading and writing tell which.
    Unsupported(u64),
}

/// Sends `length` bytes of `file` from `offset` on without their passing through this process, as far as the
/// transport can.
///
/// # Errors
/// The connection failed.
pub fn send_file(
    transport: &mut dyn Transport,
    file: &File,
    offset: u64,
    length: u64,
) -> Result<FileSent, ConnectionError> {
    let mut patience = Patience::new(Direction::Write);
    let mut done = 0;
    while done < length {
        let count = usize::try_from(length - done).unwrap_or(usize::MAX);
        match transport.send_file(file, offset + done, count) {
            Ok(0) => break,
            Err(error) if !is_repeated(&error) => return Ok(FileSent::Unsupported(done)),
            attempt => {
                if let Some(count) = patience.judge(attempt, transport)? {
                    done += count.get() as u64;
                }
            }
        }
    }
    Ok(FileSent::Part(done))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// Answers attempts from a script and keeps what was written.
    #[derive(Default)]
    struct Scripted {
        answers: VecDeque<io::Result<usize>>,
        written: Vec<Vec<u8>>,
        addresses: Vec<usize>,
        waits: Vec<u32>,
        limit: Option<NonZeroUsize>,
    }

    impl Transport for Scripted {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            let count = self.answers.pop_front().unwrap_or(Ok(0))?;
            buf[..count].fill(b'x');
            Ok(count)
        }
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.addresses.push(bytes.as_ptr() as usize);
            let count = self.answers.pop_front().unwrap_or(Ok(bytes.len()))?;
            self.written.push(bytes[..count].to_vec());
            Ok(count)
        }
        fn max_payload(&self) -> Option<NonZeroUsize> {
            self.limit
        }
        fn wait(&mut self, _: Direction, refusals: u32, _: Duration) {
            self.waits.push(refusals);
        }
    }

    fn scripted(answers: Vec<io::Result<usize>>) -> Scripted {
        Scripted {
            answers: answers.into(),
            ..Scripted::default()
        }
    }

    fn again() -> io::Result<usize> {
        Err(ErrorKind::WouldBlock.into())
    }

    fn interrupted() -> io::Result<usize> {
        Err(ErrorKind::Interrupted.into())
    }

    #[test]
    fn partial_empty_and_interrupted_reads_are_continued() {
        let mut transport = scripted(vec![Ok(1), interrupted(), Ok(0), Ok(2), again(), Ok(3)]);
        let mut buf = [0; 6];
        assert!(read_full(&mut transport, &mut buf).is_ok());
        assert_eq!(&buf, b"xxxxxx");
    }

    #[test]
    fn a_stream_that_stays_empty_has_ended() {
        let mut transport = scripted(vec![Ok(1)]);
        let error = read_full(&mut transport, &mut [0; 2]);
        assert!(matches!(
            error,
            Err(ConnectionError::Closed(Direction::Read))
        ));
    }

    #[test]
    fn a_refusing_transport_is_waited_for_and_not_given_up() {
        let mut answers: Vec<_> = (0..50).map(|_| again()).collect();
        answers.push(Ok(4));
        let mut transport = scripted(answers);
        assert!(read_full(&mut transport, &mut [0; 4]).is_ok());
        assert_eq!(transport.waits, (1..=50).collect::<Vec<_>>());
    }

    #[test]
    fn short_writes_are_continued_and_a_retry_repeats_pointer_and_length() {
        let mut transport = scripted(vec![Ok(2), again(), interrupted(), Ok(0), Ok(3)]);
        assert!(write_all(&mut transport, b"hello world").is_ok());
        assert_eq!(transport.written.concat(), b"hello world");
        let repeats = &transport.addresses[1..5];
        assert!(repeats.iter().all(|address| *address == repeats[0]));
    }

    #[test]
    fn no_write_is_above_the_limit() {
        for limit in [1, 7, 16384] {
            let mut transport = Scripted {
                limit: NonZeroUsize::new(limit),
                ..Scripted::default()
            };
            let bytes = vec![7; 3 * 16384 + 1];
            assert!(write_all(&mut transport, &bytes).is_ok());
            assert_eq!(transport.written.concat(), bytes);
            assert!(transport.written.iter().all(|piece| piece.len() <= limit));
        }
    }

    #[test]
    fn a_failure_is_reported_with_its_direction_and_without_rusts_suffix() {
        let mut transport = scripted(vec![Err(io::Error::from_raw_os_error(32))]);
        let text = write_all(&mut transport, b"x").map_err(|error| error.to_string());
        assert_eq!(
            text,
            Err("connection failed while sending: Broken pipe".into())
        );
    }
}

//! Requests sent ahead: what is still to be written, and whose answer is due next.
//!
//! A peer that writes answers does not read requests. So nothing here ever waits for room to write: requests are kept
//! and leave, as far as there is room, whenever an answer is about to be waited for. Both ends of a connection then
//! always read, however small the buffers between them are.

use crate::transport::CSYNC_CHUNK;
use crate::wire::announcement;
use std::collections::{TryReserveError, VecDeque};
use std::io::{self, ErrorKind};

/// The window, and what is in it. `T` says whose request it is.
#[derive(Debug)]
pub struct Pipeline<T> {
    files: usize,
    bytes: u64,
    due: VecDeque<Request<T>>,
    /// Requests in `due` that hold a place.
    places: usize,
    /// The bytes of requests and answers in `due`.
    under_way: u64,
    output: Vec<u8>,
    /// How much of `output` has left.
    sent: usize,
    /// The length of an attempt that was refused: it is repeated as it was.
    refused: Option<usize>,
}

#[derive(Debug)]
struct Request<T> {
    tag: T,
    bytes: u64,
    holds_place: bool,
}

impl<T: Copy> Pipeline<T> {
    /// A window of so many places, and of so many bytes of requests and answers.
    pub fn new(files: usize, bytes: u64) -> Self {
        Self {
            files,
            bytes,
            due: VecDeque::new(),
            places: 0,
            under_way: 0,
            output: Vec::new(),
            sent: 0,
            refused: None,
        }
    }

    /// Whether there is a place for another file, whose first request and the answer to it are of so many bytes. There
    /// always is for one file alone.
    pub fn has_room(&self, bytes: u64) -> bool {
        self.due.is_empty()
            || (self.places < self.files && self.under_way.saturating_add(bytes) <= self.bytes)
    }

    /// Takes a request, to be sent behind all others. A request that holds a place is one whose answer decides how the
    /// file goes on; a file's last ones hold none.
    ///
    /// # Errors
    /// No memory; nothing was taken.
    pub fn ask(
        &mut self,
        tag: T,
        request: &[u8],
        answer: u64,
        holds_place: bool,
    ) -> Result<(), TryReserveError> {
        self.due.try_reserve(1)?;
        self.output.try_reserve(request.len())?;
        self.output.extend_from_slice(request);
        let bytes = answer.saturating_add(request.len() as u64);
        self.under_way = self.under_way.saturating_add(bytes);
        self.places += usize::from(holds_place);
        self.due.push_back(Request {
            tag,
            bytes,
            holds_place,
        });
        Ok(())
    }

    /// As [`Pipeline::ask`], for a request with a payload behind it. Holds a place.
    ///
    /// # Errors
    /// As [`Pipeline::ask`].
    pub fn ask_with_payload(
        &mut self,
        tag: T,
        request: &[u8],
        payload: &[u8],
        answer: u64,
    ) -> Result<(), TryReserveError> {
        let header = announcement(payload.len() as u64);
        let mut whole = Vec::new();
        whole.try_reserve_exact(request.len() + header.len() + payload.len())?;
        whole.extend_from_slice(request);
        whole.extend_from_slice(header.as_bytes());
        whole.extend_from_slice(payload);
        self.ask(tag, &whole, answer, true)
    }

    /// Whose answer comes next; `None` where none is due.
    pub fn due(&self) -> Option<T> {
        self.due.front().map(|request| request.tag)
    }

    /// The answer that was due has been read to its end.
    pub fn answered(&mut self) {
        if let Some(request) = self.due.pop_front() {
            self.places -= usize::from(request.holds_place);
            self.under_way = self.under_way.saturating_sub(request.bytes);
        }
    }

    /// Sends what leaves without waiting, by a `write` that does not wait; returns how many bytes are left.
    ///
    /// # Errors
    /// What `write` said, but for `Interrupted` and `WouldBlock`.
    pub fn send(&mut self, mut write: impl FnMut(&[u8]) -> io::Result<usize>) -> io::Result<usize> {
        while self.sent < self.output.len() {
            let rest = &self.output[self.sent..];
            let length = self.refused.take().unwrap_or(rest.len().min(CSYNC_CHUNK));
            match write(&rest[..length]) {
                Ok(count) if count > 0 => self.sent += count.min(length),
                Err(error) if error.kind() == ErrorKind::Interrupted => self.refused = Some(length),
                Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
                Ok(_) | Err(_) => {
                    self.refused = Some(length);
                    break;
                }
            }
        }
        let left = self.output.len() - self.sent;
        // Each byte is moved once at most, on average.
        if self.sent >= left {
            self.output.drain(..self.sent);
            self.sent = 0;
        }
        Ok(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Outcome = Result<(), Box<dyn std::error::Error>>;

    #[test]
    fn answers_are_due_in_the_order_of_the_requests() -> Outcome {
        let mut pipeline = Pipeline::new(8, 1000);
        assert_eq!(pipeline.due(), None);
        for tag in 0..3 {
            pipeline.ask(tag, b"request\n", 10, true)?;
        }
        for tag in 0..3 {
            assert_eq!(pipeline.due(), Some(tag));
            pipeline.answered();
        }
        assert_eq!(pipeline.due(), None);
        pipeline.answered();
        assert!(pipeline.has_room(1000));
        Ok(())
    }

    #[test]
    fn the_window_is_bounded_by_files_and_by_bytes() -> Outcome {
        let mut pipeline = Pipeline::new(2, 100);
        assert!(pipeline.has_room(u64::MAX), "one file always goes");
        pipeline.ask('a', b"12345", 35, true)?;
        assert!(pipeline.has_room(60));
        assert!(!pipeline.has_room(61));
        pipeline.ask('b', b"", 10, true)?;
        assert!(!pipeline.has_room(0), "two files");
        pipeline.answered();
        assert!(pipeline.has_room(90));
        assert!(!pipeline.has_room(91));
        pipeline.ask('c', b"12345", 20, false)?;
        assert!(
            pipeline.has_room(65),
            "the last request of a file holds no place"
        );
        pipeline.ask('d', b"", u64::MAX, true)?;
        assert!(!pipeline.has_room(0));
        Ok(())
    }

    #[test]
    fn what_is_refused_is_repeated_as_it_was() -> Outcome {
        let mut pipeline = Pipeline::new(8, 1 << 20);
        let mut written = Vec::new();
        let mut lengths = Vec::new();
        pipeline.ask(1, b"abc", 0, true)?;
        let refuse = |_: &[u8]| Err(ErrorKind::WouldBlock.into());
        assert_eq!(pipeline.send(refuse)?, 3);
        pipeline.ask_with_payload(2, b"PATCH\n", b"delta", 0)?;
        let mut turn = 0;
        let left = pipeline.send(|bytes| {
            turn += 1;
            lengths.push(bytes.len());
            match turn {
                1 => Err(ErrorKind::Interrupted.into()),
                5 => Ok(0),
                _ => {
                    let count = bytes.len().min(2);
                    written.extend_from_slice(&bytes[..count]);
                    Ok(count)
                }
            }
        })?;
        assert_eq!(lengths[..2], [3, 3]);
        assert_eq!(left, 29 - written.len());
        let all = pipeline.send(|bytes| {
            written.extend_from_slice(bytes);
            Ok(bytes.len())
        })?;
        assert_eq!(all, 0);
        assert_eq!(written, b"abcPATCH\noctet-stream 5\ndelta");
        Ok(())
    }

    #[test]
    fn no_write_is_above_the_chunk_and_a_failure_is_told() -> Outcome {
        let mut pipeline = Pipeline::new(8, 1 << 20);
        pipeline.ask(1, &[b'x'; 40_000], 0, true)?;
        let mut lengths = Vec::new();
        pipeline.send(|bytes| {
            lengths.push(bytes.len());
            Ok(bytes.len())
        })?;
        assert_eq!(lengths, [16384, 16384, 7232]);
        pipeline.ask(1, b"x", 0, true)?;
        let error = pipeline.send(|_| Err(ErrorKind::BrokenPipe.into()));
        assert!(error.is_err_and(|error| error.kind() == ErrorKind::BrokenPipe));
        Ok(())
    }
}

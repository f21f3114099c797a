//! One announced payload, as its receiver and as its sender see it.

use super::header::{announcement, send_error};
use crate::transport::{
    CSYNC_CHUNK, ConnectionError, Direction, FileSent, STREAM_CHUNK, Stopped, Transport, chunk,
    flush, read_full, send_file, write_all,
};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Instant;

/// From this length on, a range of a file is left to the transport to send.
const LONG_RANGE: u64 = 256 * 1024;

/// The payload that the peer has announced: hands out its bytes and knows how many are still owed.
pub struct FrameReader<'t> {
    transport: &'t mut dyn Transport,
    owed: u64,
}

impl<'t> FrameReader<'t> {
    /// A reader of the `length` bytes that follow.
    pub fn new(transport: &'t mut dyn Transport, length: u64) -> Self {
        transport.announced(Direction::Read, length);
        Self {
            transport,
            owed: length,
        }
    }

    /// Bytes that the peer has announced and that were not read yet.
    pub fn owed(&self) -> u64 {
        self.owed
    }

    /// Fills `buf`, or as much of it as is still owed, and returns that part.
    ///
    /// # Errors
    /// The connection was lost.
    pub fn read<'b>(&mut self, buf: &'b mut [u8]) -> Result<&'b [u8], ConnectionError> {
        let count = usize::try_from(self.owed).map_or(buf.len(), |owed| owed.min(buf.len()));
        let part = &mut buf[..count];
        // How much of it came before it failed is not known: a drain would wait for what will never come.
        read_full(self.transport, part).inspect_err(|_| self.owed = 0)?;
        self.owed -= count as u64;
        Ok(part)
    }

    /// What was read has nowhere to go since `since`: whether to go on waiting.
    ///
    /// # Errors
    /// Why not. The payload can still be read.
    pub fn waits_elsewhere(&mut self, since: Instant) -> Result<(), Stopped> {
        self.transport.waits_elsewhere(since)
    }

    /// Reads and drops whatever is still owed.
    ///
    /// # Errors
    /// The connection was lost.
    pub fn drain(&mut self) -> Result<(), ConnectionError> {
        let mut sink =
            vec![0; usize::try_from(self.owed).map_or(CSYNC_CHUNK, |owed| owed.min(CSYNC_CHUNK))];
        while self.owed > 0 {
            self.read(&mut sink)?;
        }
        Ok(())
    }
}

/// The payload that we have announced: collects its bytes into full chunks, the header ahead of the first
/// ones, and never lets more or less out than was announced.
pub struct FrameWriter<'t> {
    transport: &'t mut dyn Transport,
    buffer: Box<[u8]>,
    filled: usize,
    owed: u64,
    announced: bool,
    sends_files: bool,
}

impl<'t> FrameWriter<'t> {
    /// Announces `length` bytes. The header leaves with the first of them.
    pub fn announce(transport: &'t mut dyn Transport, length: u64) -> Self {
        transport.announced(Direction::Write, length);
        let sends_files = transport.sends_files();
        let header = announcement(length);
        // The buffer holds the header whatever the chunk: write_all cuts it to what the transport takes.
        // For a short payload it is short, too: most files of a tree are small.
        let whole = usize::try_from(length)
            .map_or(usize::MAX, |length| length.saturating_add(header.len()));
        let size = chunk(transport)
            .clamp(header.len() + 1, STREAM_CHUNK)
            .min(whole.max(header.len() + 1));
        let mut buffer = vec![0; size].into_boxed_slice();
        buffer[..header.len()].copy_from_slice(header.as_bytes());
        Self {
            transport,
            buffer,
            filled: header.len(),
            owed: length,
            announced: false,
            sends_files,
        }
    }

    /// Bytes that were announced and not yet given.
    pub fn owed(&self) -> u64 {
        self.owed
    }

    /// Sends `ERROR` in place of a payload of which nothing has left yet; `Ok(false)` where it is too late.
    ///
    /// # Errors
    /// The connection was lost.
    pub fn withdraw(self) -> Result<bool, ConnectionError> {
        if self.announced {
            return Ok(false);
        }
        send_error(self.transport)?;
        Ok(true)
    }

    /// Room to read the next bytes into, never more than is owed and only empty when nothing is; say with
    /// [`FrameWriter::advance`] how many there are.
    ///
    /// # Errors
    /// The connection was lost.
    pub fn room(&mut self) -> Result<&mut [u8], ConnectionError> {
        if self.filled == self.buffer.len() {
            self.write_out()?;
        }
        let free = &mut self.buffer[self.filled..];
        let count = usize::try_from(self.owed).map_or(free.len(), |owed| owed.min(free.len()));
        Ok(&mut free[..count])
    }

    /// Takes over the first `count` bytes of the last [`FrameWriter::room`].
    pub fn advance(&mut self, count: usize) {
        debug_assert!(count <= self.buffer.len() - self.filled && count as u64 <= self.owed);
        self.filled += count;
        self.owed -= count as u64;
    }

    /// Gives `bytes`; what would go beyond the announced length is an error of the caller and is cut.
    ///
    /// # Errors
    /// The connection was lost.
    pub fn put(&mut self, bytes: &[u8]) -> Result<(), ConnectionError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let room = self.room()?;
            debug_assert!(!room.is_empty(), "more bytes than announced");
            if room.is_empty() {
                break;
            }
            let count = room.len().min(rest.len());
            room[..count].copy_from_slice(&rest[..count]);
            self.advance(count);
            rest = &rest[count..];
        }
        Ok(())
    }

    /// Gives `count` zero bytes, or as many as are owed: content that was promised and cannot be had any more.
    ///
    /// # Errors
    /// The connection was lost.
    pub fn fill(&mut self, count: u64) -> Result<(), ConnectionError> {
        let mut left = count.min(self.owed);
        while left > 0 {
            let room = self.room()?;
            let count = usize::try_from(left).map_or(room.len(), |left| left.min(room.len()));
            room[..count].fill(0);
            self.advance(count);
            left -= count as u64;
        }
        Ok(())
    }

    /// Gives `length` bytes of `file` from `offset` on, without their passing through this process, as far as the
    /// transport can do that; returns how many bytes it was.
    ///
    /// # Errors
    /// The connection was lost.
    pub fn put_file(
        &mut self,
        file: &File,
        offset: u64,
        length: u64,
    ) -> Result<u64, ConnectionError> {
        let length = length.min(self.owed);
        if length < LONG_RANGE || !self.sends_files {
            return Ok(0);
        }
        // What is held back leaves first, and in one piece with the first bytes.
        let first = file.read_at(self.room()?, offset).unwrap_or(0);
        self.advance(first);
        let first = first as u64;
        self.write_out()?;
        let rest = match send_file(self.transport, file, offset + first, length - first)? {
            FileSent::Part(count) => count,
            FileSent::Unsupported(count) => {
                self.sends_files = false;
                count
            }
        };
        self.owed -= rest;
        Ok(first + rest)
    }

    /// Sends what is still held back.
    ///
    /// # Errors
    /// The connection was lost.
    pub fn finish(mut self) -> Result<(), ConnectionError> {
        debug_assert_eq!(self.owed, 0, "announced bytes are missing");
        let missing = self.owed;
        self.fill(missing)?;
        self.write_out()?;
        flush(self.transport)
    }

    fn write_out(&mut self) -> Result<(), ConnectionError> {
        self.announced = true;
        write_all(self.transport, &self.buffer[..self.filled])?;
        self.filled = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::num::NonZeroUsize;
    use std::time::Duration;

    #[derive(Default)]
    struct Memory {
        written: Vec<Vec<u8>>,
        limit: Option<NonZeroUsize>,
    }

    impl Transport for Memory {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Ok(0)
        }
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.written.push(bytes.to_vec());
            Ok(bytes.len())
        }
        fn max_payload(&self) -> Option<NonZeroUsize> {
            self.limit
        }
        fn wait(&mut self, _: Direction, _: u32, _: Duration) {}
    }

    fn sent(length: usize, limit: usize) -> Vec<Vec<u8>> {
        let mut transport = Memory {
            limit: NonZeroUsize::new(limit),
            ..Memory::default()
        };
        let mut frame = FrameWriter::announce(&mut transport, length as u64);
        assert!(frame.put(&vec![b'x'; length]).is_ok());
        assert!(frame.finish().is_ok());
        transport.written
    }

    #[test]
    fn the_header_leaves_with_the_first_bytes() {
        assert_eq!(sent(3, 0), [b"octet-stream 3\nxxx".to_vec()]);
        assert_eq!(sent(0, 0), [b"octet-stream 0\n".to_vec()]);
    }

    #[test]
    fn writes_are_full_chunks_and_never_larger() {
        let header = "octet-stream 100000\n".len();
        let sizes: Vec<_> = sent(100_000, CSYNC_CHUNK).iter().map(Vec::len).collect();
        assert_eq!(sizes.iter().sum::<usize>(), header + 100_000);
        let (last, full) = sizes.split_last().unwrap_or((&0, &[]));
        assert!(full.iter().all(|size| *size == CSYNC_CHUNK) && *last <= CSYNC_CHUNK);
    }

    #[test]
    fn the_bytes_are_the_same_whatever_the_limit() {
        let whole = sent(5000, 0).concat();
        for limit in [1, 7, 511, 512, 16383, 16384, 70000, 1 << 20] {
            let pieces = sent(5000, limit);
            assert!(pieces.iter().all(|piece| piece.len() <= limit));
            assert_eq!(pieces.concat(), whole);
        }
    }

    #[test]
    fn a_payload_can_be_withdrawn_until_some_of_it_has_left() {
        let mut transport = Memory::default();
        let mut frame = FrameWriter::announce(&mut transport, 1 << 20);
        assert!(frame.put(b"abc").is_ok());
        assert!(matches!(frame.withdraw(), Ok(true)));
        assert_eq!(transport.written.concat(), b"ERROR\n");

        let mut frame = FrameWriter::announce(&mut transport, 1 << 20);
        assert!(frame.put(&[0; 2 * STREAM_CHUNK]).is_ok());
        assert!(matches!(frame.withdraw(), Ok(false)));
    }

    #[test]
    fn filler_completes_what_was_announced() {
        let mut transport = Memory::default();
        let mut frame = FrameWriter::announce(&mut transport, 5);
        assert!(frame.put(b"ab").is_ok());
        assert!(frame.fill(99).is_ok());
        assert_eq!(frame.owed(), 0);
        assert!(frame.finish().is_ok());
        assert_eq!(transport.written.concat(), b"octet-stream 5\nab\0\0\0");
    }
}

//! A part of the source, held in memory while it is searched.

use std::collections::TryReserveError;
use std::io::{ErrorKind, Read};

/// Slides along a reader, up to a limit.
pub(crate) struct Window<'r> {
    source: &'r mut dyn Read,
    /// Bytes that may still be read.
    left: u64,
    buffer: Vec<u8>,
    /// The part of `buffer` that was read and not consumed.
    from: usize,
    to: usize,
}

impl<'r> Window<'r> {
    /// Sees at most `limit` bytes of `source`, and at most `capacity` of them at once.
    pub(crate) fn new(
        source: &'r mut dyn Read,
        limit: u64,
        capacity: usize,
    ) -> Result<Self, TryReserveError> {
        let capacity = usize::try_from(limit).unwrap_or(usize::MAX).min(capacity);
        let mut buffer = Vec::new();
        buffer.try_reserve_exact(capacity)?;
        buffer.resize(capacity, 0);
        Ok(Self {
            source,
            left: limit,
            buffer,
            from: 0,
            to: 0,
        })
    }

    /// The bytes that were read and not consumed.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.from..self.to]
    }

    /// Whether the source has been read to its end.
    pub(crate) fn is_last(&self) -> bool {
        self.left == 0
    }

    /// Gives up the first `count` bytes.
    pub(crate) fn consume(&mut self, count: usize) {
        self.from += count;
    }

    /// Reads until the buffer is full or the source ends.
    pub(crate) fn fill(&mut self) -> std::io::Result<()> {
        self.buffer.copy_within(self.from..self.to, 0);
        self.to -= self.from;
        self.from = 0;
        while self.left > 0 && self.to < self.buffer.len() {
            self.read_some()?;
        }
        Ok(())
    }

    fn read_some(&mut self) -> std::io::Result<()> {
        let room = &mut self.buffer[self.to..];
        let most = usize::try_from(self.left)
            .unwrap_or(usize::MAX)
            .min(room.len());
        match self.source.read(&mut room[..most]) {
            // The file has become shorter meanwhile.
            Ok(0) => self.left = 0,
            Ok(count) => {
                let count = count.min(most);
                self.to += count;
                self.left -= count as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

//! A session's buffers.

use rustls::unbuffered::{EncodeError, EncryptError, InsufficientSizeError};
use std::ops::Range;

/// What is read from the connection at once. Against 64 KiB: a fifth less CPU time on the receiver, which is woken less
/// often and seldom moves the rest of a record; 512 KiB are no better.
const READ: usize = 256 * 1024;

/// The rest of a record that was not complete.
const CARRIED: usize = 32 * 1024;

/// Encrypted bytes from the peer. rustls decrypts them where they are.
pub struct Incoming {
    bytes: Box<[u8]>,
    filled: Range<usize>,
}

impl Incoming {
    pub fn new() -> Self {
        Self {
            bytes: vec![0; READ + CARRIED].into_boxed_slice(),
            filled: 0..0,
        }
    }

    pub fn filled(&mut self) -> &mut [u8] {
        &mut self.bytes[self.filled.clone()]
    }

    /// The first `count` bytes have served.
    pub fn discard(&mut self, count: usize) {
        self.filled.start = (self.filled.start + count).min(self.filled.end);
        if self.filled.is_empty() {
            self.filled = 0..0;
        }
    }

    /// Where more goes: never empty, unless the peer sends a message that is too large for any buffer.
    pub fn room(&mut self) -> &mut [u8] {
        if self.filled.start > 0 && self.bytes.len() - self.filled.end < READ {
            self.bytes.copy_within(self.filled.clone(), 0);
            self.filled = 0..self.filled.len();
        }
        let end = (self.filled.end + READ).min(self.bytes.len());
        &mut self.bytes[self.filled.end..end]
    }

    /// `count` bytes were put there.
    pub fn add(&mut self, count: usize) {
        self.filled.end = (self.filled.end + count).min(self.bytes.len());
    }
}

/// Bytes in order, taken from the front: decrypted ones that nobody has asked for yet, or encrypted ones that are to be
/// sent.
#[derive(Default)]
pub struct Queue {
    bytes: Vec<u8>,
    filled: Range<usize>,
}

/// What can say that its output needs more room.
pub trait NeedsRoom {
    fn required(&self) -> Option<usize>;
}

impl NeedsRoom for EncryptError {
    fn required(&self) -> Option<usize> {
        match self {
            Self::InsufficientSize(InsufficientSizeError { required_size }) => Some(*required_size),
            Self::EncryptExhausted => None,
        }
    }
}

impl NeedsRoom for EncodeError {
    fn required(&self) -> Option<usize> {
        match self {
            Self::InsufficientSize(InsufficientSizeError { required_size }) => Some(*required_size),
            Self::AlreadyEncoded => None,
        }
    }
}

impl Queue {
    pub fn len(&self) -> usize {
        self.filled.len()
    }

    pub fn is_empty(&self) -> bool {
        self.filled.is_empty()
    }

    pub fn front(&self) -> &[u8] {
        &self.bytes[self.filled.clone()]
    }

    pub fn discard(&mut self, count: usize) {
        self.filled.start = (self.filled.start + count).min(self.filled.end);
        if self.filled.is_empty() {
            self.filled = 0..0;
        }
    }

    /// Moves as much as there is and as fits.
    pub fn take(&mut self, buf: &mut [u8]) -> usize {
        let count = self.len().min(buf.len());
        buf[..count].copy_from_slice(&self.front()[..count]);
        self.discard(count);
        count
    }

    pub fn put(&mut self, bytes: &[u8]) {
        self.reserve(bytes.len())[..bytes.len()].copy_from_slice(bytes);
        self.filled.end += bytes.len();
    }

    /// Lets `write` put something at the end, with as much room as it says that it needs.
    pub fn put_with<E: NeedsRoom>(
        &mut self,
        mut write: impl FnMut(&mut [u8]) -> Result<usize, E>,
    ) -> Result<(), E> {
        let mut room = 0;
        loop {
            match write(self.reserve(room)) {
                Ok(count) => {
                    self.filled.end = (self.filled.end + count).min(self.bytes.len());
                    return Ok(());
                }
                Err(error) => match error.required() {
                    Some(required) if required > room => room = required,
                    _ => return Err(error),
                },
            }
        }
    }

    fn reserve(&mut self, count: usize) -> &mut [u8] {
        let end = self.filled.end + count;
        if end > self.bytes.len() {
            self.bytes.resize(end, 0);
        }
        &mut self.bytes[self.filled.end..]
    }
}

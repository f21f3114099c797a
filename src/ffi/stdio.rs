//! `FILE *`: a real file by its descriptor, anything else (memory streams) through stdio.

use super::guard::set_errno;
use std::fs::File;
use std::io::{self, Read, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{FromRawFd, IntoRawFd};
use std::ptr::NonNull;

/// A stream that C has opened and will close.
pub struct Stream(NonNull<libc::FILE>);

impl Stream {
    /// `None` for a null pointer.
    ///
    /// # Safety
    /// `stream` is null or an open stream that nobody else uses during the life of the result.
    pub unsafe fn new(stream: *mut libc::FILE) -> Option<Self> {
        NonNull::new(stream).map(Self)
    }

    /// The regular file behind the stream, with everything written so far; `None` where there is none.
    ///
    /// # Errors
    /// Flushing the stream failed.
    pub fn regular_file(&self) -> io::Result<Option<ManuallyDrop<File>>> {
        self.flush_stream()?;
        // SAFETY: an open stream.
        let descriptor = unsafe { libc::fileno(self.0.as_ptr()) };
        if descriptor < 0 {
            return Ok(None);
        }
        // SAFETY: open, since the stream is; never closed through this value, which is not dropped.
        let file = ManuallyDrop::new(unsafe { File::from_raw_fd(descriptor) });
        Ok(file.metadata()?.is_file().then_some(file))
    }

    /// The number of bytes from the start to the end of a stream that can seek.
    ///
    /// # Errors
    /// What seeking says.
    pub fn length(&self) -> io::Result<u64> {
        self.to_end()?;
        set_errno(0);
        // SAFETY: an open stream.
        let length = unsafe { libc::ftello(self.0.as_ptr()) };
        u64::try_from(length).map_err(|_| io::Error::last_os_error())
    }

    /// Moves to the end.
    ///
    /// # Errors
    /// What seeking says.
    pub fn to_end(&self) -> io::Result<()> {
        // SAFETY: an open stream.
        match unsafe { libc::fseeko(self.0.as_ptr(), 0, libc::SEEK_END) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Moves to the start and forgets the end-of-file and error marks.
    pub fn rewind(&self) {
        // SAFETY: an open stream.
        unsafe { libc::rewind(self.0.as_ptr()) };
    }

    fn flush_stream(&self) -> io::Result<()> {
        // SAFETY: an open stream.
        match unsafe { libc::fflush(self.0.as_ptr()) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        set_errno(0);
        // SAFETY: the buffer is valid for writes of that many bytes; an open stream.
        let count = unsafe { libc::fread(buf.as_mut_ptr().cast(), 1, buf.len(), self.0.as_ptr()) };
        match io::Error::last_os_error() {
            error if count == 0 && error.raw_os_error() != Some(0) => Err(error),
            _ => Ok(count),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // SAFETY: the buffer is valid for reads of that many bytes; an open stream.
        let count = unsafe { libc::fwrite(bytes.as_ptr().cast(), 1, bytes.len(), self.0.as_ptr()) };
        match count {
            0 => Err(io::Error::last_os_error()),
            count => Ok(count),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.flush_stream()
    }
}

/// Gives a file to C as a stream for reading and writing, positioned at its end.
///
/// # Errors
/// What `fdopen` or seeking says; the file is closed then.
pub fn into_stream(file: File) -> io::Result<NonNull<libc::FILE>> {
    let descriptor = file.into_raw_fd();
    // SAFETY: an open descriptor that nobody else owns, and a static mode.
    let stream = unsafe { libc::fdopen(descriptor, c"wb+".as_ptr()) };
    let Some(stream) = NonNull::new(stream) else {
        let error = io::Error::last_os_error();
        // SAFETY: fdopen failed, so the descriptor is still ours; it is not used after this.
        drop(unsafe { File::from_raw_fd(descriptor) });
        return Err(error);
    };
    Stream(stream).to_end()?;
    Ok(stream)
}

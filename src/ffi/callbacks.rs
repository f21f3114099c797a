//! A transport that a C program brings along.

use super::guard::set_errno;
use super::host::judge;
use crate::transport::{Direction, EarlyInput, Transport};
use rustix::io::Errno;
use std::ffi::{c_int, c_uint, c_void};
use std::io::{self, ErrorKind};
use std::num::NonZeroUsize;
use std::time::Duration;

/// A connection made of functions: what csync_engine_over_transport() takes. The functions are called from the thread
/// that calls a verb, one at a time.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct csync_transport {
    /// sizeof(struct csync_transport): members behind it are taken as NULL.
    pub size: usize,
    /// Passed to each function.
    pub userdata: *mut c_void,
    /// Reads at most `count` bytes: their number, 0 at the end of the stream, -1 with errno (EINTR and EAGAIN: asked
    /// again). Bytes are a stream: what is left of a packet is handed out by the next call.
    pub read: Option<
        unsafe extern "C" fn(
            userdata: *mut c_void,
            buffer: *mut c_void,
            count: usize,
        ) -> libc::ssize_t,
    >,
    /// Writes at most `count` bytes, never more than max_payload() said: their number, which may be less, or -1 with
    /// errno and nothing written (EINTR and EAGAIN: asked again with the same bytes, or fewer of them where max_payload()
    /// has fallen). A transport that says EAGAIN must have a read that does not wait: it is asked for input while output
    /// is refused.
    pub write: Option<
        unsafe extern "C" fn(
            userdata: *mut c_void,
            buffer: *const c_void,
            count: usize,
        ) -> libc::ssize_t,
    >,
    /// NULL, or sends what write has held back: 0, or -1 with errno (EINTR and EAGAIN: asked again, as write). Called
    /// whenever the peer's answer is waited for next, and at the end of each payload.
    pub flush: Option<unsafe extern "C" fn(userdata: *mut c_void) -> c_int>,
    /// NULL, or the largest write that is carried in one piece, in bytes: a TLS record's content, a packet's payload
    /// without its headers. SIZE_MAX: no limit. 0: nothing can be carried, which ends the verb with
    /// CSYNC_E_PAYLOAD. Asked ahead of each write, so that it may change.
    pub max_payload: Option<unsafe extern "C" fn(userdata: *mut c_void) -> usize>,
    /// NULL, or waits until a read (`for_write` 0) or a write may succeed, `milliseconds` at most, after an EAGAIN.
    /// Without it the library sleeps, a little longer each time, 100 ms at most.
    pub wait:
        Option<unsafe extern "C" fn(userdata: *mut c_void, for_write: c_int, milliseconds: c_uint)>,
}

/// The transport over those functions.
pub struct CallbackTransport {
    functions: csync_transport,
    early: EarlyInput,
}

impl CallbackTransport {
    /// `None` where `read` or `write` is missing.
    pub fn new(functions: csync_transport) -> Option<Self> {
        (functions.read.is_some() && functions.write.is_some()).then(|| Self {
            functions,
            early: EarlyInput::new(EarlyInput::BOUND),
        })
    }

    fn payload(&self) -> usize {
        match self.functions.max_payload {
            // SAFETY: the program's own userdata.
            Some(max_payload) => unsafe { max_payload(self.functions.userdata) },
            None => usize::MAX,
        }
    }

    /// Output is refused: the peer may be waiting for us to read.
    fn take_in(&mut self) {
        let functions = self.functions;
        self.early.fill(|buf| read_now(&functions, buf));
    }
}

fn read_now(functions: &csync_transport, buf: &mut [u8]) -> io::Result<usize> {
    let read = functions.read.ok_or(ErrorKind::NotConnected)?;
    set_errno(0);
    // SAFETY: the buffer is valid for writes of that many bytes.
    let code = unsafe { read(functions.userdata, buf.as_mut_ptr().cast(), buf.len()) };
    Ok(judge(code)?.min(buf.len()))
}

fn is_refused<T>(attempt: &io::Result<T>) -> bool {
    matches!(attempt, Err(error) if error.kind() == ErrorKind::WouldBlock)
}

impl Transport for CallbackTransport {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self.early.take(buf) {
            0 => read_now(&self.functions, buf),
            count => Ok(count),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let payload = self.payload();
        if payload == 0 {
            return Err(Errno::MSGSIZE.into());
        }
        // It may have fallen since the caller asked.
        let bytes = &bytes[..bytes.len().min(payload)];
        let write = self.functions.write.ok_or(ErrorKind::NotConnected)?;
        set_errno(0);
        // SAFETY: the buffer is valid for reads of that many bytes.
        let code = unsafe { write(self.functions.userdata, bytes.as_ptr().cast(), bytes.len()) };
        let written = judge(code);
        if is_refused(&written) {
            self.take_in();
        }
        Ok(written?.min(bytes.len()))
    }

    fn max_payload(&self) -> Option<NonZeroUsize> {
        match self.payload() {
            usize::MAX => None,
            payload => Some(NonZeroUsize::new(payload).unwrap_or(NonZeroUsize::MIN)),
        }
    }

    fn taken_early(&self) -> u64 {
        self.early.total()
    }

    fn flush(&mut self) -> io::Result<()> {
        let Some(flush) = self.functions.flush else {
            return Ok(());
        };
        set_errno(0);
        // SAFETY: the program's own userdata.
        let code = unsafe { flush(self.functions.userdata) };
        if code == 0 {
            return Ok(());
        }
        let flushed = judge(code as isize).and_then(|_| Err(Errno::IO.into()));
        if is_refused(&flushed) {
            self.take_in();
        }
        flushed
    }

    fn wait(&mut self, direction: Direction, refusals: u32, limit: Duration) {
        let for_write = c_int::from(direction == Direction::Write);
        match self.functions.wait {
            Some(wait) => {
                let milliseconds = c_uint::try_from(limit.as_millis()).unwrap_or(c_uint::MAX);
                // SAFETY: the program's own userdata.
                unsafe { wait(self.functions.userdata, for_write, milliseconds) };
            }
            None => std::thread::sleep(limit.min(Duration::from_millis(1) * refusals.min(100))),
        }
    }
}

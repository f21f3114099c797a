//! The program that this library is linked into: csync2's connection, log and settings, by its own symbols.

use super::guard::set_errno;
use super::pointer;
use crate::engine::{Log, Settings};
use crate::files::Ownership;
use crate::text;
use crate::transport::{CSYNC_CHUNK, Direction, Transport};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::Access;
use rustix::io::Errno;
use std::ffi::{CString, c_char, c_int, c_void};
use std::io::{self, ErrorKind};
use std::num::NonZeroUsize;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// GnuTLS's codes for "call again", which unpatched `conn_write` passes through.
const GNUTLS_E_AGAIN: c_int = -28;
const GNUTLS_E_INTERRUPTED: c_int = -52;

/// The table that `linked_host.c` fills. Members are null where the program does not define the symbol.
#[repr(C)]
struct LinkedHost {
    read: Option<unsafe extern "C" fn(*mut c_void, usize) -> c_int>,
    raw_read: Option<unsafe extern "C" fn(*mut c_void, usize) -> c_int>,
    write: Option<unsafe extern "C" fn(*const c_void, usize) -> c_int>,
    close: Option<unsafe extern "C" fn() -> c_int>,
    descriptor_in: *const c_int,
    descriptor_out: *const c_int,
    debug: Option<unsafe extern "C" fn(c_int, *const c_char, ...)>,
    fatal: Option<unsafe extern "C" fn(*const c_char, ...)>,
    local_path: Option<unsafe extern "C" fn(*const c_char) -> *const c_char>,
    temp_dir: *const *const c_char,
    ignore_uid: *const c_int,
    ignore_gid: *const c_int,
}

// SAFETY: the table itself is constant; what its members point to is the host's, and used only from the thread
// that calls an exported function, as the host's own code would.
unsafe impl Sync for LinkedHost {}

unsafe extern "C" {
    #[link_name = "csync_rs_linked_host"]
    static LINKED: LinkedHost;
}

fn linked() -> &'static LinkedHost {
    // SAFETY: constant data, defined in linked_host.c with this very layout.
    unsafe { &LINKED }
}

/// Reads a global variable of the host's; `None` where it has none of that name.
fn global<T: Copy>(variable: *const T) -> Option<T> {
    if variable.is_null() {
        return None;
    }
    // SAFETY: not null, so the address of the host's variable, which has this type.
    Some(unsafe { *variable })
}

/// The log of the host: `csync_debug`.
pub struct HostLog;

impl Log for HostLog {
    fn log(&self, level: i32, message: &str) {
        let (Some(debug), Ok(message)) = (linked().debug, CString::new(message)) else {
            return;
        };
        // SAFETY: csync_debug takes a format and its arguments; both strings end in NUL and outlive the call.
        unsafe { debug(level, c"%s\n".as_ptr(), message.as_ptr()) };
    }
}

/// Ends the program the host's way, where the contract of `rsync.c` leaves no other: the connection is closed
/// first, so that the peer sees an end instead of a stream that stops. Returns only to a host without a
/// `csync_fatal`.
pub fn close_and_end(message: &'static std::ffi::CStr) {
    if let Some(close) = linked().close {
        // SAFETY: takes no arguments and may be called at any time.
        unsafe { close() };
    }
    if let Some(fatal) = linked().fatal {
        // SAFETY: a format and its argument, both static. It may exit or jump: no value with a destructor is alive here.
        unsafe { fatal(c"%s\n".as_ptr(), message.as_ptr()) };
    }
}

/// The local path of a file name: csync2's `%prefix%` replaced.
///
/// # Safety
/// `filename` is null or a string that ends in NUL.
pub unsafe fn local_path(filename: *const c_char) -> PathBuf {
    let local = match linked().local_path {
        // SAFETY: prefixsubst takes a string that ends in NUL.
        Some(prefixsubst) if !filename.is_null() => unsafe { prefixsubst(filename) },
        _ => filename,
    };
    // SAFETY: prefixsubst returns its argument or a string in a buffer of its own, copied here before the next call.
    unsafe { pointer::path(local) }
}

/// csync2's settings, as they stand now.
pub fn settings(sync: bool) -> Settings {
    let is_set = |flag: *const c_int| global(flag).is_some_and(|value| value != 0);
    Settings {
        temp_dir: temp_dir(),
        ownership: Ownership {
            ignore_uid: is_set(linked().ignore_uid),
            ignore_gid: is_set(linked().ignore_gid),
        },
        sync,
        literal_budget: Settings::LITERAL_BUDGET,
    }
}

/// csync2's `tempdir`, where one is configured and can be used. The first time that it cannot, the log says so:
/// files are staged beside their targets then.
pub fn temp_dir() -> Option<PathBuf> {
    static COMPLAINED: AtomicBool = AtomicBool::new(false);
    let configured = global(linked().temp_dir)?;
    // SAFETY: csync_tempdir is null or a string that ends in NUL.
    let path = unsafe { pointer::path(configured) };
    if path.as_os_str().is_empty() {
        return None;
    }
    match rustix::fs::access(&path, Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) if path.is_dir() => return Some(path),
        Ok(()) => complain(&COMPLAINED, &path, Errno::NOTDIR),
        Err(error) => complain(&COMPLAINED, &path, error),
    }
    None
}

fn complain(complained: &AtomicBool, path: &Path, error: Errno) {
    if !complained.swap(true, Ordering::Relaxed) {
        let reason = text::reason(&error.into());
        let message = format!("The tempdir {} is not used: {reason}.", path.display());
        HostLog.log(1, &message);
    }
}

/// The connection of the host: `conn_read` and `conn_write`.
#[derive(Default)]
pub struct LinkedTransport;

impl LinkedTransport {
    /// What a negative return value means. Unpatched `conn.c` reports GnuTLS's troubles without an errno.
    fn failure(code: c_int) -> io::Result<usize> {
        let error = io::Error::last_os_error();
        match code {
            GNUTLS_E_AGAIN => Err(ErrorKind::WouldBlock.into()),
            GNUTLS_E_INTERRUPTED => Err(ErrorKind::Interrupted.into()),
            _ if error.raw_os_error() == Some(0) => Ok(0),
            _ => Err(error),
        }
    }

    fn judge(code: c_int) -> io::Result<usize> {
        usize::try_from(code).or_else(|_| Self::failure(code))
    }
}

impl Transport for LinkedTransport {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        // A header comes byte by byte: conn_raw_read does not write a line to the log for each.
        let read = match buf.len() {
            1 => linked().raw_read.or(linked().read),
            _ => linked().read,
        };
        let read = read.ok_or(ErrorKind::NotConnected)?;
        set_errno(0);
        // SAFETY: the buffer is valid for writes of that many bytes.
        Self::judge(unsafe { read(buf.as_mut_ptr().cast(), buf.len()) })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let write = linked().write.ok_or(ErrorKind::NotConnected)?;
        set_errno(0);
        // SAFETY: the buffer is valid for reads of that many bytes.
        Self::judge(unsafe { write(bytes.as_ptr().cast(), bytes.len()) })
    }

    fn max_payload(&self) -> Option<NonZeroUsize> {
        NonZeroUsize::new(CSYNC_CHUNK)
    }

    fn wait(&mut self, direction: Direction, limit: Duration) {
        let (variable, flags) = match direction {
            Direction::Read => (linked().descriptor_in, PollFlags::IN),
            Direction::Write => (linked().descriptor_out, PollFlags::OUT),
        };
        match global(variable) {
            Some(descriptor) if descriptor >= 0 => poll(descriptor, flags, limit),
            _ => std::thread::sleep(limit),
        }
    }
}

fn poll(descriptor: c_int, flags: PollFlags, limit: Duration) {
    // SAFETY: not negative, and the host keeps its connection open during a call into this library.
    let descriptor = unsafe { BorrowedFd::borrow_raw(descriptor) };
    let limit = Timespec {
        tv_sec: limit.as_secs().try_into().unwrap_or(0),
        tv_nsec: limit.subsec_nanos().into(),
    };
    // However it ends, the caller tries again.
    let _ = rustix::event::poll(&mut [PollFd::new(&descriptor, flags)], Some(&limit));
}

//! The program that this library is linked into, for the functions of `rsync.c`: one that has registered itself, or
//! else csync2 by its own symbols.

use super::guard::set_errno;
use super::linked::linked;
use super::registered::registered;
use super::signals::without_signals;
use crate::engine::{Log, Settings, Threads};
use crate::files::Ownership;
use crate::text;
use crate::transport::{CSYNC_CHUNK, Direction, Transport};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::Access;
use rustix::io::Errno;
use std::ffi::{CStr, CString, c_char, c_int};
use std::io::{self, ErrorKind};
use std::num::NonZeroUsize;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// GnuTLS's codes for "call again", which unpatched `conn_write` passes through.
const GNUTLS_E_AGAIN: isize = -28;
const GNUTLS_E_INTERRUPTED: isize = -52;

/// How often a refused attempt on csync2's connection is repeated at once: GnuTLS's AGAIN on a blocking descriptor wants
/// the call again, not a wait for data that is already buffered.
const IMMEDIATE_REPEATS: u32 = 4;

/// The log of the host.
pub struct HostLog;

impl Log for HostLog {
    fn log(&self, level: i32, message: &str) {
        let Ok(message) = CString::new(message) else {
            return;
        };
        match registered() {
            Some(host) => host.log(level, &message),
            None => linked().log(level, &message),
        }
    }
}

/// Ends the program the host's way, where the contract of `rsync.c` leaves no other: the connection is closed
/// first, so that the peer sees an end instead of a stream that stops. Returns only to a host that has no way to end.
pub fn close_and_end(message: &'static CStr) {
    match registered() {
        Some(host) => {
            host.close();
            host.fatal(message);
        }
        None => {
            linked().close();
            linked().fatal(message);
        }
    }
}

/// The local path of a file name: csync2's `%prefix%` replaced.
///
/// # Safety
/// `filename` is null or a string that ends in NUL.
pub unsafe fn local_path(filename: *const c_char) -> PathBuf {
    match registered() {
        // SAFETY: the same clause.
        Some(host) => unsafe { host.local_path(filename) },
        // SAFETY: the same clause.
        None => unsafe { linked().local_path(filename) },
    }
}

/// The host's settings, as they stand now.
pub fn settings(sync: bool) -> Settings {
    let ownership = match registered() {
        Some(registered) => Ownership {
            ignore_uid: registered.host.ignore_uid != 0,
            ignore_gid: registered.host.ignore_gid != 0,
        },
        None => Ownership {
            ignore_uid: linked().ignores_uid(),
            ignore_gid: linked().ignores_gid(),
        },
    };
    Settings {
        temp_dir: temp_dir(),
        ownership,
        sync,
        literal_budget: Settings::LITERAL_BUDGET,
        threads: threads(),
    }
}

/// As many threads as the machine has for a large file.
pub fn threads() -> Threads {
    Threads {
        limit: None,
        start: without_signals,
    }
}

/// The host's staging directory, where one is configured and can be used. The first time that it cannot, the log says
/// so: files are staged beside their targets then.
pub fn temp_dir() -> Option<PathBuf> {
    static COMPLAINED: AtomicBool = AtomicBool::new(false);
    let path = match registered() {
        Some(registered) => registered.temp_dir.clone(),
        None => linked().temp_dir(),
    };
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

/// The connection of the host: its own functions, or csync2's `conn_read` and `conn_write`.
#[derive(Default)]
pub struct HostTransport;

/// What a host's function returned. Unpatched `conn.c` reports GnuTLS's troubles without an errno.
pub fn judge(code: isize) -> io::Result<usize> {
    let Err(_) = usize::try_from(code) else {
        return Ok(code.unsigned_abs());
    };
    let error = io::Error::last_os_error();
    match code {
        GNUTLS_E_AGAIN => Err(ErrorKind::WouldBlock.into()),
        GNUTLS_E_INTERRUPTED => Err(ErrorKind::Interrupted.into()),
        _ if error.raw_os_error() == Some(0) => Ok(0),
        _ => Err(error),
    }
}

impl Transport for HostTransport {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if let Some(registered) = registered() {
            let read = registered.host.read.ok_or(ErrorKind::NotConnected)?;
            set_errno(0);
            // SAFETY: the buffer is valid for writes of that many bytes.
            return judge(unsafe {
                read(registered.host.userdata, buf.as_mut_ptr().cast(), buf.len())
            });
        }
        // A header comes byte by byte: conn_raw_read does not write a line to the log for each.
        let read = match buf.len() {
            1 => linked().raw_read.or(linked().read),
            _ => linked().read,
        };
        let read = read.ok_or(ErrorKind::NotConnected)?;
        set_errno(0);
        // SAFETY: the buffer is valid for writes of that many bytes.
        let code = unsafe { read(buf.as_mut_ptr().cast(), buf.len()) };
        judge(code as isize)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(registered) = registered() {
            let write = registered.host.write.ok_or(ErrorKind::NotConnected)?;
            set_errno(0);
            // SAFETY: the buffer is valid for reads of that many bytes.
            return judge(unsafe {
                write(registered.host.userdata, bytes.as_ptr().cast(), bytes.len())
            });
        }
        let write = linked().write.ok_or(ErrorKind::NotConnected)?;
        set_errno(0);
        // SAFETY: the buffer is valid for reads of that many bytes.
        let code = unsafe { write(bytes.as_ptr().cast(), bytes.len()) };
        judge(code as isize)
    }

    fn max_payload(&self) -> Option<NonZeroUsize> {
        NonZeroUsize::new(CSYNC_CHUNK)
    }

    fn wait(&mut self, direction: Direction, refusals: u32, limit: Duration) {
        if refusals <= IMMEDIATE_REPEATS {
            return;
        }
        let limit = limit.min(Duration::from_millis(1) * (refusals - IMMEDIATE_REPEATS));
        let (descriptor, flags) = match direction {
            Direction::Read => (linked().descriptor_in(), PollFlags::IN),
            Direction::Write => (linked().descriptor_out(), PollFlags::OUT),
        };
        match descriptor {
            Some(descriptor) if registered().is_none() => poll(descriptor, flags, limit),
            _ => std::thread::sleep(limit),
        }
    }
}

fn poll(descriptor: c_int, flags: PollFlags, limit: Duration) {
    // SAFETY: not negative, and the host keeps its connection open during a call into this library.
    let descriptor = unsafe { BorrowedFd::borrow_raw(descriptor) };
    let limit = Timespec::try_from(limit).unwrap_or_default();
    // However it ends, the caller tries again.
    let _ = rustix::event::poll(&mut [PollFd::new(&descriptor, flags)], Some(&limit));
}

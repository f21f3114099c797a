//! csync2 itself: its symbols, gathered by `linked_host.c`.

use super::pointer;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::PathBuf;

/// The table that `linked_host.c` fills. Members are null where the program does not define the symbol.
#[repr(C)]
pub struct LinkedHost {
    pub read: Option<unsafe extern "C" fn(*mut c_void, usize) -> c_int>,
    pub raw_read: Option<unsafe extern "C" fn(*mut c_void, usize) -> c_int>,
    pub write: Option<unsafe extern "C" fn(*const c_void, usize) -> c_int>,
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

/// The table; its members are null in a program that is not csync2.
pub fn linked() -> &'static LinkedHost {
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

impl LinkedHost {
    /// `csync_debug`.
    pub fn log(&self, level: c_int, message: &CStr) {
        if let Some(debug) = self.debug {
            // SAFETY: csync_debug takes a format and its arguments; both strings end in NUL and outlive the call.
            unsafe { debug(level, c"%s\n".as_ptr(), message.as_ptr()) };
        }
    }

    /// `conn_close`.
    pub fn close(&self) {
        if let Some(close) = self.close {
            // SAFETY: takes no arguments and may be called at any time.
            unsafe { close() };
        }
    }

    /// `csync_fatal`, which may exit or jump.
    pub fn fatal(&self, message: &CStr) {
        if let Some(fatal) = self.fatal {
            // SAFETY: a format and its argument, which end in NUL. No value with a destructor is alive here.
            unsafe { fatal(c"%s\n".as_ptr(), message.as_ptr()) };
        }
    }

    /// `prefixsubst`.
    ///
    /// # Safety
    /// `filename` is null or a string that ends in NUL.
    pub unsafe fn local_path(&self, filename: *const c_char) -> PathBuf {
        let local = match self.local_path {
            // SAFETY: prefixsubst takes a string that ends in NUL.
            Some(prefixsubst) if !filename.is_null() => unsafe { prefixsubst(filename) },
            _ => filename,
        };
        // SAFETY: prefixsubst returns its argument or a string in a buffer of its own, copied here before the next call.
        unsafe { pointer::path(local) }
    }

    /// `csync_tempdir`.
    pub fn temp_dir(&self) -> PathBuf {
        let configured = global(self.temp_dir).unwrap_or(std::ptr::null());
        // SAFETY: csync_tempdir is null or a string that ends in NUL.
        unsafe { pointer::path(configured) }
    }

    /// `csync_ignore_uid`.
    pub fn ignores_uid(&self) -> bool {
        global(self.ignore_uid).is_some_and(|value| value != 0)
    }

    /// `csync_ignore_gid`.
    pub fn ignores_gid(&self) -> bool {
        global(self.ignore_gid).is_some_and(|value| value != 0)
    }

    /// `conn_fd_in`, where it is open.
    pub fn descriptor_in(&self) -> Option<c_int> {
        global(self.descriptor_in).filter(|descriptor| *descriptor >= 0)
    }

    /// `conn_fd_out`, where it is open.
    pub fn descriptor_out(&self) -> Option<c_int> {
        global(self.descriptor_out).filter(|descriptor| *descriptor >= 0)
    }
}

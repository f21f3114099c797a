//! A program that is not csync2 and wants the functions of `rsync.c`: it says once what they need.

use super::guard::set_errno;
use super::pointer;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

/// What csync_host_register() takes: what csync2 gives to `rsync.c` by its symbols. Members that are NULL are not
/// used. The functions are called from the thread that calls into this library.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct csync_host {
    /// sizeof(struct csync_host): members behind it are taken as NULL and 0.
    pub size: usize,
    /// Passed to each function.
    pub userdata: *mut c_void,
    /// Reads at most `count` bytes of the connection: their number, 0 at the end, -1 with errno.
    pub read: Option<
        unsafe extern "C" fn(
            userdata: *mut c_void,
            buffer: *mut c_void,
            count: usize,
        ) -> libc::ssize_t,
    >,
    /// Writes at most `count` (at most CSYNC_CHUNK) bytes: their number, or -1 with errno and nothing written.
    pub write: Option<
        unsafe extern "C" fn(
            userdata: *mut c_void,
            buffer: *const c_void,
            count: usize,
        ) -> libc::ssize_t,
    >,
    /// Closes the connection.
    pub close: Option<unsafe extern "C" fn(userdata: *mut c_void)>,
    /// Takes a message without an end of line; level 0 is always shown, 3 is the most detailed.
    pub log:
        Option<unsafe extern "C" fn(userdata: *mut c_void, level: c_int, message: *const c_char)>,
    /// Ends the program, where csync_send_file() cannot complete what it has announced. The connection is closed.
    pub fatal: Option<unsafe extern "C" fn(userdata: *mut c_void, message: *const c_char)>,
    /// The local path of a file name; valid until the next call.
    pub local_path:
        Option<unsafe extern "C" fn(userdata: *mut c_void, name: *const c_char) -> *const c_char>,
    /// Where new files are staged; beside their targets where it is NULL or cannot be used. Copied by csync_host_register().
    pub temp_dir: *const c_char,
    /// Not 0: a replaced file's owner is not carried over.
    pub ignore_uid: c_uint,
    /// Not 0: a replaced file's group is not carried over.
    pub ignore_gid: c_uint,
}

/// The host as it was registered, with what it pointed to copied.
pub struct RegisteredHost {
    /// The functions. `temp_dir` is not to be used any more.
    pub host: csync_host,
    /// The staging directory; empty for none.
    pub temp_dir: std::path::PathBuf,
}

// SAFETY: csync_host_register asks for functions and userdata that any thread may use.
unsafe impl Send for RegisteredHost {}
// SAFETY: likewise.
unsafe impl Sync for RegisteredHost {}

static REGISTERED: OnceLock<RegisteredHost> = OnceLock::new();

/// The registered host, if there is one.
pub fn registered() -> Option<&'static RegisteredHost> {
    REGISTERED.get()
}

/// Registers the program that this library is linked into, once per process, so that the functions of `rsync.c`
/// (csync_rs_check(), csync_rs_patch(), ...) can be used outside csync2. It goes ahead of csync2's own symbols.
///
/// @param host copied; its functions and userdata must stay valid until the process ends.
///
/// Returns: 0, or -1 with errno set.
///
/// Errors: EINVAL for NULL and for a size of less than the first member; EBUSY where a host is registered already.
///
/// # Safety
/// `host` is NULL or points to `host->size` readable bytes; its functions may be called from every thread that calls
/// the functions of `rsync.c`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_host_register(host: *const csync_host) -> c_int {
    // SAFETY: the caller's clause; all members may be zero.
    let Some(host) = (unsafe { pointer::versioned(host) }) else {
        set_errno(libc::EINVAL);
        return -1;
    };
    // SAFETY: null or a string that ends in NUL.
    let temp_dir = unsafe { pointer::path(host.temp_dir) };
    match REGISTERED.set(RegisteredHost { host, temp_dir }) {
        Ok(()) => 0,
        Err(_) => {
            set_errno(libc::EBUSY);
            -1
        }
    }
}

impl RegisteredHost {
    /// Hands a message to the log.
    pub fn log(&self, level: c_int, message: &CStr) {
        if let Some(log) = self.host.log {
            // SAFETY: a string that ends in NUL and outlives the call.
            unsafe { log(self.host.userdata, level, message.as_ptr()) };
        }
    }

    /// Closes the connection.
    pub fn close(&self) {
        if let Some(close) = self.host.close {
            // SAFETY: the host's own userdata.
            unsafe { close(self.host.userdata) };
        }
    }

    /// Ends the program.
    pub fn fatal(&self, message: &CStr) {
        if let Some(fatal) = self.host.fatal {
            // SAFETY: a string that ends in NUL. No value with a destructor is alive here.
            unsafe { fatal(self.host.userdata, message.as_ptr()) };
        }
    }

    /// The local path of a file name.
    ///
    /// # Safety
    /// `filename` is null or a string that ends in NUL.
    pub unsafe fn local_path(&self, filename: *const c_char) -> std::path::PathBuf {
        let local = match self.host.local_path {
            // SAFETY: a string that ends in NUL.
            Some(map) if !filename.is_null() => unsafe { map(self.host.userdata, filename) },
            _ => filename,
        };
        // SAFETY: null or a string that ends in NUL, copied here before the next call.
        unsafe { pointer::path(local) }
    }
}

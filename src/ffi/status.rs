//! What a call of the engine's interface came to.

use crate::engine::Error;
use crate::transport::{ConnectionError, Stopped};
use rustix::io::Errno;
use std::ffi::{CStr, c_char, c_int};

/// What a call came to. The numbers are fixed.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum csync_status {
    /// Done.
    CSYNC_OK = 0,
    /// An argument is not allowed.
    CSYNC_E_ARGUMENT = 1,
    /// A local file cannot be read, made or replaced.
    CSYNC_E_FILE = 2,
    /// A local file changed meanwhile: try again.
    CSYNC_E_CHANGED = 3,
    /// The peer reports an error.
    CSYNC_E_PEER = 4,
    /// The peer sent something that breaks the format.
    CSYNC_E_FORMAT = 5,
    /// The connection is lost.
    CSYNC_E_CONNECTION = 6,
    /// The peer was silent for too long.
    CSYNC_E_TIMEOUT = 7,
    /// csync_engine_cancel() was called, or the progress function said so.
    CSYNC_E_CANCELLED = 8,
    /// There is not enough memory.
    CSYNC_E_MEMORY = 9,
    /// The transport cannot carry a single byte.
    CSYNC_E_PAYLOAD = 10,
    /// The engine cannot be used: an earlier call lost the connection or left it in the middle of a payload, or another
    /// call is under way on it.
    CSYNC_E_STATE = 11,
    /// A fault of this library.
    CSYNC_E_INTERNAL = 12,
    /// The peer of a TLS session has shown no certificate, or has not proved that the key of the one it shows is its own.
    #[cfg_attr(not(feature = "tls"), expect(dead_code))]
    CSYNC_E_IDENTITY = 13,
}

impl csync_status {
    /// The status of an error of the engine's.
    pub fn of(error: &Error) -> Self {
        let errno = Errno::from_raw_os_error(error.errno());
        match error {
            Error::Cancelled(_)
            | Error::Connection(ConnectionError::Stopped(_, Stopped::Cancelled)) => {
                Self::CSYNC_E_CANCELLED
            }
            Error::Connection(ConnectionError::Stopped(_, Stopped::Silent(_))) => {
                Self::CSYNC_E_TIMEOUT
            }
            Error::Connection(_) if errno == Errno::MSGSIZE => Self::CSYNC_E_PAYLOAD,
            Error::Connection(_) => Self::CSYNC_E_CONNECTION,
            Error::Refused => Self::CSYNC_E_PEER,
            _ if errno == Errno::NOMEM => Self::CSYNC_E_MEMORY,
            Error::Unexpected(_) | Error::Signature(_) | Error::Delta(_) => Self::CSYNC_E_FORMAT,
            Error::File { .. } if errno == Errno::AGAIN => Self::CSYNC_E_CHANGED,
            Error::File { .. } | Error::Unfinished(_) => Self::CSYNC_E_FILE,
        }
    }
}

/// A status in words.
///
/// @param status a csync_status; any number is allowed.
///
/// Returns: a constant string, never NULL. Errors: none. Safety: may be called from any thread.
#[unsafe(no_mangle)]
pub extern "C" fn csync_status_text(status: c_int) -> *const c_char {
    const TEXTS: [&CStr; 14] = [
        c"done",
        c"an argument is not allowed",
        c"a local file cannot be read, made or replaced",
        c"a local file changed meanwhile",
        c"the peer reports an error",
        c"the peer sent something that breaks the format",
        c"the connection is lost",
        c"the peer was silent for too long",
        c"cancelled",
        c"out of memory",
        c"the transport cannot carry a single byte",
        c"the engine cannot be used",
        c"a fault of the library",
        c"the peer has not proved who it is",
    ];
    let text = usize::try_from(status)
        .ok()
        .and_then(|status| TEXTS.get(status));
    text.unwrap_or(&c"an unknown status").as_ptr()
}

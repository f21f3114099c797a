//! How an engine works: what the C program says once.

use super::pointer;
use super::signals::without_signals;
use crate::engine::{Log, Settings, Threads};
use crate::files::Ownership;
use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::num::NonZeroUsize;
use std::time::Duration;

/// Which call a report of progress belongs to. The numbers are fixed.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum csync_verb {
    /// csync_engine_send()
    CSYNC_SEND = 1,
    /// csync_engine_receive()
    CSYNC_RECEIVE = 2,
    /// csync_engine_signature()
    CSYNC_SIGNATURE = 3,
    /// csync_engine_check()
    CSYNC_CHECK = 4,
    /// csync_engine_delta()
    CSYNC_DELTA = 5,
    /// csync_engine_patch()
    CSYNC_PATCH = 6,
    /// csync_engine_push()
    CSYNC_PUSH = 7,
    /// csync_engine_pull()
    CSYNC_PULL = 8,
}

impl csync_verb {
    /// In one word, for messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::CSYNC_SEND => "send",
            Self::CSYNC_RECEIVE => "receive",
            Self::CSYNC_SIGNATURE => "signature",
            Self::CSYNC_CHECK => "check",
            Self::CSYNC_DELTA => "delta",
            Self::CSYNC_PATCH => "patch",
            Self::CSYNC_PUSH => "push",
            Self::CSYNC_PULL => "pull",
        }
    }
}

/// How an engine works. All zeroes, but for the size, is a good choice; so is NULL in its place.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct csync_options {
    /// sizeof(struct csync_options): members behind it are taken as 0.
    pub size: usize,
    /// The largest write, in bytes, 1 or more; never above what the transport allows. 0: what the transport allows, and
    /// 131072 where that is no limit.
    pub chunk: usize,
    /// How many literal bytes of a delta are held in memory; more than that are read again when they are sent.
    /// 0: 67108864.
    pub literal_budget: usize,
    /// Not 0: a new file, and its name, are on the disk when csync_engine_patch() or csync_engine_pull() returns.
    pub fsync: c_uint,
    /// Not 0: a TCP connection is probed while it is silent. Only for descriptors.
    pub keepalive: c_uint,
    /// After how many milliseconds in which nothing moves a call ends with CSYNC_E_TIMEOUT. 0: after 600000;
    /// UINT_MAX: never. The peer is as silent while it makes a file of old parts, so this is to be longer than its disk takes
    /// for the largest file. Needs a transport that does not wait in its own functions. It holds as well for a descriptor that
    /// takes no content from csync_engine_receive(), which then returns CSYNC_E_FILE.
    pub silence_limit: c_uint,
    /// Not 0: a replaced file's owner and group are not carried over.
    pub ignore_owner: c_uint,
    /// Where new files are staged; NULL: beside their targets, as well where the directory cannot be used, which a message
    /// of level 1 says. Copied.
    pub temp_dir: *const c_char,
    /// Passed to the two functions below.
    pub userdata: *mut c_void,
    /// NULL, or told how far a call has come, ten times a second at most, also while nothing moves, and once at its end:
    /// the bytes that went over the connection, and the bytes announced so far, either way (0: not known yet). Returns 0
    /// to go on, anything else to cancel (at the end there is nothing left to cancel).
    pub progress: Option<
        unsafe extern "C" fn(
            userdata: *mut c_void,
            verb: csync_verb,
            done: u64,
            announced: u64,
        ) -> c_int,
    >,
    /// NULL, or takes messages without an end of line; level 0 is worth showing, 3 is the most detailed.
    pub log:
        Option<unsafe extern "C" fn(userdata: *mut c_void, level: c_int, message: *const c_char)>,
    /// How many threads hash a file of 16 MiB or more for its signature or a check, the calling one counted: 1 to 64,
    /// more counts as 64. 1: no other thread is ever started. 0: as many as the machine has for this process, 4 at most.
    /// They live within the call, take no signals and call none of the program's functions; the bytes sent are the same
    /// whatever the number. Where the system has no more threads, the calling one does it all.
    pub threads: usize,
}

/// The longest time that silence_limit means by 0.
const SILENCE_LIMIT: Duration = Duration::from_secs(600);

/// A copy of the program's options; all zeroes for a null pointer.
///
/// # Safety
/// As csync_engine_over_descriptors() asks of its `options`.
pub unsafe fn options_of(options: *const csync_options) -> Option<csync_options> {
    if options.is_null() {
        // SAFETY: zeroes are valid for every member: numbers, null pointers, and no functions.
        return Some(unsafe { std::mem::zeroed() });
    }
    // SAFETY: the caller's clause.
    unsafe { pointer::versioned(options) }
}

impl csync_options {
    /// What the engine room wants to know.
    pub fn settings(&self) -> Settings {
        // SAFETY: null, or a string that ends in NUL, as the one who gave the options has said.
        let temp_dir = unsafe { pointer::path(self.temp_dir) };
        let ignore = self.ignore_owner != 0;
        Settings {
            temp_dir: (!temp_dir.as_os_str().is_empty()).then_some(temp_dir),
            ownership: Ownership {
                ignore_uid: ignore,
                ignore_gid: ignore,
            },
            sync: self.fsync != 0,
            literal_budget: match self.literal_budget {
                0 => Settings::LITERAL_BUDGET,
                budget => budget,
            },
            threads: Threads {
                limit: NonZeroUsize::new(self.threads),
                start: without_signals,
            },
        }
    }

    /// After which time in which nothing moves a call ends.
    pub fn silence(&self) -> Option<Duration> {
        match self.silence_limit {
            0 => Some(SILENCE_LIMIT),
            c_uint::MAX => None,
            milliseconds => Some(Duration::from_millis(milliseconds.into())),
        }
    }
}

impl Log for csync_options {
    fn log(&self, level: i32, message: &str) {
        if let (Some(log), Ok(message)) = (self.log, CString::new(message)) {
            // SAFETY: the program's own userdata, and a string that ends in NUL and outlives the call.
            unsafe { log(self.userdata, level, message.as_ptr()) };
        }
    }
}

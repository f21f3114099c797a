//! The engine for any C program: a handle over a connection of the program's own. Its verbs are in `verbs.rs`.

use super::callbacks::{CallbackTransport, csync_transport};
use super::guard::{panic_text, quietly};
use super::host::HostTransport;
use super::options::{csync_options, csync_verb, options_of};
use super::pointer;
use super::sigpipe::NoSigpipe;
use super::status::csync_status::{self, *};
use crate::engine::{Error, Session, Settings, Signed};
use crate::transport::{DescriptorPair, Progress, Supervised, Transport};
use std::cell::UnsafeCell;
use std::ffi::{CString, c_char, c_int};
use std::num::NonZeroUsize;
use std::os::fd::BorrowedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// An engine: a connection, and what its calls need. Two engines know nothing of each other and may be used from two
/// threads; one engine serves one call at a time.
pub struct csync_engine {
    cancelled: AtomicBool,
    busy: AtomicBool,
    inner: UnsafeCell<Inner>,
}

struct Inner {
    transport: Box<dyn Transport>,
    settings: Settings,
    options: csync_options,
    signed: Option<Signed>,
    usable: bool,
    errno: c_int,
    error: CString,
}

/// Makes an engine of a transport and hands it out.
///
/// # Safety
/// `out` is null or valid for a write.
pub(super) unsafe fn hand_out(
    transport: Option<Box<dyn Transport>>,
    options: Option<csync_options>,
    out: *mut *mut csync_engine,
) -> csync_status {
    let (Some(transport), Some(options), false) = (transport, options, out.is_null()) else {
        return CSYNC_E_ARGUMENT;
    };
    let engine = Box::new(csync_engine {
        cancelled: AtomicBool::new(false),
        busy: AtomicBool::new(false),
        inner: UnsafeCell::new(Inner {
            transport,
            settings: options.settings(),
            options,
            signed: None,
            usable: true,
            errno: 0,
            error: CString::default(),
        }),
    });
    // SAFETY: not null, and the caller says it is valid for a write.
    unsafe { *out = Box::into_raw(engine) };
    CSYNC_OK
}

/// # Safety
/// `out` is null or valid for a write.
pub(super) unsafe fn clear(out: *mut *mut csync_engine) {
    if !out.is_null() {
        // SAFETY: not null, and the caller says it is valid for a write.
        unsafe { *out = std::ptr::null_mut() };
    }
}

/// Makes an engine over two descriptors: a stream socket (both the same), two pipes, or other streams. Blocking or not,
/// they are used without waiting in a read or a write, their flags are left alone, and no SIGPIPE is raised. The kernel
/// sends long ranges of a file by itself to a pipe, and to a socket that is O_NONBLOCK. While output has to wait, input is
/// taken in, up to 16 MiB, so that a peer that sends as well does not wait for ever.
///
/// @param input read from; stays the caller's, who closes it after csync_engine_free().
/// @param output written to; may be the same, likewise the caller's.
/// @param options NULL, or how to work; copied.
/// @param out set to the engine, or to NULL on errors.
///
/// Returns: CSYNC_OK, or CSYNC_E_ARGUMENT.
///
/// Errors: CSYNC_E_ARGUMENT for a descriptor that is not open, or not for reading or writing, a socket or a pipe that is
/// not a stream (packets need a transport that knows their limits), a NULL `out`, an options size below sizeof(size_t).
///
/// # Safety
/// `options` is NULL or points to `options->size` readable bytes, its strings end in NUL, and its functions may be
/// called with its userdata until csync_engine_free(); `out` is NULL or valid for a write; the descriptors stay open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_engine_over_descriptors(
    input: c_int,
    output: c_int,
    options: *const csync_options,
    out: *mut *mut csync_engine,
) -> csync_status {
    // SAFETY: the caller's clause.
    unsafe { clear(out) };
    // SAFETY: the caller's clause.
    let options = unsafe { options_of(options) };
    let keepalive = options.is_some_and(|options| options.keepalive != 0);
    let transport = (input >= 0 && output >= 0)
        .then(|| {
            // SAFETY: not negative, and the caller keeps it open.
            let input = unsafe { BorrowedFd::borrow_raw(input) };
            // SAFETY: likewise.
            let output = unsafe { BorrowedFd::borrow_raw(output) };
            DescriptorPair::new(input, output, keepalive).ok()
        })
        .flatten()
        .map(|pair| -> Box<dyn Transport> { Box::new(pair) });
    // SAFETY: the caller's clause.
    unsafe { hand_out(transport, options, out) }
}

/// Makes an engine over a transport of the program's own.
///
/// @param transport copied; its functions and userdata stay valid until csync_engine_free().
/// @param options NULL, or how to work; copied.
/// @param out set to the engine, or to NULL on errors.
///
/// Returns: CSYNC_OK, or CSYNC_E_ARGUMENT.
///
/// Errors: CSYNC_E_ARGUMENT for a NULL `transport`, `read`, `write` or `out`, and for sizes below sizeof(size_t).
///
/// # Safety
/// As csync_engine_over_descriptors(); `transport` is NULL or points to `transport->size` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_engine_over_transport(
    transport: *const csync_transport,
    options: *const csync_options,
    out: *mut *mut csync_engine,
) -> csync_status {
    // SAFETY: the caller's clause.
    unsafe { clear(out) };
    // SAFETY: the caller's clause.
    let options = unsafe { options_of(options) };
    // SAFETY: the caller's clause; all members may be zero.
    let transport = unsafe { pointer::versioned(transport) }
        .and_then(CallbackTransport::new)
        .map(|transport| -> Box<dyn Transport> { Box::new(transport) });
    // SAFETY: the caller's clause.
    unsafe { hand_out(transport, options, out) }
}

/// Makes an engine over the connection of the host: the one given to csync_host_register(), or csync2's own `conn_read`
/// and `conn_write`.
///
/// @param options NULL, or how to work; copied.
/// @param out set to the engine, or to NULL on errors.
///
/// Returns: CSYNC_OK, or CSYNC_E_ARGUMENT for a NULL `out` and an options size below sizeof(size_t). A host without a
/// connection shows at the first call.
///
/// # Safety
/// As csync_engine_over_descriptors().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_engine_over_host(
    options: *const csync_options,
    out: *mut *mut csync_engine,
) -> csync_status {
    // SAFETY: the caller's clause.
    unsafe { clear(out) };
    // SAFETY: the caller's clause.
    let options = unsafe { options_of(options) };
    // SAFETY: the caller's clause.
    unsafe { hand_out(Some(Box::new(HostTransport)), options, out) }
}

/// Frees an engine. The connection stays open.
///
/// @param engine NULL is allowed.
///
/// Returns: nothing. Errors: none.
///
/// # Safety
/// `engine` is NULL or an engine that is not freed yet and that no call is under way on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_engine_free(engine: *mut csync_engine) {
    if !engine.is_null() {
        // SAFETY: made by Box::into_raw in hand_out, and the caller gives it up.
        drop(unsafe { Box::from_raw(engine) });
    }
}

/// Ends the call that is under way on an engine, as soon as it does not wait in a function of the program's own. It
/// returns CSYNC_E_CANCELLED; the connection is then in the middle of something, and the engine cannot be used again.
/// Without a call under way, the next one ends at once.
///
/// @param engine NULL is allowed.
///
/// Returns: nothing. Errors: none.
///
/// # Safety
/// `engine` is NULL or an engine that is not freed before this returns. May be called from any thread and from a
/// signal handler.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_engine_cancel(engine: *const csync_engine) {
    // SAFETY: the caller's clause.
    if let Some(engine) = unsafe { csync_engine::of(engine) } {
        engine.cancelled.store(true, Ordering::Relaxed);
    }
}

/// The last error of an engine, in words: file, step and reason.
///
/// @param engine the engine.
///
/// Returns: a string that is valid until the next call on this engine; empty where its last call was well, and for NULL.
/// Errors: none.
///
/// # Safety
/// `engine` is NULL or an engine that no call is under way on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_engine_error(engine: *const csync_engine) -> *const c_char {
    // SAFETY: the caller's clause.
    match unsafe { csync_engine::of(engine) } {
        // SAFETY: the caller's clause: nobody else uses the inner part now.
        Some(engine) => unsafe { &*engine.inner.get() }.error.as_ptr(),
        None => c"".as_ptr(),
    }
}

/// The errno that belongs to the last error of an engine.
///
/// @param engine the engine.
///
/// Returns: an errno (ETIMEDOUT for CSYNC_E_TIMEOUT, ECANCELED for CSYNC_E_CANCELLED), 0 where its last call was well,
/// EINVAL for NULL. Errors: none.
///
/// # Safety
/// As csync_engine_error().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csync_engine_errno(engine: *const csync_engine) -> c_int {
    // SAFETY: the caller's clause.
    match unsafe { csync_engine::of(engine) } {
        // SAFETY: the caller's clause: nobody else uses the inner part now.
        Some(engine) => unsafe { &*engine.inner.get() }.errno,
        None => libc::EINVAL,
    }
}

impl Inner {
    /// Keeps an error for csync_engine_error() and returns its status.
    fn fail(&mut self, status: csync_status, errno: c_int, text: &str) -> csync_status {
        self.errno = errno;
        self.error = CString::new(text.replace('\0', "\\0")).unwrap_or_default();
        status
    }

    fn supervise<T>(
        &mut self,
        verb: csync_verb,
        cancelled: &AtomicBool,
        body: impl FnOnce(&mut Session<'_>, &mut Option<Signed>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let options = self.options;
        let mut report = |progress: Progress| {
            let Some(tell) = options.progress else {
                return true;
            };
            // SAFETY: the program's own userdata.
            let answer = unsafe { tell(options.userdata, verb, progress.done, progress.announced) };
            answer == 0
        };
        let observer: Option<&mut dyn FnMut(Progress) -> bool> = match options.progress {
            Some(_) => Some(&mut report),
            None => None,
        };
        let mut supervised = Supervised::new(
            self.transport.as_mut(),
            cancelled,
            options.silence(),
            NonZeroUsize::new(options.chunk),
            observer,
        );
        let mut session = Session {
            transport: &mut supervised,
            log: &options,
            settings: self.settings.clone(),
        };
        let result = body(&mut session, &mut self.signed);
        supervised.finish();
        result
    }

    fn run<T>(
        &mut self,
        verb: csync_verb,
        path: &Path,
        cancelled: &AtomicBool,
        body: impl FnOnce(&mut Session<'_>, &mut Option<Signed>) -> Result<T, Error>,
    ) -> Result<T, csync_status> {
        if !self.usable {
            let text = "an earlier call left the connection in the middle of something";
            return Err(self.fail(CSYNC_E_STATE, libc::ENOTCONN, text));
        }
        let _no_sigpipe = NoSigpipe::new();
        let guarded = AssertUnwindSafe(|| self.supervise(verb, cancelled, body));
        let error = match quietly(|| catch_unwind(guarded)) {
            Ok(Ok(value)) => {
                self.fail(CSYNC_OK, 0, "");
                return Ok(value);
            }
            Ok(Err(error)) => error,
            Err(panic) => {
                self.usable = false;
                let text = panic_text(panic.as_ref());
                return Err(self.fail(CSYNC_E_INTERNAL, libc::EIO, &text));
            }
        };
        self.usable = !matches!(
            error,
            Error::Connection(_) | Error::Unfinished(_) | Error::Cancelled(_)
        );
        let error = match cancelled.load(Ordering::Relaxed) {
            true => error.by_cancellation(),
            false => error,
        };
        let file = path.display();
        let text = match error.is_our_own_end() {
            true => format!("{} {error}: {file}", verb.name()),
            false => format!("{error}: {file}"),
        };
        Err(self.fail(csync_status::of(&error), error.errno(), &text))
    }
}

impl csync_engine {
    /// The engine behind a pointer from C; `None` for a null pointer.
    ///
    /// # Safety
    /// `engine` is null or an engine that is not freed during `'e`.
    pub unsafe fn of<'e>(engine: *const Self) -> Option<&'e Self> {
        // SAFETY: the caller's clause. Shared by all threads: whatever changes is an atomic or behind `busy`.
        unsafe { engine.as_ref() }
    }

    /// Runs a verb: one at a time on an engine, no panic and no signal gets out, and its error is kept.
    pub fn run<T>(
        &self,
        verb: csync_verb,
        path: &Path,
        body: impl FnOnce(&mut Session<'_>, &mut Option<Signed>) -> Result<T, Error>,
    ) -> Result<T, csync_status> {
        self.alone(|inner| inner.run(verb, path, &self.cancelled, body))
            .unwrap_or(Err(CSYNC_E_STATE))
    }

    /// Answers a call with an argument that is not allowed.
    pub fn refuse(&self, why: &str) -> csync_status {
        self.alone(|inner| inner.fail(CSYNC_E_ARGUMENT, libc::EINVAL, why))
            .unwrap_or(CSYNC_E_STATE)
    }

    /// Runs `body`, which does not panic, unless another call is under way.
    fn alone<T>(&self, body: impl FnOnce(&mut Inner) -> T) -> Option<T> {
        if self.busy.swap(true, Ordering::Acquire) {
            return None;
        }
        // SAFETY: `busy` was false and is ours now, so nobody else uses the inner part.
        let result = body(unsafe { &mut *self.inner.get() });
        self.busy.store(false, Ordering::Release);
        Some(result)
    }
}

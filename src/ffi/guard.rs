//! What every exported function goes through: a panic stops here, an error becomes a message and an errno.

use super::host::HostLog;
use crate::engine::{Error, Log};
use crate::rdiff::team::THREAD_NAME;
use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Once;

thread_local! {
    /// Whether a panic on this thread ends in [`guard`].
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs the body of the exported function `name` for `path`. On an error or a panic, logs it through the host and
/// returns `fallback` with errno set; nothing is left to do then that could change errno.
pub fn guard<T>(
    name: &str,
    path: &Path,
    fallback: T,
    body: impl FnOnce() -> Result<T, Error>,
) -> T {
    // The body's values are not used after a panic.
    let outcome = quietly(|| catch_unwind(AssertUnwindSafe(body)));
    let (message, errno) = match outcome {
        Ok(Ok(value)) => return value,
        Ok(Err(error)) => (error.to_string(), error.errno()),
        Err(panic) => (panic_text(panic.as_ref()), libc::EIO),
    };
    let file = path.display();
    HostLog.log(0, &format!("ERROR: {message} in {name}: {file}"));
    set_errno(errno);
    fallback
}

/// Keeps a panic's own report away from standard error, which may be the peer's socket.
pub fn quietly<T>(call: impl FnOnce() -> T) -> T {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            // The threads that hash report to the one that has started them.
            if !GUARDED.get() && std::thread::current().name() != Some(THREAD_NAME) {
                previous(panic);
            }
        }));
    });
    let before = GUARDED.replace(true);
    let result = call();
    GUARDED.set(before);
    result
}

/// What a panic said.
pub fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("internal error ({})", text.unwrap_or("no description"))
}

/// Sets the calling thread's errno.
pub fn set_errno(errno: i32) {
    // SAFETY: takes no arguments; always returns the address of the calling thread's errno.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: that address is valid for writes by this thread.
    unsafe { *place = errno };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error() {
        let result = guard("test", Path::new("file"), -1, || panic!("on purpose"));
        let errno = std::io::Error::last_os_error().raw_os_error();
        assert_eq!((result, errno), (-1, Some(libc::EIO)));
    }

    #[test]
    fn an_error_sets_errno_last() {
        let full = rustix::io::Errno::NOSPC;
        let failing = || Err::<i32, _>(Error::file("writing", full));
        assert_eq!(guard("test", Path::new("file"), -1, failing), -1);
        let errno = std::io::Error::last_os_error().raw_os_error();
        assert_eq!(errno, Some(libc::ENOSPC));
    }
}

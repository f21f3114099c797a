//! A peer that is gone is an error and not a signal, whatever the connection is made of: a pipe has no
//! `MSG_NOSIGNAL`, nor has `sendfile`.

use std::mem::MaybeUninit;

/// While it lives, SIGPIPE is held back on this thread; one that came meanwhile is taken away at the end.
pub struct NoSigpipe {
    before: libc::sigset_t,
    was_pending: bool,
}

fn sigpipe() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the pointer is valid for a write.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: initialised by the call above; SIGPIPE is a signal.
    unsafe { libc::sigaddset(set.as_mut_ptr(), libc::SIGPIPE) };
    // SAFETY: initialised.
    unsafe { set.assume_init() }
}

fn is_pending() -> bool {
    let mut pending = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: the pointer is valid for a write.
    unsafe { libc::sigpending(pending.as_mut_ptr()) };
    // SAFETY: initialised; SIGPIPE is a signal.
    unsafe { libc::sigismember(pending.as_ptr(), libc::SIGPIPE) == 1 }
}

impl NoSigpipe {
    /// Holds the signal back.
    pub fn new() -> Self {
        let was_pending = is_pending();
        let mut before = MaybeUninit::<libc::sigset_t>::zeroed();
        // SAFETY: both pointers are valid; only this thread's mask changes.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &sigpipe(), before.as_mut_ptr()) };
        Self {
            // SAFETY: zeroes are a valid set, and the call has written the mask.
            before: unsafe { before.assume_init() },
            was_pending,
        }
    }
}

impl Drop for NoSigpipe {
    fn drop(&mut self) {
        if !self.was_pending && is_pending() {
            let now = libc::timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            // SAFETY: valid pointers, and no information wanted.
            unsafe { libc::sigtimedwait(&sigpipe(), std::ptr::null_mut(), &now) };
        }
        // SAFETY: the mask that was there before.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut()) };
    }
}

//! The program's signals are for the program's threads: its handlers may jump, or rest on who they interrupt.

use std::mem::MaybeUninit;

/// Runs `body` with all signals held back on this thread. Threads that it starts take none in all their life; what
/// comes meanwhile is delivered at the end.
pub fn without_signals(body: &mut dyn FnMut()) {
    let mut all = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: the pointer is valid for a write.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    let mut before = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: both pointers are valid, and zeroes are a valid set; only this thread's mask changes.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr()) };
    body();
    // SAFETY: the mask that was there before.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask() -> Vec<bool> {
        let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
        // SAFETY: a null pointer changes nothing; the other is valid for a write.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), set.as_mut_ptr()) };
        (1..32)
            // SAFETY: initialised, and numbers of signals.
            .map(|signal| unsafe { libc::sigismember(set.as_ptr(), signal) } == 1)
            .collect()
    }

    #[test]
    fn threads_take_no_signals_and_the_mask_is_put_back() {
        let before = mask();
        let mut inside = Vec::new();
        without_signals(&mut || {
            inside = std::thread::scope(|scope| scope.spawn(mask).join()).expect("a mask");
        });
        let held = [libc::SIGALRM, libc::SIGUSR1, libc::SIGCHLD, libc::SIGTERM];
        assert!(held.iter().all(|signal| inside[*signal as usize - 1]));
        assert_eq!(mask(), before);
    }
}

//! A second Rust library, for a program that links csync_rs as well: it panics, and catches that itself. (In the words
//! of old compilers, too: the other one may be of any age.)

use std::panic;

/// 1 where a panic was caught with its text, as it has to be.
#[no_mangle]
pub extern "C" fn neighbour_catches_its_panic() -> i32 {
    panic::set_hook(Box::new(|_| {}));
    match panic::catch_unwind(|| panic!("the neighbour's own")) {
        Ok(()) => 0,
        Err(text) => i32::from(text.downcast_ref::<&str>() == Some(&"the neighbour's own")),
    }
}

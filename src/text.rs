//! Error texts as the C library words them.
#![forbid(unsafe_code)]

use std::io;

/// The text of an I/O error without Rust's " (os error N)": what a peer or a log of csync2 would see from
/// `strerror`.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match error.raw_os_error() {
        Some(number) => text
            .strip_suffix(&format!(" (os error {number})"))
            .map_or(text.clone(), str::to_owned),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suffix_is_gone() {
        let error = io::Error::from_raw_os_error(2);
        assert_eq!(reason(&error), "No such file or directory");
        assert_eq!(reason(&io::Error::other("odd")), "odd");
    }
}

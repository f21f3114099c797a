//! From C pointers to Rust values.

use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// A copy of the bytes of a C string; a null pointer is the empty string.
///
/// # Safety
/// `string` is null or points to a string that ends in NUL and does not change during the call.
pub unsafe fn bytes(string: *const c_char) -> Vec<u8> {
    if string.is_null() {
        return Vec::new();
    }
    // SAFETY: not null, and the caller says it ends in NUL.
    unsafe { CStr::from_ptr(string) }.to_bytes().to_vec()
}

/// A C string as a path, byte for byte; a null pointer is the empty path, which names no file.
///
/// # Safety
/// As [`bytes`].
pub unsafe fn path(string: *const c_char) -> PathBuf {
    // SAFETY: the same clause.
    let bytes = unsafe { bytes(string) };
    PathBuf::from(OsStr::from_bytes(&bytes))
}

/// Writes `bytes` and a NUL to `place`, unless that is null.
///
/// # Safety
/// `place` is null or valid for writes of `bytes.len() + 1` bytes, and does not overlap `bytes`.
pub unsafe fn write_string(place: *mut c_char, bytes: &[u8]) {
    if place.is_null() {
        return;
    }
    // SAFETY: the caller's clause.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr().cast(), place, bytes.len()) };
    // SAFETY: the byte behind them is valid for a write as well.
    let end = unsafe { place.add(bytes.len()) };
    // SAFETY: likewise.
    unsafe { *end = 0 };
}

/// A structure that begins with its own size: a copy of as much of it as the caller's version has, and zeroes for
/// what is newer. `None` for a null pointer and for a size that does not hold the size itself.
///
/// # Safety
/// `pointer` is null, or its first member is a `usize` that says how many bytes are readable there; zeroes are a valid
/// value for every member of `T`, which begins with that `usize`.
pub unsafe fn versioned<T>(pointer: *const T) -> Option<T> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: not null, and the caller says that the first member is readable.
    let size = unsafe { *pointer.cast::<usize>() };
    if size < size_of::<usize>() {
        return None;
    }
    let mut copy = std::mem::MaybeUninit::<T>::zeroed();
    let count = size.min(size_of::<T>());
    // SAFETY: that many bytes are readable there and writable here, and the two do not overlap.
    unsafe { std::ptr::copy_nonoverlapping(pointer.cast::<u8>(), copy.as_mut_ptr().cast(), count) };
    // SAFETY: zeroes are valid, and so is what the caller gave.
    Some(unsafe { copy.assume_init() })
}

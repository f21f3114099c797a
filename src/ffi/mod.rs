//! The C boundary: pointers, `FILE *`, errno, panics, and the symbols of the program that this library is
//! linked into. The only room with `unsafe`: each block says what makes it sound.
#![allow(unsafe_code)]
// The names are C's.
#![allow(non_camel_case_types)]

mod callbacks;
mod dropin;
mod engine;
mod guard;
mod host;
mod linked;
mod options;
#[cfg(feature = "rustls-ffi")]
mod over_rustls;
mod pipeline;
mod pointer;
mod registered;
mod signals;
mod sigpipe;
mod status;
mod stdio;
#[cfg(feature = "tls")]
mod tls;
mod verbs;

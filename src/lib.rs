//! csync-rs: the transfer engine of csync2, and of any C program that moves files.
//!
//! The library takes the place of csync2's `rsync.c`. Data falls through it in one direction:
//! a C call comes in at the top, bytes leave at the bottom.
//!
//! ```text
//!        csync2's C objects                any other C program
//!              |  csync_rs_check, ...            |  csync_engine_*, csync_tls_*
//!     +--------v---------------------------------v--------+
//!     | ffi        the C boundary: pointers, FILE*, errno, |
//!     |            panics, the host's symbols              |
//!     +--------+------------------------------------------+
//!     +--------v---------+
//!     | engine           |  one file per verb: send recv signature check delta patch
//!     +--+------+-----+--+
//!        |      |     |
//!      wire   rdiff  files      framing | librsync's formats | replacing files, paths
//!        |
//!    transport                  descriptors, TLS, supervision, and the retry rules (csync2's conn_* and functions
//!                               of the program's own come in from ffi)
//! ```
//!
//! Reading order: `wire` (what stands on the wire), [`rdiff`] (what the bytes mean), `files` (how a
//! file is replaced), `engine` (the verbs made of them), `ffi` (how C calls them). A lower room never
//! imports a higher one.

mod engine;
mod ffi;
mod files;
pub mod rdiff;
mod text;
mod transport;
mod wire;

// Its C functions come out of this library.
#[cfg(feature = "rustls-ffi")]
extern crate rustls_ffi as _;

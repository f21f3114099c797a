//! The C boundary: pointers, `FILE *`, errno, panics, and the symbols of the program that this library is
//! linked into. The only room with `unsafe`: each block says what makes it sound.
#![allow(unsafe_code)]

mod dropin;
mod guard;
mod host;
mod pointer;
mod stdio;

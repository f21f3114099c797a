//! What is done with the 256-bit vectors of x86-64 where the machine has them. Everything here has a plain
//! fellow elsewhere in [`rdiff`](super) that gives the same result.

mod md4;
mod rollsum;
mod sweep;

pub(crate) use md4::{LANES as MD4_LANES, md4};
pub(crate) use rollsum::rollsum;
pub(crate) use sweep::sweep;

//! librsync's formats and algorithms: signatures, deltas, patches. Pure functions over slices,
//! readers and writers; knows nothing of paths or connections.
//!
//! Three files meet here. The *basis* is the old file, on the receiver's side. Its *signature* is a
//! weak and a strong sum for each block of it. The *delta* tells how the new file is made: copies from
//! the basis, and literal bytes.
//!
//! ```text
//!   receiver   basis ---- signature::BlockSums ----> signature
//!   sender                                           signature -- index::IndexBuilder --> Index
//!   sender     source + Index ---- delta::DeltaPlan::scan ----> delta
//!   receiver   basis + delta ---- patch::Patcher ----> new file
//! ```
//!
//! Reading order: [`mod@format`] (what the bytes mean), [`rollsum`] and `strong` (the two sums of a block),
//! [`signature`] and [`team`], [`index`] (a peer's signature made searchable) with `filter`, [`delta`] (the pass over the
//! source) with `search`, `sweep`, `lanes` and `avx2` (a block at any offset) and [`plan`] (what was found),
//! [`patch`].
#![forbid(unsafe_code)]

mod allowance;
#[cfg(target_arch = "x86_64")]
mod avx2;
pub mod delta;
mod filter;
pub mod format;
pub mod index;
mod lanes;
pub mod patch;
pub mod plan;
pub mod rollsum;
mod search;
pub mod signature;
mod strong;
mod sweep;
mod table;
pub mod team;
mod window;

pub use delta::DeltaError;
pub use format::{
    Command, DELTA_MAGIC, EncodedCommand, FormatError, RESERVED_OPCODE, SignatureHeader,
    StrongKind, WeakKind,
};
pub use index::{Index, IndexBuilder};
pub use patch::{PatchError, PatchOutput, Patcher};
pub use plan::{DeltaPlan, PlanItem};
pub use signature::BlockSums;
pub use team::Team;

/// So many zeroes, if there is memory for them.
fn zeroed<T: Clone + Default>(len: usize) -> Result<Vec<T>, std::collections::TryReserveError> {
    let mut vec = Vec::new();
    vec.try_reserve_exact(len)?;
    vec.resize(len, T::default());
    Ok(vec)
}

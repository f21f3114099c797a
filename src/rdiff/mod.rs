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
//! [`signature`], [`index`] (a peer's signature made searchable), [`delta`] (the search) with [`plan`]
//! (what it found), [`patch`].
#![forbid(unsafe_code)]

pub mod delta;
pub mod format;
pub mod index;
pub mod patch;
pub mod plan;
pub mod rollsum;
pub mod signature;
mod strong;
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

//! Files: opening what may be transferred, replacing a file as a whole or not at all, and the path
//! functions of `rsync.c`. Knows nothing of the wire.
#![forbid(unsafe_code)]

mod attributes;
mod copy;
mod path;
mod regular;
mod replace;
mod temporary;
mod work;

pub use attributes::{Ownership, carry_over};
pub use copy::{GoOn, RangeCopier};
pub use path::{make_parents, split};
pub use regular::{Regular, Stamp, open_regular};
pub use replace::{Expected, NewFile};
pub use work::work_file;

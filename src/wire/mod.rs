//! What stands on the wire between two nodes: a header line `octet-stream N`, then exactly N bytes; or
//! `ERROR`. The rule of this room: what was announced is always sent, and always drained, so that both
//! ends stay in step. Knows nothing of what the bytes mean.
#![forbid(unsafe_code)]

mod frame;
mod header;

pub use frame::{FrameReader, FrameWriter};
pub use header::{Header, announcement, send_error};

use crate::transport::{ConnectionError, Transport};

/// Reads the header line that comes ahead of every payload.
///
/// # Errors
/// The connection was lost before the line ended.
pub fn read_header(transport: &mut dyn Transport) -> Result<Header, ConnectionError> {
    let line = header::read_line(transport)?;
    Ok(Header::parse(&line))
}

//! The header line: `octet-stream N\n`, `octet-stream -1\n` or `ERROR\n`.

use crate::transport::{ConnectionError, Transport, flush, read_full, write_all};

/// The longest line that is kept. A longer one is read to its end, so that the next line is found, and is
/// an error text anyway: the longest header is 33 bytes.
const LONGEST_KEPT: usize = 1024;

/// What the peer says it will send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Header {
    /// So many bytes follow.
    Stream(u64),
    /// The peer could not make its payload, and nothing follows: `ERROR`, or the `octet-stream -1` of csync2
    /// 2.0 and later.
    Refused,
    /// Another line, and nothing follows that could be counted: an error text (an unpatched client sends
    /// `strerror`'s where a header belongs), or a header that breaks the format.
    Text(String),
}

impl Header {
    /// Parses one line with its end. Strict where `sscanf` is not: one space, decimal digits, the end of the
    /// line (`\n`, or `\r\n`), at most 2^63-1.
    pub fn parse(line: &[u8]) -> Self {
        let content = line.strip_suffix(b"\n").unwrap_or(line);
        let content = content.strip_suffix(b"\r").unwrap_or(content);
        match content.strip_prefix(b"octet-stream ") {
            Some(b"-1") => Self::Refused,
            Some(digits) => match parse_length(digits) {
                Some(length) => Self::Stream(length),
                None => Self::text(content),
            },
            None if content == b"ERROR" => Self::Refused,
            None => Self::text(content),
        }
    }

    fn text(content: &[u8]) -> Self {
        Self::Text(content.escape_ascii().to_string())
    }
}

fn parse_length(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 19 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let length: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    i64::try_from(length).is_ok().then_some(length)
}

/// Reads up to and with the end of a line. One byte at a time: what follows belongs to the payload, and a
/// transport cannot take bytes back.
pub(super) fn read_line(transport: &mut dyn Transport) -> Result<Vec<u8>, ConnectionError> {
    let mut line = Vec::with_capacity(40);
    loop {
        let mut byte = [0];
        read_full(transport, &mut byte)?;
        if line.len() < LONGEST_KEPT {
            line.push(byte[0]);
        }
        if byte == *b"\n" {
            return Ok(line);
        }
    }
}

/// The line that announces `length` bytes.
pub fn announcement(length: u64) -> String {
    format!("octet-stream {length}\n")
}

/// Sends `ERROR`: the one failure word that every peer since 2005 accepts where `csync_recv_file` expects a
/// header.
///
/// # Errors
/// The connection was lost.
pub fn send_error(transport: &mut dyn Transport) -> Result<(), ConnectionError> {
    write_all(transport, b"ERROR\n")?;
    flush(transport)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_formed_headers() {
        let table: &[(&[u8], Header)] = &[
            (b"octet-stream 0\n", Header::Stream(0)),
            (b"octet-stream 12\n", Header::Stream(12)),
            (b"octet-stream 12\r\n", Header::Stream(12)),
            (b"octet-stream 2147483647\n", Header::Stream(0x7fff_ffff)),
            (b"octet-stream 2147483648\n", Header::Stream(0x8000_0000)),
            (b"octet-stream 4294967296\n", Header::Stream(1 << 32)),
            (b"octet-stream 4294967297\n", Header::Stream((1 << 32) + 1)),
            (
                b"octet-stream 9223372036854775807\n",
                Header::Stream(i64::MAX as u64),
            ),
            (b"octet-stream -1\n", Header::Refused),
            (b"ERROR\n", Header::Refused),
        ];
        for (line, expected) in table {
            assert_eq!(Header::parse(line), *expected);
        }
    }

    #[test]
    fn whatever_sscanf_let_pass_is_a_text() {
        let table: &[&[u8]] = &[
            b"octet-stream 12garbage\n",
            b"octet-stream +5\n",
            b"octet-stream  5\n",
            b"octet-stream\t5\n",
            b"octet-stream5\n",
            b" octet-stream 5\n",
            b"octet-stream 12.5\n",
            b"octet-stream 1\x002\n",
            b"octet-stream \n",
            b"octet-stream -2\n",
            b"octet-stream 9223372036854775808\n",
            b"octet-stream 99999999999999999999999\n",
            b"octet-stream 5 \n",
            b"OCTET-STREAM 5\n",
            b"ERROR \n",
            b"No such file or directory\n",
            b"\n",
        ];
        for line in table {
            assert!(
                matches!(Header::parse(line), Header::Text(_)),
                "{}",
                line.escape_ascii()
            );
        }
    }

    #[test]
    fn announcements_parse_back() {
        for length in [0, 1, (1 << 31) - 1, 1 << 31, 1 << 32, (1 << 32) + 1] {
            let line = announcement(length);
            assert_eq!(Header::parse(line.as_bytes()), Header::Stream(length));
        }
    }
}

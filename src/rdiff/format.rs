//! The bytes of librsync's two formats: the header of a signature, the commands of a delta.
//!
//! A signature is a header of 12 bytes, then one record per block: the weak sum (4 bytes, big endian)
//! and the strong sum, cut to the length that the header names. Only the last block may be short.
//!
//! A delta is a magic number, then commands: an opcode, up to two big endian numbers, and for a literal
//! its bytes. `End` is the last one.

use thiserror::Error;

/// The first four bytes of every delta.
pub const DELTA_MAGIC: u32 = 0x7273_0236;

/// An opcode that no librsync knows. In place of [`Command::End`] it makes the peer refuse the delta.
pub const RESERVED_OPCODE: u8 = 0x55;

const OP_END: u8 = 0x00;
const OP_LITERAL_MAX_IMMEDIATE: u8 = 0x40;
const OP_LITERAL_N1: u8 = 0x41;
const OP_LITERAL_N8: u8 = 0x44;
const OP_COPY_N1_N1: u8 = 0x45;
const OP_COPY_N8_N8: u8 = 0x54;

/// The sum that can be rolled along a file byte by byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WeakKind {
    /// rsync's own sum, the only one before librsync 2.2.
    Rollsum,
    /// A polynomial sum, librsync's default since 2.2.
    RabinKarp,
}

/// The sum that decides whether two blocks are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StrongKind {
    /// MD4, 16 bytes.
    Md4,
    /// BLAKE2b with a digest of 32 bytes.
    Blake2,
}

impl StrongKind {
    /// The length of a whole sum of this kind.
    pub const fn max_len(self) -> u32 {
        match self {
            Self::Md4 => 16,
            Self::Blake2 => 32,
        }
    }
}

/// What is wrong with a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FormatError {
    /// The first four bytes are none of librsync's signature magics.
    #[error("not a signature: magic number {0:#010x}")]
    Magic(u32),
    /// A block length of zero, or one above `i32::MAX`.
    #[error("signature with an impossible block length {0}")]
    BlockLength(u32),
    /// A strong sum of no bytes, or of more than its kind has.
    #[error("signature with strong sums of {len} bytes, 1 to {max} are possible")]
    StrongLength {
        /// The length in the header.
        len: u32,
        /// The whole length of this kind of sum.
        max: u32,
    },
    /// The length is too small for a header, or does not fall on the end of a record.
    #[error("signature of {0} bytes ends inside a record")]
    Length(u64),
    /// More blocks than can be numbered.
    #[error("signature of {0} blocks is too large")]
    TooManyBlocks(u64),
    /// The data ended before the announced length.
    #[error("signature ended after {got} of {announced} bytes")]
    Truncated {
        /// Bytes that arrived.
        got: u64,
        /// Bytes that were announced.
        announced: u64,
    },
    /// More data than announced.
    #[error("signature is longer than the {0} bytes announced")]
    TooLong(u64),
    /// There is no memory for the index of this signature.
    #[error("out of memory for a signature of {0} bytes")]
    OutOfMemory(u64),
}

/// The header of a signature: which sums, of which length, over blocks of which length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SignatureHeader {
    /// Kind of the weak sums.
    pub weak: WeakKind,
    /// Kind of the strong sums.
    pub strong: StrongKind,
    /// Bytes in a block of the basis.
    pub block_len: u32,
    /// Bytes kept of each strong sum.
    pub strong_len: u32,
}

impl SignatureHeader {
    /// Bytes of a header.
    pub const LEN: usize = 12;

    /// Bytes of a weak sum.
    pub const WEAK_LEN: usize = 4;

    /// What csync2 sends: MD4, rollsum, blocks of 2048 bytes, whole sums.
    pub const CSYNC2: Self = Self {
        weak: WeakKind::Rollsum,
        strong: StrongKind::Md4,
        block_len: 2048,
        strong_len: 16,
    };

    /// Reads a header, and refuses every number that no librsync would write.
    pub fn parse(bytes: &[u8; Self::LEN]) -> Result<Self, FormatError> {
        let [magic, block_len, strong_len] = words(bytes);
        let (weak, strong) = kinds_of_magic(magic).ok_or(FormatError::Magic(magic))?;
        if block_len == 0 || i32::try_from(block_len).is_err() {
            return Err(FormatError::BlockLength(block_len));
        }
        let max = strong.max_len();
        if strong_len == 0 || strong_len > max {
            return Err(FormatError::StrongLength {
                len: strong_len,
                max,
            });
        }
        Ok(Self {
            weak,
            strong,
            block_len,
            strong_len,
        })
    }

    /// The bytes of this header.
    pub fn encode(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let words = [self.magic(), self.block_len, self.strong_len];
        for (field, word) in bytes.chunks_exact_mut(4).zip(words) {
            field.copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }

    /// The magic number for this pair of sums.
    pub const fn magic(&self) -> u32 {
        match (self.weak, self.strong) {
            (WeakKind::Rollsum, StrongKind::Md4) => 0x7273_0136,
            (WeakKind::Rollsum, StrongKind::Blake2) => 0x7273_0137,
            (WeakKind::RabinKarp, StrongKind::Md4) => 0x7273_0146,
            (WeakKind::RabinKarp, StrongKind::Blake2) => 0x7273_0147,
        }
    }

    /// Bytes of the record of one block.
    pub const fn record_len(&self) -> u64 {
        Self::WEAK_LEN as u64 + self.strong_len as u64
    }

    /// Blocks in a file of `file_len` bytes, a short last one counted.
    pub const fn block_count(&self, file_len: u64) -> u64 {
        file_len.div_ceil(self.block_len as u64)
    }

    /// Bytes of the signature of a file of `file_len` bytes. None where that overflows.
    pub fn signature_len(&self, file_len: u64) -> Option<u64> {
        self.block_count(file_len)
            .checked_mul(self.record_len())?
            .checked_add(Self::LEN as u64)
    }

    /// Blocks in a signature of `signature_len` bytes, if that is a length a signature can have.
    pub fn blocks_of_signature(&self, signature_len: u64) -> Result<u32, FormatError> {
        let wrong = FormatError::Length(signature_len);
        let records = signature_len.checked_sub(Self::LEN as u64).ok_or(wrong)?;
        if records % self.record_len() != 0 {
            return Err(wrong);
        }
        let blocks = records / self.record_len();
        u32::try_from(blocks).map_err(|_| FormatError::TooManyBlocks(blocks))
    }
}

fn kinds_of_magic(magic: u32) -> Option<(WeakKind, StrongKind)> {
    Some(match magic {
        0x7273_0136 => (WeakKind::Rollsum, StrongKind::Md4),
        0x7273_0137 => (WeakKind::Rollsum, StrongKind::Blake2),
        0x7273_0146 => (WeakKind::RabinKarp, StrongKind::Md4),
        0x7273_0147 => (WeakKind::RabinKarp, StrongKind::Blake2),
        _ => return None,
    })
}

fn words(bytes: &[u8; SignatureHeader::LEN]) -> [u32; 3] {
    let mut words = [0; 3];
    for (word, field) in words.iter_mut().zip(bytes.chunks_exact(4)) {
        *word = field.iter().fold(0, |n, &b| n << 8 | u32::from(b));
    }
    words
}

/// One command of a delta.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// `len` bytes follow, which belong to the new file.
    Literal {
        /// Number of bytes; never 0 in a valid delta.
        len: u64,
    },
    /// The next `len` bytes of the new file stand in the basis.
    Copy {
        /// Where in the basis.
        offset: u64,
        /// Number of bytes; never 0 in a valid delta.
        len: u64,
    },
    /// The new file is complete.
    End,
}

impl Command {
    /// The command as it stands in a delta, with the shortest opcode there is for it.
    pub fn encode(&self) -> EncodedCommand {
        let mut out = EncodedCommand::default();
        match *self {
            Self::End => out.push(OP_END),
            Self::Literal { len } => encode_literal(len, &mut out),
            Self::Copy { offset, len } => encode_copy(offset, len, &mut out),
        }
        out
    }

    /// Bytes of [`Command::encode`].
    pub fn encoded_len(&self) -> u64 {
        match *self {
            Self::End => 1,
            Self::Literal { len } if is_immediate(len) => 1,
            Self::Literal { len } => 1 + Width::of(len).bytes(),
            Self::Copy { offset, len } => 1 + Width::of(offset).bytes() + Width::of(len).bytes(),
        }
    }
}

fn is_immediate(len: u64) -> bool {
    (1..=u64::from(OP_LITERAL_MAX_IMMEDIATE)).contains(&len)
}

fn encode_literal(len: u64, out: &mut EncodedCommand) {
    if is_immediate(len) {
        out.push(len.to_be_bytes()[7]);
    } else {
        let width = Width::of(len);
        out.push(OP_LITERAL_N1 + width as u8);
        out.push_number(len, width);
    }
}

fn encode_copy(offset: u64, len: u64, out: &mut EncodedCommand) {
    let (offset_width, len_width) = (Width::of(offset), Width::of(len));
    out.push(OP_COPY_N1_N1 + 4 * offset_width as u8 + len_width as u8);
    out.push_number(offset, offset_width);
    out.push_number(len, len_width);
}

/// The widths a number can have in a delta, in the order of the opcodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    One,
    Two,
    Four,
    Eight,
}

impl Width {
    const ALL: [Self; 4] = [Self::One, Self::Two, Self::Four, Self::Eight];

    fn of(number: u64) -> Self {
        match number {
            0..=0xff => Self::One,
            0x100..=0xffff => Self::Two,
            0x1_0000..=0xffff_ffff => Self::Four,
            _ => Self::Eight,
        }
    }

    pub(crate) fn bytes(self) -> u64 {
        1 << (self as u8)
    }
}

/// What an opcode says, before its numbers are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opcode {
    End,
    LiteralImmediate(u8),
    Literal(Width),
    Copy { offset: Width, len: Width },
    Reserved,
}

impl Opcode {
    pub(crate) fn decode(byte: u8) -> Self {
        match byte {
            OP_END => Self::End,
            1..=OP_LITERAL_MAX_IMMEDIATE => Self::LiteralImmediate(byte),
            OP_LITERAL_N1..=OP_LITERAL_N8 => {
                Self::Literal(Width::ALL[usize::from(byte - OP_LITERAL_N1)])
            }
            OP_COPY_N1_N1..=OP_COPY_N8_N8 => {
                let pair = usize::from(byte - OP_COPY_N1_N1);
                Self::Copy {
                    offset: Width::ALL[pair / 4],
                    len: Width::ALL[pair % 4],
                }
            }
            _ => Self::Reserved,
        }
    }
}

/// A command in bytes; at most an opcode and two numbers of eight bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct EncodedCommand {
    bytes: [u8; Self::CAPACITY],
    len: u8,
}

impl EncodedCommand {
    /// The longest command.
    pub const CAPACITY: usize = 17;

    fn push(&mut self, byte: u8) {
        self.bytes[usize::from(self.len)] = byte;
        self.len += 1;
    }

    fn push_number(&mut self, number: u64, width: Width) {
        let bytes = number.to_be_bytes();
        let unused = bytes.len() - (1 << (width as u8));
        for &byte in &bytes[unused..] {
            self.push(byte);
        }
    }
}

impl std::ops::Deref for EncodedCommand {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(words: [u32; 3]) -> [u8; 12] {
        let mut bytes = [0; 12];
        for (i, word) in words.into_iter().enumerate() {
            bytes[4 * i..4 * i + 4].copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }

    #[test]
    fn csync2_header_has_the_bytes_of_rsync_c() {
        let bytes = SignatureHeader::CSYNC2.encode();
        assert_eq!(bytes, [0x72, 0x73, 0x01, 0x36, 0, 0, 8, 0, 0, 0, 0, 16]);
        assert_eq!(SignatureHeader::parse(&bytes), Ok(SignatureHeader::CSYNC2));
    }

    #[test]
    fn every_kind_survives_the_round_trip() {
        for (magic, max) in [
            (0x7273_0136, 16),
            (0x7273_0137, 32),
            (0x7273_0146, 16),
            (0x7273_0147, 32),
        ] {
            for strong_len in [1, 8, max] {
                for block_len in [1, 2048, i32::MAX as u32] {
                    let bytes = header([magic, block_len, strong_len]);
                    let parsed = SignatureHeader::parse(&bytes).expect("a good header");
                    assert_eq!(parsed.encode(), bytes);
                }
            }
        }
    }

    #[test]
    fn impossible_headers_are_refused() {
        let refused = |words| SignatureHeader::parse(&header(words)).expect_err("a bad header");
        for magic in [0, 0x7273_0236, 0x7273_0135, 0x7273_0138, u32::MAX] {
            assert_eq!(refused([magic, 2048, 16]), FormatError::Magic(magic));
        }
        for block_len in [0, 1 << 31, u32::MAX] {
            assert_eq!(
                refused([0x7273_0136, block_len, 16]),
                FormatError::BlockLength(block_len)
            );
        }
        for (magic, len, max) in [
            (0x7273_0136, 0, 16),
            (0x7273_0136, 17, 16),
            (0x7273_0147, 33, 32),
            (0x7273_0146, u32::MAX, 16),
        ] {
            assert_eq!(
                refused([magic, 2048, len]),
                FormatError::StrongLength { len, max }
            );
        }
    }

    #[test]
    fn lengths_follow_from_the_file() {
        let header = SignatureHeader::CSYNC2;
        for (file, blocks) in [
            (0, 0),
            (1, 1),
            (2047, 1),
            (2048, 1),
            (2049, 2),
            (1 << 40, 1 << 29),
        ] {
            assert_eq!(header.block_count(file), blocks);
            let len = header.signature_len(file).expect("fits");
            assert_eq!(len, 12 + 20 * blocks);
            assert_eq!(header.blocks_of_signature(len), Ok(blocks as u32));
        }
        let bytewise = SignatureHeader {
            block_len: 1,
            ..header
        };
        assert_eq!(bytewise.signature_len(u64::MAX), None);
        for len in [0, 11, 13, 31, 33] {
            assert_eq!(
                header.blocks_of_signature(len),
                Err(FormatError::Length(len))
            );
        }
        assert_eq!(
            header.blocks_of_signature(12 + 20 * (1 << 32)),
            Err(FormatError::TooManyBlocks(1 << 32))
        );
    }

    #[test]
    fn commands_take_the_shortest_opcode() {
        let literal = |len| Command::Literal { len }.encode().to_vec();
        assert_eq!(literal(1), [0x01]);
        assert_eq!(literal(64), [0x40]);
        assert_eq!(literal(65), [0x41, 65]);
        assert_eq!(literal(255), [0x41, 255]);
        assert_eq!(literal(256), [0x42, 1, 0]);
        assert_eq!(literal(0x1_0000), [0x43, 0, 1, 0, 0]);
        assert_eq!(literal(1 << 32), [0x44, 0, 0, 0, 1, 0, 0, 0, 0]);
        let copy = |offset, len| Command::Copy { offset, len }.encode().to_vec();
        assert_eq!(copy(0, 1), [0x45, 0, 1]);
        assert_eq!(copy(0x100, 255), [0x49, 1, 0, 255]);
        assert_eq!(copy(0x1_0000, 2048), [0x4e, 0, 1, 0, 0, 8, 0]);
        assert_eq!(copy(u64::MAX, u64::MAX).len(), EncodedCommand::CAPACITY);
        assert_eq!(*Command::End.encode(), [0]);
    }

    #[test]
    fn every_width_decodes_to_what_was_encoded() {
        let numbers = [
            1,
            64,
            65,
            255,
            256,
            65535,
            65536,
            u64::from(u32::MAX),
            1 << 32,
            u64::MAX,
        ];
        for &len in &numbers {
            let literal = Command::Literal { len };
            assert_eq!(literal.encode().len() as u64, literal.encoded_len());
            for &offset in &numbers {
                let command = Command::Copy { offset, len };
                let bytes = command.encode();
                assert_eq!(bytes.len() as u64, command.encoded_len());
                let Opcode::Copy { offset: o, len: l } = Opcode::decode(bytes[0]) else {
                    panic!("not a copy: {bytes:?}");
                };
                assert_eq!(1 + o.bytes() + l.bytes(), command.encoded_len());
            }
        }
        assert_eq!(Opcode::decode(RESERVED_OPCODE), Opcode::Reserved);
        assert_eq!(Opcode::decode(0xff), Opcode::Reserved);
    }
}

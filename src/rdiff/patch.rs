//! Reads a delta as it arrives, and says what the new file is made of.

use thiserror::Error;

use super::format::{DELTA_MAGIC, Opcode, Width};

/// Where a patch puts the new file, piece after piece.
pub trait PatchOutput {
    /// The next bytes of the new file.
    fn literal(&mut self, data: &[u8]) -> std::io::Result<()>;

    /// The next `len` bytes of the new file are those of the basis from `offset` on.
    ///
    /// The range lies within the basis, as long as that was when the patch began.
    fn copy(&mut self, offset: u64, len: u64) -> std::io::Result<()>;
}

/// Why a delta was not applied.
#[derive(Debug, Error)]
pub enum PatchError {
    /// The first four bytes are not those of a delta.
    #[error("not a delta: magic number {0:#010x}")]
    Magic(u32),
    /// An opcode without a meaning. A sender uses one on purpose when it cannot keep its promise.
    #[error("delta with the reserved command {0:#04x}")]
    ReservedCommand(u8),
    /// A literal of no bytes.
    #[error("delta with an empty literal")]
    EmptyLiteral,
    /// A copy of no bytes.
    #[error("delta with an empty copy")]
    EmptyCopy,
    /// A literal longer than any file.
    #[error("delta with a literal of {0} bytes")]
    LiteralTooLong(u64),
    /// A copy from behind the end of the basis.
    #[error("delta copies {len} bytes from {offset} on, the basis has {basis_len}")]
    BeyondBasis {
        /// Where the copy begins.
        offset: u64,
        /// How long it is.
        len: u64,
        /// How long the basis is.
        basis_len: u64,
    },
    /// The new file would be longer than any file.
    #[error("delta makes a file that is too long")]
    FileTooLong,
    /// Data behind the end command.
    #[error("delta goes on after its end command")]
    TrailingData,
    /// The data ended without an end command.
    #[error("delta ended without an end command")]
    NoEnd,
    /// An earlier part of this delta was refused.
    #[error("delta was refused before")]
    Refused,
    /// The output failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// A file has at most this many bytes.
const MAX_FILE_LEN: u64 = i64::MAX as u64;

/// A delta being applied. Takes the delta in pieces cut anywhere.
#[derive(Debug)]
pub struct Patcher {
    state: State,
    basis_len: u64,
    /// Bytes of the new file so far, those that commands have announced included.
    new_len: u64,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Magic(Number),
    Command,
    /// A literal's length is being read.
    LiteralLen(Number),
    /// A copy's offset is being read; its length will be this wide.
    CopyOffset(Number, Width),
    CopyLen {
        offset: u64,
        len: Number,
    },
    /// So many bytes of a literal are still to come.
    Literal(u64),
    Ended,
    Refused,
}

impl Patcher {
    /// Begins a patch of a basis of `basis_len` bytes; of none, where there is no basis.
    pub fn new(basis_len: u64) -> Self {
        Self {
            state: State::Magic(Number::new(Width::Four)),
            basis_len,
            new_len: 0,
        }
    }

    /// Takes the next bytes of the delta.
    ///
    /// After an error the rest of the delta is of no use, and is refused.
    pub fn feed(&mut self, bytes: &[u8], out: &mut dyn PatchOutput) -> Result<(), PatchError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            // Stands unless the step leads to another state.
            let state = std::mem::replace(&mut self.state, State::Refused);
            self.state = self.step(state, &mut rest, out)?;
        }
        Ok(())
    }

    /// The delta is complete. Returns the length of the new file.
    pub fn finish(self) -> Result<u64, PatchError> {
        match self.state {
            State::Ended => Ok(self.new_len),
            State::Refused => Err(PatchError::Refused),
            _ => Err(PatchError::NoEnd),
        }
    }

    /// Takes something off the front of `bytes`, which is not empty.
    fn step(
        &mut self,
        state: State,
        bytes: &mut &[u8],
        out: &mut dyn PatchOutput,
    ) -> Result<State, PatchError> {
        match state {
            State::Magic(mut number) => match number.take(bytes) {
                Some(magic) => after_magic(magic),
                None => Ok(State::Magic(number)),
            },
            State::Command => match bytes.split_first() {
                Some((&opcode, rest)) => {
                    *bytes = rest;
                    self.begin_command(opcode)
                }
                None => Ok(State::Command),
            },
            State::LiteralLen(mut number) => match number.take(bytes) {
                Some(len) => self.begin_literal(len),
                None => Ok(State::LiteralLen(number)),
            },
            State::CopyOffset(mut number, width) => Ok(match number.take(bytes) {
                Some(offset) => State::CopyLen {
                    offset,
                    len: Number::new(width),
                },
                None => State::CopyOffset(number, width),
            }),
            State::CopyLen { offset, mut len } => match len.take(bytes) {
                Some(len) => self.copy(offset, len, out),
                None => Ok(State::CopyLen { offset, len }),
            },
            State::Literal(left) => literal(left, bytes, out),
            State::Ended => Err(PatchError::TrailingData),
            State::Refused => Err(PatchError::Refused),
        }
    }

    fn begin_command(&mut self, opcode: u8) -> Result<State, PatchError> {
        match Opcode::decode(opcode) {
            Opcode::End => Ok(State::Ended),
            Opcode::LiteralImmediate(len) => self.begin_literal(len.into()),
            Opcode::Literal(width) => Ok(State::LiteralLen(Number::new(width))),
            Opcode::Copy { offset, len } => Ok(State::CopyOffset(Number::new(offset), len)),
            Opcode::Reserved => Err(PatchError::ReservedCommand(opcode)),
        }
    }

    fn begin_literal(&mut self, len: u64) -> Result<State, PatchError> {
        if len == 0 {
            return Err(PatchError::EmptyLiteral);
        }
        if len > MAX_FILE_LEN {
            return Err(PatchError::LiteralTooLong(len));
        }
        self.grow(len)?;
        Ok(State::Literal(len))
    }

    fn copy(
        &mut self,
        offset: u64,
        len: u64,
        out: &mut dyn PatchOutput,
    ) -> Result<State, PatchError> {
        if len == 0 {
            return Err(PatchError::EmptyCopy);
        }
        let within = offset
            .checked_add(len)
            .is_some_and(|end| end <= self.basis_len);
        if !within {
            return Err(PatchError::BeyondBasis {
                offset,
                len,
                basis_len: self.basis_len,
            });
        }
        self.grow(len)?;
        out.copy(offset, len)?;
        Ok(State::Command)
    }

    fn grow(&mut self, len: u64) -> Result<(), PatchError> {
        let new_len = self.new_len.checked_add(len);
        self.new_len = new_len
            .filter(|&len| len <= MAX_FILE_LEN)
            .ok_or(PatchError::FileTooLong)?;
        Ok(())
    }
}

fn after_magic(magic: u64) -> Result<State, PatchError> {
    if magic == u64::from(DELTA_MAGIC) {
        Ok(State::Command)
    } else {
        // A number of four bytes.
        Err(PatchError::Magic(magic as u32))
    }
}

/// Hands on what there is of a literal of which `left` bytes are still to come.
fn literal(left: u64, bytes: &mut &[u8], out: &mut dyn PatchOutput) -> Result<State, PatchError> {
    let here = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
    let (own, rest) = bytes.split_at(here);
    out.literal(own)?;
    *bytes = rest;
    Ok(match left - here as u64 {
        0 => State::Command,
        left => State::Literal(left),
    })
}

/// A big endian number of which some bytes may be still to come.
#[derive(Clone, Copy, Debug)]
struct Number {
    value: u64,
    missing: u8,
}

impl Number {
    fn new(width: Width) -> Self {
        Self {
            value: 0,
            missing: width.bytes() as u8,
        }
    }

    /// Takes bytes off the front of `bytes`; returns the number when it is complete.
    fn take(&mut self, bytes: &mut &[u8]) -> Option<u64> {
        let here = bytes.len().min(self.missing.into());
        let (own, rest) = bytes.split_at(here);
        self.value = own.iter().fold(self.value, |n, &b| n << 8 | u64::from(b));
        self.missing -= here as u8;
        *bytes = rest;
        (self.missing == 0).then_some(self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rdiff::format::Command;

    const BASIS_LEN: u64 = 1 << 40;

    /// Writes down the calls, neighbouring literals joined.
    #[derive(Debug, Default, PartialEq)]
    struct Calls(Vec<Call>);

    #[derive(Debug, PartialEq)]
    enum Call {
        Literal(Vec<u8>),
        Copy(u64, u64),
    }

    impl PatchOutput for Calls {
        fn literal(&mut self, data: &[u8]) -> std::io::Result<()> {
            if let Some(Call::Literal(last)) = self.0.last_mut() {
                last.extend_from_slice(data);
            } else {
                self.0.push(Call::Literal(data.to_vec()));
            }
            Ok(())
        }

        fn copy(&mut self, offset: u64, len: u64) -> std::io::Result<()> {
            self.0.push(Call::Copy(offset, len));
            Ok(())
        }
    }

    fn delta(body: &[u8]) -> Vec<u8> {
        [&DELTA_MAGIC.to_be_bytes(), body].concat()
    }

    fn apply(delta: &[u8], step: usize) -> Result<(Calls, u64), PatchError> {
        let mut calls = Calls::default();
        let mut patcher = Patcher::new(BASIS_LEN);
        for piece in delta.chunks(step) {
            patcher.feed(piece, &mut calls)?;
        }
        Ok((calls, patcher.finish()?))
    }

    fn refusal(body: &[u8]) -> PatchError {
        let delta = delta(body);
        let whole = apply(&delta, delta.len()).expect_err("a bad delta");
        let bytewise = apply(&delta, 1).expect_err("a bad delta");
        assert_eq!(whole.to_string(), bytewise.to_string());
        whole
    }

    /// Every opcode with a number of each width.
    fn all_commands() -> (Vec<u8>, Calls, u64) {
        let (mut body, mut calls, mut len) = (Vec::new(), Calls::default(), 0);
        for immediate in 1..=64u8 {
            body.push(immediate);
            body.extend(std::iter::repeat_n(immediate, immediate.into()));
            calls
                .literal(&vec![immediate; immediate.into()])
                .expect("calls");
            len += u64::from(immediate);
        }
        for (i, width) in [1, 2, 4, 8].into_iter().enumerate() {
            body.push(0x41 + i as u8);
            body.extend_from_slice(&3u64.to_be_bytes()[8 - width..]);
            body.extend_from_slice(b"abc");
            calls.literal(b"abc").expect("calls");
            len += 3;
            for (j, len_width) in [1, 2, 4, 8].into_iter().enumerate() {
                body.push(0x45 + 4 * i as u8 + j as u8);
                body.extend_from_slice(&200u64.to_be_bytes()[8 - width..]);
                body.extend_from_slice(&9u64.to_be_bytes()[8 - len_width..]);
                calls.copy(200, 9).expect("calls");
                len += 9;
            }
        }
        body.push(0);
        (delta(&body), calls, len)
    }

    #[test]
    fn every_command_in_every_cut() {
        let (delta, calls, len) = all_commands();
        for step in [1, 2, 3, 7, 64, delta.len()] {
            let (got, got_len) = apply(&delta, step).expect("a good delta");
            assert_eq!((&got, got_len), (&calls, len), "in steps of {step}");
        }
    }

    #[test]
    fn truncation_at_every_byte_is_an_error() {
        let (delta, ..) = all_commands();
        for len in 0..delta.len() {
            let error = apply(&delta[..len], 4096).expect_err("a short delta");
            assert!(matches!(error, PatchError::NoEnd), "{error}");
        }
    }

    #[test]
    fn wrong_magic() {
        for magic in [0, 0x7273_0136, 0x7273_0235, u32::MAX] {
            let mut delta = magic.to_be_bytes().to_vec();
            delta.push(0);
            let error = apply(&delta, 1).expect_err("a bad magic");
            assert!(matches!(error, PatchError::Magic(m) if m == magic));
        }
    }

    #[test]
    fn reserved_commands() {
        for opcode in 0x55..=0xff {
            let error = refusal(&[1, b'a', opcode]);
            assert!(matches!(error, PatchError::ReservedCommand(op) if op == opcode));
        }
    }

    #[test]
    fn empty_commands() {
        for (opcode, width) in [(0x41, 1), (0x42, 2), (0x43, 4), (0x44, 8)] {
            let body = [&[opcode][..], &vec![0; width], &[0]].concat();
            assert!(matches!(refusal(&body), PatchError::EmptyLiteral));
        }
        assert!(matches!(refusal(&[0x45, 0, 0, 0]), PatchError::EmptyCopy));
        assert!(matches!(refusal(&[0x45, 9, 0, 0]), PatchError::EmptyCopy));
    }

    #[test]
    fn copies_beyond_the_basis() {
        for (offset, len) in [
            (0, BASIS_LEN + 1),
            (BASIS_LEN, 1),
            (BASIS_LEN - 1, 2),
            (1 << 63, 1),
            (u64::MAX, 1),
            (1, u64::MAX),
            (u64::MAX, u64::MAX),
            (1 << 62, (1 << 62) + 1),
        ] {
            let command = Command::Copy { offset, len }.encode();
            assert!(matches!(refusal(&command), PatchError::BeyondBasis { .. }));
        }
        let last = Command::Copy {
            offset: BASIS_LEN - 1,
            len: 1,
        }
        .encode();
        apply(&delta(&[&*last, &[0]].concat()), 1).expect("the last byte of the basis");
    }

    #[test]
    fn literals_longer_than_any_file() {
        for len in [1 << 63, u64::MAX] {
            let command = Command::Literal { len }.encode();
            assert!(matches!(refusal(&command), PatchError::LiteralTooLong(l) if l == len));
        }
        let command = Command::Literal {
            len: i64::MAX as u64,
        }
        .encode();
        assert!(matches!(
            refusal(&[&*command, b"x"].concat()),
            PatchError::NoEnd
        ));
        let after_one = [&[1, b'a'][..], &command].concat();
        assert!(matches!(refusal(&after_one), PatchError::FileTooLong));
    }

    #[test]
    fn copies_that_make_too_long_a_file() {
        let basis_len = i64::MAX as u64;
        let copy = Command::Copy {
            offset: 0,
            len: basis_len,
        }
        .encode();
        let mut patcher = Patcher::new(basis_len);
        let mut calls = Calls::default();
        patcher
            .feed(&delta(&copy), &mut calls)
            .expect("the first copy");
        let error = patcher
            .feed(&copy, &mut calls)
            .expect_err("the second copy");
        assert!(matches!(error, PatchError::FileTooLong));
    }

    #[test]
    fn data_after_the_end() {
        assert!(matches!(refusal(&[0, 0]), PatchError::TrailingData));
        assert!(matches!(
            refusal(&[1, b'a', 0, b'x']),
            PatchError::TrailingData
        ));
    }

    #[test]
    fn what_follows_an_error_is_refused() {
        let mut calls = Calls::default();
        let mut patcher = Patcher::new(0);
        patcher
            .feed(&delta(&[0x55]), &mut calls)
            .expect_err("reserved");
        let error = patcher.feed(&[0], &mut calls).expect_err("refused before");
        assert!(matches!(error, PatchError::Refused));
        assert!(matches!(patcher.finish(), Err(PatchError::Refused)));
    }

    #[test]
    fn errors_of_the_output_come_through() {
        struct Full;
        impl PatchOutput for Full {
            fn literal(&mut self, _: &[u8]) -> std::io::Result<()> {
                Err(std::io::ErrorKind::StorageFull.into())
            }
            fn copy(&mut self, _: u64, _: u64) -> std::io::Result<()> {
                Err(std::io::ErrorKind::UnexpectedEof.into())
            }
        }
        for (body, kind) in [
            (&[1, b'a'][..], std::io::ErrorKind::StorageFull),
            (&[0x45, 0, 1], std::io::ErrorKind::UnexpectedEof),
        ] {
            let error = Patcher::new(10)
                .feed(&delta(body), &mut Full)
                .expect_err("full");
            assert!(matches!(error, PatchError::Io(e) if e.kind() == kind));
        }
    }
}

//! The delta of a small file, made so that it can leave together with the command that announces it.
//!
//! csync2's daemon that refuses a `PATCH` reads on with the next line: what was sent behind it, file content with it,
//! is read as commands. So this delta is *inert*. It has literal bytes only, which is right whatever the peer has, and
//! each line of it begins with the opcode of a literal that is no letter, no blank and no `%`: the first word of such a
//! line is never that of a command, whatever the content is.

use crate::files::{Stamp, open_regular};
use crate::rdiff::{Command, DELTA_MAGIC};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The largest file that is sent this way, in bytes: more are better compared first.
const LARGEST_FILE: u64 = 16 * 1024;

/// The longest line of such a delta. Old daemons take no more than 4095 bytes for a line, and begin the next one in the
/// middle of the content.
const LONGEST_LINE: usize = 4000;

/// The longest literal whose opcode is its length and nothing else.
const LONGEST_LITERAL: usize = 64;

/// The inert delta of the file at `path`; `None` where it has none, or the file cannot be read, is no regular file,
/// too large, or changes meanwhile: the usual way finds out more.
pub fn inert_delta(path: &Path) -> Option<Vec<u8>> {
    let source = open_regular(path).ok()??;
    let size = source.stamp.size();
    if size > LARGEST_FILE {
        return None;
    }
    let mut content = vec![0; usize::try_from(size).ok()?];
    source.file.read_exact_at(&mut content, 0).ok()?;
    let now = Stamp::of(&source.file).ok()?;
    now.same_content(&source.stamp)
        .then(|| encode(&content))
        .flatten()
}

/// The delta that makes `content` of anything; `None` where a line of it would be too long.
fn encode(content: &[u8]) -> Option<Vec<u8>> {
    let mut delta = Vec::with_capacity(content.len() + content.len() / 32 + 16);
    delta.extend_from_slice(&DELTA_MAGIC.to_be_bytes());
    for line in content.split_inclusive(|byte| *byte == b'\n') {
        let start = delta.len();
        line.chunks(LONGEST_LITERAL)
            .for_each(|piece| put(&mut delta, piece));
        if delta.len() - start > LONGEST_LINE {
            return None;
        }
    }
    delta.extend_from_slice(Command::End.encode().as_ref());
    Some(delta)
}

/// One piece of a line: one literal, or two where the length would not do as an opcode.
fn put(delta: &mut Vec<u8>, piece: &[u8]) {
    // (the halves of 9, 10, 11, 12, 13, 32 and 37 are none of these)
    if matches!(piece.len(), 9..=13 | 32 | 37) {
        let (first, second) = piece.split_at(piece.len() / 2);
        put(delta, first);
        put(delta, second);
        return;
    }
    let len = piece.len() as u64;
    delta.extend_from_slice(Command::Literal { len }.encode().as_ref());
    delta.extend_from_slice(piece);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rdiff::{PatchError, PatchOutput, Patcher};
    use proptest::prelude::*;
    use std::error::Error;
    use std::io;

    /// What csync2's daemon takes for the first word of a line: nothing behind a NUL (or, patched, nothing at all of
    /// such a line), blanks ahead of it are skipped, `%XX` is decoded, and case does not matter.
    fn first_word(line: &[u8]) -> Vec<u8> {
        let line = line.split(|byte| *byte == 0).next().unwrap_or_default();
        let blank = |byte: &u8| b"\t \r\n".contains(byte);
        let word = line
            .split(blank)
            .find(|word| !word.is_empty())
            .unwrap_or_default();
        let mut decoded = Vec::new();
        let mut rest = word;
        while let Some((byte, behind)) = rest.split_first() {
            let hex = std::str::from_utf8(behind.get(..2).unwrap_or_default()).unwrap_or_default();
            match u8::from_str_radix(hex, 16) {
                Ok(escaped) if *byte == b'%' => {
                    decoded.push(escaped);
                    rest = &behind[2..];
                }
                _ => {
                    decoded.push(*byte);
                    rest = behind;
                }
            }
        }
        decoded.make_ascii_lowercase();
        decoded
    }

    /// Whether a daemon that reads it as lines finds nothing that could ever be a command.
    fn assert_inert(delta: &[u8]) {
        for (number, line) in delta.split_inclusive(|byte| *byte == b'\n').enumerate() {
            assert!(line.len() <= LONGEST_LINE + 8, "{} bytes", line.len());
            let word = first_word(line);
            if number == 0 {
                assert!(word.is_empty() || word.starts_with(b"rs\x02"), "{word:?}");
            } else if let Some(first) = word.first() {
                assert!(
                    !first.is_ascii_alphabetic() && !first.is_ascii_whitespace(),
                    "{word:?}"
                );
            }
        }
        assert_eq!(delta.last(), Some(&0), "the next line begins with a NUL");
    }

    fn assert_makes(delta: &[u8], content: &[u8]) -> Result<(), PatchError> {
        let mut made = Made(Vec::new());
        let mut patcher = Patcher::new(1000);
        patcher.feed(delta, &mut made)?;
        assert_eq!(patcher.finish()?, content.len() as u64);
        assert!(made.0 == content);
        Ok(())
    }

    struct Made(Vec<u8>);

    impl PatchOutput for Made {
        fn literal(&mut self, data: &[u8]) -> io::Result<()> {
            self.0.extend_from_slice(data);
            Ok(())
        }
        fn copy(&mut self, _: u64, _: u64) -> io::Result<()> {
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    fn assert_good(content: &[u8]) -> Result<(), Box<dyn Error>> {
        let delta = encode(content).ok_or("no delta")?;
        assert_inert(&delta);
        Ok(assert_makes(&delta, content)?)
    }

    #[test]
    fn commands_in_the_content_are_none_on_the_wire() -> Result<(), Box<dyn Error>> {
        let command = b"DEL key %25tree%25/victim\n";
        for before in 0..200 {
            for line in 1..70 {
                let mut content = vec![b'x'; before];
                content.extend_from_slice(b"\n");
                content.extend_from_slice(command);
                content.extend(std::iter::repeat_n(b'y', line));
                content.extend_from_slice(b"\n\n\r\n \n\t\n%44EL a b\n\0\nDEL\n");
                content.extend_from_slice(command);
                content.extend_from_slice(command.trim_ascii());
                assert_good(&content)?;
            }
        }
        assert_good(b"")?;
        assert_good(&b"\n".repeat(16384))?;
        assert_good(&command.repeat(600))
    }

    #[test]
    fn the_test_knows_a_command_when_it_sees_one() {
        assert_eq!(first_word(b" \t%44eL key file\n"), b"del");
        assert_eq!(first_word(b"\0DEL key file\n"), b"");
        let naive = b"rs\x026\x0a123\nDEL a\n\0";
        assert!(std::panic::catch_unwind(|| assert_inert(naive)).is_err());
    }

    #[test]
    fn a_line_that_is_too_long_has_none() -> Result<(), Box<dyn Error>> {
        assert!(encode(&vec![b'x'; 3900]).is_some());
        assert!(encode(&vec![b'x'; 4000]).is_none());
        let mut content = vec![b'x'; 3900];
        content.push(b'\n');
        assert_good(&content.repeat(4))
    }

    #[test]
    fn only_small_regular_files_that_can_be_read() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let at = |name: &str| directory.path().join(name);
        std::fs::write(at("small"), b"content")?;
        std::fs::write(at("full"), b"0123456789abcde\n".repeat(1024))?;
        std::fs::write(at("large"), b"0123456789abcde\n".repeat(1025))?;
        std::os::unix::fs::symlink("small", at("link"))?;
        let small = inert_delta(&at("small"));
        assert_eq!(small.as_deref(), Some(&b"rs\x026\x07content\x00"[..]));
        assert!(inert_delta(&at("full")).is_some());
        for name in ["large", "link", "missing", "."] {
            assert!(inert_delta(&at(name)).is_none(), "{name}");
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_content_is_inert_and_arrives(
            words in prop::collection::vec(prop_oneof![
                Just(b"DEL ".to_vec()), Just(b"patch".to_vec()), Just(b"\n".to_vec()), Just(b"%53IG".to_vec()),
                Just(b"\0".to_vec()), Just(b"\r".to_vec()), prop::collection::vec(any::<u8>(), 0..80),
            ], 0..200)
        ) {
            let content = words.concat();
            if let Some(delta) = encode(&content) {
                assert_inert(&delta);
                prop_assert!(assert_makes(&delta, &content).is_ok());
            }
        }
    }
}

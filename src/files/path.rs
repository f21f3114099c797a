//! The path functions of `rsync.c`, and the names of temporary files. Paths are bytes.

use rustix::fs::{CWD, Mode};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// The longest name in a directory (`NAME_MAX` on every Linux file system).
const LONGEST_NAME: usize = 255;

/// A path has fewer bytes than this (`PATH_MAX` on Linux, with the NUL).
const LONGEST_PATH: usize = 4096;

/// Random characters at the end of a temporary name, as many as `mkstemp` puts there.
pub const RANDOM_CHARACTERS: usize = 6;

/// Splits a path at its last slash: the part before it, without trailing slashes unless it is `/`, and the
/// part behind it.
///
/// | path | directory | name |
/// | --- | --- | --- |
/// | `/` | `/` | |
/// | `/foo` | `/` | `foo` |
/// | `/some/path/` | `/some/path` | |
/// | `foo` | | `foo` |
pub fn split(path: &[u8]) -> (&[u8], &[u8]) {
    let name_start = path
        .iter()
        .rposition(|byte| *byte == b'/')
        .map_or(0, |slash| slash + 1);
    let (directory, name) = path.split_at(name_start);
    let mut end = directory.len();
    while end > 1 && directory[end - 1] == b'/' {
        end -= 1;
    }
    (&directory[..end], name)
}

/// Makes every missing directory above the last component of `path`.
///
/// # Errors
/// `ENOTDIR` where a parent exists and is not a directory, otherwise as `mkdir`. Directories that were made
/// before the error stay.
pub fn make_parents(path: &Path, mode: Mode) -> io::Result<()> {
    let bytes = path.as_os_str().as_bytes();
    if bytes.len() >= LONGEST_PATH {
        // Before anything is made: the kernel would say so only at the last directories.
        return Err(Errno::NAMETOOLONG.into());
    }
    for (position, byte) in bytes.iter().enumerate().skip(1) {
        if *byte == b'/' && bytes[position - 1] != b'/' {
            make_directory(Path::new(OsStr::from_bytes(&bytes[..position])), mode)?;
        }
    }
    Ok(())
}

fn make_directory(path: &Path, mode: Mode) -> io::Result<()> {
    match rustix::fs::mkdirat(CWD, path, mode) {
        Err(Errno::EXIST) if path.is_dir() => Ok(()),
        Err(Errno::EXIST) => Err(Errno::NOTDIR.into()),
        result => Ok(result?),
    }
}

/// The start of the temporary name for a file called `name`: a dot, the name (without a dot of its own at
/// its start, and shortened to leave room), a dot. With [`RANDOM_CHARACTERS`] behind it, it is the pattern that
/// csync2 has always used, `.name.XXXXXX`.
pub fn temporary_prefix(name: &OsStr) -> OsString {
    let name = name.as_bytes();
    let name = name.strip_prefix(b".").unwrap_or(name);
    let kept = shortened(name, LONGEST_NAME - RANDOM_CHARACTERS - 2);
    let kept = kept.strip_suffix(b".").unwrap_or(kept);
    OsString::from_vec([b".", kept, b"."].concat())
}

/// At most `limit` bytes of `name`, not cut inside a UTF-8 character.
fn shortened(name: &[u8], limit: usize) -> &[u8] {
    if name.len() <= limit {
        return name;
    }
    let is_continuation = |byte: u8| byte & 0xc0 == 0x80;
    let mut end = limit;
    // Names need not be UTF-8: no more than a character's length is given up for it.
    while end > limit - 3 && is_continuation(name[end]) {
        end -= 1;
    }
    &name[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_split_as_rsync_c_splits_them() {
        let table: &[(&str, &str, &str)] = &[
            ("/", "/", ""),
            ("//", "/", ""),
            ("/foo", "/", "foo"),
            ("/some/path/", "/some/path", ""),
            ("/some/path", "/some", "path"),
            ("/some//path", "/some", "path"),
            ("///a///", "///a", ""),
            ("foo", "", "foo"),
            ("a/", "a", ""),
            ("", "", ""),
        ];
        for (path, directory, name) in table {
            let expected = (directory.as_bytes(), name.as_bytes());
            assert_eq!(split(path.as_bytes()), expected, "{path}");
        }
    }

    #[test]
    fn every_parent_is_made_and_the_last_component_is_not() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let at = |name: &str| directory.path().join(name);
        let mode = Mode::RWXU;
        make_parents(&at("a/b//c/"), mode)?;
        assert!(at("a/b/c").is_dir());
        make_parents(&at("a/b/file"), mode)?;
        assert!(!at("a/b/file").exists());
        make_parents(Path::new(""), mode)?;
        make_parents(Path::new("/"), mode)?;
        std::fs::write(at("plain"), b"")?;
        let error = make_parents(&at("plain/x/y"), mode).err();
        assert_eq!(
            error.and_then(|error| error.raw_os_error()),
            Some(Errno::NOTDIR.raw_os_error())
        );
        let long = make_parents(&at(&"x/".repeat(3000)), mode).err();
        assert!(!at("x").exists());
        assert_eq!(
            long.and_then(|error| error.raw_os_error()),
            Some(Errno::NAMETOOLONG.raw_os_error())
        );
        Ok(())
    }

    #[test]
    fn temporary_names_fit_and_keep_characters_whole() {
        let length = |name: &str| temporary_prefix(OsStr::new(name)).len() + RANDOM_CHARACTERS;
        assert_eq!(temporary_prefix(OsStr::new("f")), ".f.");
        assert_eq!(temporary_prefix(OsStr::new(".hidden")), ".hidden.");
        assert_eq!(temporary_prefix(OsStr::new("dot.")), ".dot.");
        assert_eq!(length(&"a".repeat(255)), 255);
        for name in [
            "ä".repeat(127),
            "€".repeat(85),
            "a".to_owned() + &"😀".repeat(63),
        ] {
            let prefix = temporary_prefix(OsStr::new(&name));
            assert!(prefix.len() + RANDOM_CHARACTERS <= 255);
            assert!(prefix.to_str().is_some());
        }
        let latin1 = OsString::from_vec(vec![0xe4; 255]);
        assert!(temporary_prefix(&latin1).len() + RANDOM_CHARACTERS <= 255);
    }
}

//! Temporary names beside a target: how one is chosen, and how one that a killed process left behind is found.
//!
//! The first choice is the same in every process: `.name.` and six characters computed from the name. What a killed
//! process left is found by a look at that one name. A search for all that is shaped like it would cost a reading of
//! the directory for each file, and take a user's `.bashrc.backup` for one of ours. Whoever uses the name holds a lock
//! on its file, so that a live one is never removed; while it is taken, others use random names.

use super::path::{RANDOM_CHARACTERS, temporary_prefix};
use super::regular::Stamp;
use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::{Errno, retry_on_intr};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

const CHARACTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The first choice for the target `name`.
pub fn first_name(name: &Path) -> PathBuf {
    let mut temporary = temporary_prefix(name.as_os_str()).into_vec();
    let mut rest = hash(name.as_os_str());
    for _ in 0..RANDOM_CHARACTERS {
        temporary.push(CHARACTERS[(rest % 62) as usize]);
        rest /= 62;
    }
    PathBuf::from(OsString::from_vec(temporary))
}

/// FNV-1a: the same in every version of this library.
fn hash(name: &OsStr) -> u64 {
    name.as_bytes()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
            (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        })
}

/// Calls `make` with random temporary names for `name` until one is free.
///
/// # Errors
/// What `make` says, but for `EEXIST`.
pub fn with_random_name<T>(
    name: &Path,
    mut make: impl FnMut(&Path) -> Result<T, Errno>,
) -> io::Result<(T, PathBuf)> {
    let mut taken = None;
    let made = tempfile::Builder::new()
        .prefix(&temporary_prefix(name.as_os_str()))
        .rand_bytes(RANDOM_CHARACTERS)
        // The name is relative to a directory that only `make` knows: it is ours to remove.
        .disable_cleanup(true)
        .make_in("", |path| {
            // The builder puts the current directory in front.
            let temporary = Path::new(path.file_name().unwrap_or_default());
            let made = make(temporary)?;
            taken = Some(temporary.to_owned());
            Ok(made)
        })?;
    let temporary = taken.ok_or(io::ErrorKind::NotFound)?;
    Ok((made.into_parts().0, temporary))
}

/// Marks a file as one in use; false where somebody else holds it. A file system without locks has no stale names
/// removed, and needs no marks.
pub fn mark(file: impl AsFd) -> bool {
    let lock = FlockOperation::NonBlockingLockExclusive;
    retry_on_intr(|| rustix::fs::flock(&file, lock)) != Err(Errno::WOULDBLOCK)
}

/// Removes what a killed process has left under the first choice for `name`: a regular file, ours or the target's
/// owner's, that no living process holds. Best effort.
pub fn remove_stale(directory: impl AsFd, name: &Path) {
    let temporary = first_name(name);
    if let Ok(found) = rustix::fs::statat(&directory, &temporary, AtFlags::SYMLINK_NOFOLLOW) {
        if is_ours(&directory, name, &found) {
            let _ = remove_unused(&directory, &temporary);
        }
    }
}

fn is_ours(directory: impl AsFd, name: &Path, found: &Stat) -> bool {
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return false;
    }
    // A complete one has its target's owner already.
    found.st_uid == rustix::process::geteuid().as_raw()
        || rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|target| target.st_uid == found.st_uid)
}

/// The name is removed under the lock of its file, which whoever removes it must hold: between the second look and
/// the removal it cannot come to mean another file.
fn remove_unused(directory: impl AsFd, temporary: &Path) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = retry_on_intr(|| rustix::fs::openat(&directory, temporary, flags, Mode::empty()))?;
    retry_on_intr(|| rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive))?;
    if stands_at(&file, &directory, temporary) {
        rustix::fs::unlinkat(&directory, temporary, AtFlags::empty())?;
    }
    Ok(())
}

/// Whether a new file that is marked has kept its name until then.
pub fn has_kept_its_name(file: impl AsFd) -> bool {
    rustix::fs::fstat(file).is_ok_and(|stat| stat.st_nlink > 0)
}

/// Whether the name in the directory is that of the open file.
fn stands_at(file: impl AsFd, directory: impl AsFd, name: &Path) -> bool {
    match (Stamp::of(file), Stamp::at(directory, name)) {
        (Ok(ours), Ok(Some(standing))) => ours.same_inode(&standing),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn the_first_name_is_always_the_same() {
        assert_eq!(first_name(Path::new("file")), Path::new(".file.NeRix9"));
        assert_eq!(
            first_name(Path::new(".file")),
            first_name(Path::new(".file"))
        );
        assert_ne!(
            first_name(Path::new("file")),
            first_name(Path::new(".file"))
        );
        let long = "a".repeat(255);
        assert_eq!(first_name(Path::new(&long)).as_os_str().len(), 255);
    }

    #[test]
    fn random_names_are_in_no_directory_of_their_own() -> io::Result<()> {
        let mut names = Vec::new();
        let make = |temporary: &Path| {
            names.push(temporary.to_owned());
            if names.len() < 3 {
                Err(Errno::EXIST)
            } else {
                Ok(())
            }
        };
        let ((), name) = with_random_name(Path::new("file"), make)?;
        assert_eq!(names.last(), Some(&name));
        for name in names {
            assert!(name.to_string_lossy().starts_with(".file."));
            assert_eq!(name.as_os_str().len(), ".file.".len() + RANDOM_CHARACTERS);
        }
        Ok(())
    }

    #[test]
    fn only_what_nobody_holds_is_removed() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let place = File::open(directory.path())?;
        let name = Path::new("file");
        let at = directory.path().join(first_name(name));

        let live = File::create(&at)?;
        assert!(mark(&live));
        remove_stale(&place, name);
        assert!(at.exists());
        drop(live);
        remove_stale(&place, name);
        assert!(!at.exists());

        std::os::unix::fs::symlink("elsewhere", &at)?;
        remove_stale(&place, name);
        assert!(at.is_symlink());
        std::fs::remove_file(&at)?;
        std::fs::create_dir(&at)?;
        remove_stale(&place, name);
        assert!(at.is_dir());

        let alike = directory.path().join(".file.backup");
        std::fs::write(&alike, b"a user's")?;
        remove_stale(&place, name);
        assert!(alike.exists());
        Ok(())
    }
}

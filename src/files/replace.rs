//! Replacing a file as a whole or not at all.
//!
//! The new content is written to a file that has no name where the file system can do that (`O_TMPFILE`): a
//! killed process leaves nothing behind, and nobody watching the directory sees a half file. It gets its
//! temporary name only when it is complete, a moment before the rename; what a process that was killed in that
//! moment has left is removed by the next replacement of the same file. All names are used relative to
//! directories that were opened once, so that a directory exchanged for a symbolic link meanwhile changes
//! nothing outside.

use super::copy::{GoOn, RangeCopier};
use super::path::split;
use super::regular::Stamp;
use super::temporary::{first_name, has_kept_its_name, mark, remove_stale, with_random_name};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags};
use rustix::io::{Errno, retry_on_intr};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What must stand at the target's name when the new file takes it.
#[derive(Debug, Clone, Copy)]
pub enum Expected {
    /// Nothing: the file is new.
    Nothing,
    /// This very version of the old file.
    Version(Stamp),
}

/// The new content of a file, on its way to the file's name. Dropped without [`NewFile::publish`], it is gone.
#[derive(Debug)]
pub struct NewFile {
    directory: OwnedFd,
    name: PathBuf,
    staged: Staged,
}

/// Where the content is kept until it is complete.
#[derive(Debug)]
struct Staged {
    file: File,
    /// The directory and the name that it stands under, once it has one.
    link: Option<(OwnedFd, PathBuf)>,
}

impl Drop for Staged {
    fn drop(&mut self) {
        if let Some((directory, name)) = &self.link {
            let _ = rustix::fs::unlinkat(directory, name, AtFlags::empty());
        }
    }
}

impl NewFile {
    /// Starts the new content of `target`, readable by its owner only. It is staged in `temp_dir` where one is
    /// given and usable, else beside the target; `unusable` is told why.
    ///
    /// # Errors
    /// What opening the target's directory or making a file says; nothing has been made then.
    pub fn create(
        target: &Path,
        temp_dir: Option<&Path>,
        unusable: &mut dyn FnMut(&Path, &io::Error),
    ) -> io::Result<Self> {
        let (directory, name) = split(target.as_os_str().as_bytes());
        if name.is_empty() {
            return Err(Errno::NOENT.into());
        }
        let directory = match directory {
            b"" => Path::new("."),
            directory => Path::new(OsStr::from_bytes(directory)),
        };
        let name = PathBuf::from(OsStr::from_bytes(name));
        let directory = open_directory(directory)?;
        remove_stale(&directory, &name);
        let elsewhere = temp_dir.and_then(|place| {
            Staged::elsewhere(place, &name)
                .inspect_err(|error| unusable(place, error))
                .ok()
        });
        let staged = match elsewhere {
            Some(staged) => staged,
            None => Staged::create(directory.try_clone()?, &name)?,
        };
        Ok(Self {
            directory,
            name,
            staged,
        })
    }

    /// The file to write to, open for reading and writing.
    pub fn file(&self) -> &File {
        &self.staged.file
    }

    /// Puts the complete file in the target's place. With `sync`, content and directory are on the disk when
    /// this returns.
    ///
    /// # Errors
    /// `EAGAIN` where something else than `expected` stands there; what syncing, copying from another file system
    /// or renaming says. The old file is untouched then, and the new one gone; but where syncing the directory
    /// is what failed, the new file is in place and may not outlast a power failure.
    pub fn publish(mut self, expected: Expected, sync: bool, go_on: GoOn<'_>) -> io::Result<()> {
        if sync {
            retry_on_intr(|| rustix::fs::fsync(&self.staged.file))?;
        }
        if !self.try_publish(expected)? {
            // Staged on another file system, or unnamed with no way to give it a name: once more beside the target.
            self.staged = self
                .staged
                .copied_to(&self.directory, &self.name, sync, go_on)?;
            if !self.try_publish(expected)? {
                return Err(Errno::XDEV.into());
            }
        }
        if sync {
            sync_directory(&self.directory)?;
        }
        Ok(())
    }

    /// `Ok(false)` where the staged file cannot get to the target's directory.
    fn try_publish(&mut self, expected: Expected) -> io::Result<bool> {
        let result = match expected {
            Expected::Nothing => self.publish_new(),
            Expected::Version(stamp) => self.publish_over(&stamp),
        };
        match result {
            Ok(()) => Ok(true),
            Err(Errno::XDEV) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn publish_new(&mut self) -> Result<(), Errno> {
        let result = match &self.staged.link {
            None => link_unnamed(&self.staged.file, &self.directory, &self.name),
            Some((from, temporary)) => {
                rename_to_nothing(from, temporary, &self.directory, &self.name)
            }
        };
        match result {
            Ok(()) => {
                self.staged.link = None;
                Ok(())
            }
            Err(Errno::EXIST) => Err(Errno::AGAIN),
            Err(error) => Err(error),
        }
    }

    fn publish_over(&mut self, old: &Stamp) -> Result<(), Errno> {
        if self.staged.link.is_none() {
            self.staged.link_beside(&self.directory, &self.name)?;
        }
        let Some((from, temporary)) = &self.staged.link else {
            return Err(Errno::NOENT);
        };
        let standing = Stamp::at(&self.directory, &self.name).map_err(errno)?;
        if standing.as_ref() != Some(old) {
            return Err(Errno::AGAIN);
        }
        rustix::fs::renameat(from, temporary, &self.directory, &self.name)?;
        self.staged.link = None;
        Ok(())
    }
}

impl Staged {
    fn elsewhere(place: &Path, name: &Path) -> io::Result<Self> {
        let place = open_directory(place)?;
        remove_stale(&place, name);
        Self::create(place, name)
    }

    fn create(directory: OwnedFd, name: &Path) -> io::Result<Self> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        match retry_on_intr(|| rustix::fs::openat(&directory, ".", flags, Mode::RUSR | Mode::WUSR))
        {
            Ok(descriptor) => Ok(Self {
                file: File::from(descriptor),
                link: None,
            }),
            // The file system (or an old kernel: EISDIR) does not know files without a name.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => Self::named(directory, name),
            Err(error) => Err(error.into()),
        }
    }

    /// A new file with a temporary name from the start.
    fn named(directory: OwnedFd, name: &Path) -> io::Result<Self> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let create = |temporary: &Path| {
            retry_on_intr(|| {
                rustix::fs::openat(&directory, temporary, flags, Mode::RUSR | Mode::WUSR)
            })
        };
        let first = first_name(name);
        let (file, temporary) = match create(&first) {
            Ok(file) if mark(&file) && has_kept_its_name(&file) => (file, first),
            Ok(lost) => {
                // Until it was marked, another process could take it for a stale one.
                drop(lost);
                remove_stale(&directory, name);
                with_random_name(name, create)?
            }
            Err(_) => with_random_name(name, create)?,
        };
        Ok(Self {
            file: File::from(file),
            link: Some((directory, temporary)),
        })
    }

    /// Gives an unnamed file a temporary name in the target's directory.
    fn link_beside(&mut self, directory: &OwnedFd, name: &Path) -> Result<(), Errno> {
        let place = directory.try_clone().map_err(errno)?;
        let first = first_name(name);
        mark(&self.file);
        let temporary = match link_unnamed(&self.file, directory, &first) {
            Ok(()) => first,
            Err(Errno::EXIST) => {
                let link = |temporary: &Path| link_unnamed(&self.file, directory, temporary);
                with_random_name(name, link).map_err(errno)?.1
            }
            Err(error) => return Err(error),
        };
        self.link = Some((place, temporary));
        Ok(())
    }

    /// A copy of the complete file, with owner, mode and attributes, under a temporary name beside the target.
    fn copied_to(
        &self,
        directory: &OwnedFd,
        name: &Path,
        sync: bool,
        go_on: GoOn<'_>,
    ) -> io::Result<Self> {
        let copy = Self::named(directory.try_clone()?, name)?;
        let length = Stamp::of(&self.file)?.size();
        RangeCopier::to(&copy.file).append(&self.file, 0, length, go_on)?;
        super::carry_over(
            &self.file,
            &copy.file,
            super::Ownership::default(),
            &mut |_, _| {},
        );
        if sync {
            retry_on_intr(|| rustix::fs::fsync(&copy.file))?;
        }
        Ok(copy)
    }
}

fn open_directory(path: &Path) -> io::Result<OwnedFd> {
    // O_PATH: a directory that may be written to and searched need not be readable.
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(retry_on_intr(|| {
        rustix::fs::open(path, flags, Mode::empty())
    })?)
}

fn sync_directory(directory: &OwnedFd) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let readable = retry_on_intr(|| rustix::fs::openat(directory, ".", flags, Mode::empty()))?;
    Ok(retry_on_intr(|| rustix::fs::fsync(&readable))?)
}

/// Links an unnamed file to a name that must be free; `EXDEV` where there is no way to.
fn link_unnamed(file: &File, directory: impl AsFd, name: &Path) -> Result<(), Errno> {
    // Needs CAP_DAC_READ_SEARCH on kernels before 6.10 ...
    match rustix::fs::linkat(file, "", &directory, name, AtFlags::EMPTY_PATH) {
        Err(Errno::NOENT | Errno::PERM | Errno::INVAL) => {}
        result => return result,
    }
    // ... and this needs /proc.
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    match rustix::fs::linkat(CWD, path, &directory, name, AtFlags::SYMLINK_FOLLOW) {
        Err(Errno::NOENT | Errno::PERM | Errno::INVAL) => Err(Errno::XDEV),
        result => result,
    }
}

/// Renames to a name that must be free.
fn rename_to_nothing(
    from: &OwnedFd,
    temporary: &Path,
    directory: &OwnedFd,
    name: &Path,
) -> Result<(), Errno> {
    match rustix::fs::renameat_with(from, temporary, directory, name, RenameFlags::NOREPLACE) {
        // A file system without the flag: look first, which leaves a moment.
        Err(Errno::INVAL | Errno::NOSYS) => match Stamp::at(directory, name).map_err(errno)? {
            Some(_) => Err(Errno::EXIST),
            None => rustix::fs::renameat(from, temporary, directory, name),
        },
        result => result,
    }
}

fn errno(error: io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;

    fn listing(directory: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(directory)? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    }

    fn version(path: &Path) -> io::Result<Expected> {
        Ok(Expected::Version(Stamp::of(File::open(path)?)?))
    }

    #[test]
    fn a_new_file_appears_whole_and_private() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let target = directory.path().join("new");
        let new = NewFile::create(&target, None, &mut |_, _| ())?;
        new.file().write_all(b"content")?;
        assert!(listing(directory.path())?.is_empty());
        new.publish(Expected::Nothing, true, &mut || Ok(()))?;
        assert_eq!(std::fs::read(&target)?, b"content");
        assert_eq!(target.metadata()?.permissions().mode() & 0o7777, 0o600);
        assert_eq!(listing(directory.path())?, ["new"]);
        Ok(())
    }

    #[test]
    fn an_old_file_is_replaced() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let target = directory.path().join("file");
        std::fs::write(&target, b"old")?;
        let new = NewFile::create(&target, None, &mut |_, _| ())?;
        new.file().write_all(b"new")?;
        new.publish(version(&target)?, false, &mut || Ok(()))?;
        assert_eq!(std::fs::read(&target)?, b"new");
        assert_eq!(listing(directory.path())?, ["file"]);
        Ok(())
    }

    #[test]
    fn what_came_in_between_is_kept() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let target = directory.path().join("file");
        let again = Some(Errno::AGAIN.raw_os_error());

        let new = NewFile::create(&target, None, &mut |_, _| ())?;
        std::fs::write(&target, b"appeared")?;
        let error = new.publish(Expected::Nothing, false, &mut || Ok(())).err();
        assert_eq!(error.and_then(|error| error.raw_os_error()), again);

        let expected = version(&target)?;
        let new = NewFile::create(&target, None, &mut |_, _| ())?;
        std::fs::write(&target, b"overwritten meanwhile")?;
        let error = new.publish(expected, false, &mut || Ok(())).err();
        assert_eq!(error.and_then(|error| error.raw_os_error()), again);

        assert_eq!(std::fs::read(&target)?, b"overwritten meanwhile");
        assert_eq!(listing(directory.path())?, ["file"]);
        Ok(())
    }

    #[test]
    fn named_staging_leaves_nothing_either() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let target = directory.path().join("file");
        let place = open_directory(directory.path())?;
        let staged = |content: &[u8]| -> io::Result<NewFile> {
            let staged = Staged::named(place.try_clone()?, Path::new("file"))?;
            (&staged.file).write_all(content)?;
            Ok(NewFile {
                directory: place.try_clone()?,
                name: "file".into(),
                staged,
            })
        };
        drop(staged(b"dropped")?);
        assert!(listing(directory.path())?.is_empty());
        staged(b"first")?.publish(Expected::Nothing, false, &mut || Ok(()))?;
        assert!(
            staged(b"x")?
                .publish(Expected::Nothing, false, &mut || Ok(()))
                .is_err()
        );
        staged(b"second")?.publish(version(&target)?, false, &mut || Ok(()))?;
        assert_eq!(std::fs::read(&target)?, b"second");
        assert_eq!(listing(directory.path())?, ["file"]);
        Ok(())
    }

    #[test]
    fn staging_on_another_file_system_ends_in_a_rename_too() -> io::Result<()> {
        let elsewhere = Path::new("/dev/shm");
        let directory = tempfile::tempdir()?;
        let target = directory.path().join("file");
        let new = NewFile::create(&target, Some(elsewhere), &mut |_, _| ())?;
        new.file().write_all(b"far away")?;
        new.publish(Expected::Nothing, true, &mut || Ok(()))?;
        let new = NewFile::create(&target, Some(elsewhere), &mut |_, _| ())?;
        new.file().write_all(b"far away again")?;
        new.publish(version(&target)?, false, &mut || Ok(()))?;
        assert_eq!(std::fs::read(&target)?, b"far away again");
        assert_eq!(listing(directory.path())?, ["file"]);
        Ok(())
    }

    #[test]
    fn a_missing_directory_is_an_error_and_nothing_is_left() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let error = NewFile::create(&directory.path().join("no/file"), None, &mut |_, _| ()).err();
        let errno = error.and_then(|error| error.raw_os_error());
        assert_eq!(errno, Some(Errno::NOENT.raw_os_error()));
        let unusable = Some(Path::new("/nonexistent"));
        let new = NewFile::create(&directory.path().join("file"), unusable, &mut |_, _| ())?;
        new.publish(Expected::Nothing, false, &mut || Ok(()))
    }
}

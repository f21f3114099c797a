//! Opening a file whose content may be transferred, and recognising it later.

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::{Errno, retry_on_intr};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

/// What tells one version of a file from another: device, inode, size, and the times of its last change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, u64),
    changed: (i64, u64),
}

// The C types behind `Stat` differ between architectures.
#[allow(clippy::unnecessary_cast)]
impl Stamp {
    fn new(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as u64),
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as u64),
        }
    }

    /// The stamp of an open file.
    ///
    /// # Errors
    /// As `fstat`.
    pub fn of(file: impl AsFd) -> io::Result<Self> {
        Ok(Self::new(&rustix::fs::fstat(file)?))
    }

    /// The stamp of a name in a directory, `None` where there is none. A symbolic link is not followed.
    ///
    /// # Errors
    /// As `fstatat`.
    pub fn at(directory: impl AsFd, name: &Path) -> io::Result<Option<Self>> {
        match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(Self::new(&stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The file's size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Whether it is the same file, in whatever state.
    pub fn same_inode(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// Whether the content may be another: as equality, but blind to changes of owner, mode and links.
    pub fn same_content(&self, other: &Self) -> bool {
        (self.device, self.inode, self.size, self.modified)
            == (other.device, other.inode, other.size, other.modified)
    }
}

/// An open regular file and its stamp from when it was opened.
#[derive(Debug)]
pub struct Regular {
    /// Open for reading.
    pub file: File,
    /// The version that was opened.
    pub stamp: Stamp,
}

/// Opens a regular file for reading; `None` where there is no such file.
///
/// Never follows a symbolic link in the last component and never waits for a FIFO's other end.
///
/// # Errors
/// `ELOOP` for a symbolic link, `EISDIR` for a directory, `EINVAL` for anything else that is not a regular
/// file, and what `open` says.
pub fn open_regular(path: &Path) -> io::Result<Option<Regular>> {
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty())) {
        Ok(descriptor) => File::from(descriptor),
        Err(Errno::NOENT) => return Ok(None),
        // What open says of a socket.
        Err(Errno::NXIO) => return Err(Errno::INVAL.into()),
        Err(error) => return Err(error.into()),
    };
    let stat = rustix::fs::fstat(&file)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(Some(Regular {
            file,
            stamp: Stamp::new(&stat),
        })),
        FileType::Directory => Err(Errno::ISDIR.into()),
        _ => Err(Errno::INVAL.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    fn errno(path: &Path) -> Option<i32> {
        open_regular(path)
            .err()
            .and_then(|error| error.raw_os_error())
    }

    #[test]
    fn only_regular_files_are_opened() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let at = |name: &str| directory.path().join(name);
        std::fs::write(at("file"), b"abc")?;
        symlink("file", at("link"))?;
        symlink("nowhere", at("dangling"))?;
        rustix::fs::mknodat(
            rustix::fs::CWD,
            at("fifo"),
            FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )?;
        let _socket = UnixListener::bind(at("socket"))?;

        let opened = open_regular(&at("file"))?;
        assert_eq!(opened.map(|regular| regular.stamp.size()), Some(3));
        assert!(open_regular(&at("missing"))?.is_none());
        assert!(open_regular(Path::new(""))?.is_none());
        let raw = |error: Errno| Some(error.raw_os_error());
        assert_eq!(errno(&at("link")), raw(Errno::LOOP));
        assert_eq!(errno(&at("dangling")), raw(Errno::LOOP));
        assert_eq!(errno(&at("fifo")), raw(Errno::INVAL));
        assert_eq!(errno(&at("socket")), raw(Errno::INVAL));
        assert_eq!(errno(Path::new("/dev/null")), raw(Errno::INVAL));
        assert_eq!(errno(directory.path()), raw(Errno::ISDIR));
        assert_eq!(errno(&at(&"x".repeat(5000))), raw(Errno::NAMETOOLONG));
        assert_eq!(errno(&at("file/below")), raw(Errno::NOTDIR));
        Ok(())
    }
}

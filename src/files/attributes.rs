//! What a replaced file hands on to the new one: owner, mode, ACL, extended attributes, security label.

use rustix::fs::{Gid, Mode, Uid, XattrFlags};
use rustix::io::Errno;
use std::ffi::CStr;
use std::fs::File;
use std::io;

/// The access control list, as the kernel names it.
const ACL: &CStr = c"system.posix_acl_access";

/// Which of owner and group are left alone (csync2's `ignore uid` and `ignore gid`).
#[derive(Debug, Clone, Copy, Default)]
pub struct Ownership {
    /// The new file keeps the uid it was made with.
    pub ignore_uid: bool,
    /// The new file keeps the gid it was made with.
    pub ignore_gid: bool,
}

/// Gives `new` what `old` has, on the open descriptors, so that no path can be exchanged in between.
/// Best effort: each thing that cannot be set is handed to `report` (what, why), and the rest is set.
/// A file system without ACLs or attributes is no reason to report.
pub fn carry_over(
    old: &File,
    new: &File,
    ownership: Ownership,
    report: &mut dyn FnMut(&str, io::Error),
) {
    let stat = match rustix::fs::fstat(old) {
        Ok(stat) => stat,
        Err(error) => return report("reading the attributes", error.into()),
    };
    let uid = (!ownership.ignore_uid).then(|| Uid::from_raw(stat.st_uid));
    let gid = (!ownership.ignore_gid).then(|| Gid::from_raw(stat.st_gid));
    if let Err(error) = rustix::fs::fchown(new, uid, gid) {
        report("setting the owner", error.into());
    }
    if let Err(error) = carry_over_attributes(old, new, report) {
        if error != Errno::OPNOTSUPP {
            report("reading the extended attributes", error.into());
        }
    }
    // After the owner, since chown takes the setuid and setgid bits away; and after the ACL, whose mask the
    // group's bits of the old mode are.
    if let Err(error) = rustix::fs::fchmod(new, Mode::from_raw_mode(stat.st_mode)) {
        report("setting the mode", error.into());
    }
}

fn carry_over_attributes(
    old: &File,
    new: &File,
    report: &mut dyn FnMut(&str, io::Error),
) -> Result<(), Errno> {
    let names = listed(old)?;
    if !names
        .split(|byte| *byte == 0)
        .any(|name| name == ACL.to_bytes())
    {
        // The new file has one where its directory has a default.
        match rustix::fs::fremovexattr(new, ACL) {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NODATA) => {}
            Err(error) => report("removing the directory's default ACL", error.into()),
        }
    }
    for name in names.split_inclusive(|byte| *byte == 0) {
        let Ok(name) = CStr::from_bytes_with_nul(name) else {
            continue;
        };
        if !is_carried(name) {
            continue;
        }
        let copied = value(old, name)
            .and_then(|value| rustix::fs::fsetxattr(new, name, &value, XattrFlags::empty()));
        match copied {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NODATA) => {}
            Err(error) => report(&format!("setting {}", name.to_string_lossy()), error.into()),
        }
    }
    Ok(())
}

/// ACL, security label and capabilities, and the user's own. Not the sums that integrity measurement keeps
/// of the old content, and nothing of the system's or of trusted daemons' private name spaces.
fn is_carried(name: &CStr) -> bool {
    if name == ACL {
        return true;
    }
    match name.to_bytes() {
        b"security.ima" | b"security.evm" => false,
        name => name.starts_with(b"user.") || name.starts_with(b"security."),
    }
}

fn listed(file: &File) -> Result<Vec<u8>, Errno> {
    grown(|buffer| rustix::fs::flistxattr(file, buffer))
}

fn value(file: &File, name: &CStr) -> Result<Vec<u8>, Errno> {
    grown(|buffer| rustix::fs::fgetxattr(file, name, buffer))
}

/// Calls with a larger buffer until the answer fits; 64 KiB is the kernel's own limit for both questions.
fn grown(mut call: impl FnMut(&mut [u8]) -> Result<usize, Errno>) -> Result<Vec<u8>, Errno> {
    let mut buffer = vec![0; 256];
    loop {
        match call(&mut buffer) {
            Ok(length) => {
                buffer.truncate(length);
                return Ok(buffer);
            }
            Err(Errno::RANGE) if buffer.len() < 64 * 1024 => buffer.resize(64 * 1024, 0),
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    #[test]
    fn mode_and_attributes_are_carried() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let old = File::create(directory.path().join("old"))?;
        let new = File::create(directory.path().join("new"))?;
        old.set_permissions(std::fs::Permissions::from_mode(0o4751))?;
        let has_attributes =
            rustix::fs::fsetxattr(&old, "user.colour", b"blue", XattrFlags::empty()).is_ok();
        let mut reports = Vec::new();
        carry_over(&old, &new, Ownership::default(), &mut |what, why| {
            reports.push(format!("{what}: {why}"));
        });
        assert_eq!(reports, Vec::<String>::new());
        assert_eq!(new.metadata()?.mode() & 0o7777, 0o4751);
        if has_attributes {
            assert_eq!(value(&new, c"user.colour")?, b"blue");
        }
        Ok(())
    }
}

//! Files without a name, for what must be kept and has no place in a synchronised directory.

use std::fs::File;
use std::io;
use std::path::Path;

/// A new, empty, unnamed file in the first of these places that takes one: `configured` (csync2's `tempdir`),
/// `TMPDIR`, `/tmp`. Never beside the data: a source directory is not written to.
///
/// # Errors
/// That of the last place.
pub fn work_file(configured: Option<&Path>) -> io::Result<File> {
    let fallback = std::env::temp_dir();
    let places = configured
        .into_iter()
        .chain([fallback.as_path(), Path::new("/tmp")]);
    let mut result = Err(io::ErrorKind::NotFound.into());
    for place in places {
        result = tempfile::tempfile_in(place);
        if result.is_ok() {
            break;
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek, Write};

    #[test]
    fn an_unusable_place_is_passed_over() -> io::Result<()> {
        let mut file = work_file(Some(Path::new("/nonexistent")))?;
        file.write_all(b"abc")?;
        file.rewind()?;
        let mut content = String::new();
        file.read_to_string(&mut content)?;
        assert_eq!(content, "abc");
        Ok(())
    }

    #[test]
    fn nothing_is_visible() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let _file = work_file(Some(directory.path()))?;
        assert_eq!(std::fs::read_dir(directory.path())?.count(), 0);
        Ok(())
    }
}

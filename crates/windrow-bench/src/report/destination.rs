//! The check of output files before the work of a command begins.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use windrow::{Error, Result};

/// Checks that a write of `path` is possible and that it is none of the `sources`, which the command reads or
/// appends to. The check changes nothing: it does not leave a new file.
///
/// # Errors
/// `InvalidArgument` for one of `sources`; an error of the file system.
pub fn check_destination<'a>(
    path: &Path,
    sources: impl IntoIterator<Item = &'a PathBuf>,
) -> Result<()> {
    let own = resolved(path);
    if sources.into_iter().any(|source| resolved(source) == own) {
        let message = format!(
            "{} is also an input and would be overwritten",
            path.display()
        );
        return Err(Error::invalid_argument(message));
    }
    // Also at the end of a dangling link.
    let is_new = fs::metadata(path).is_err();
    let opened = OpenOptions::new().create(true).append(true).open(path);
    drop(opened.map_err(|error| Error::io("write", path, error))?);
    if is_new {
        fs::remove_file(resolved(path)).map_err(|error| Error::io("remove", path, error))?;
    }
    Ok(())
}

/// The path without links, also of a missing file.
fn resolved(path: &Path) -> PathBuf {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let whole = fs::canonicalize(path).or_else(|error| {
        let name = path.file_name().ok_or(error)?;
        Ok(fs::canonicalize(folder)?.join(name))
    });
    whole.unwrap_or_else(|_: std::io::Error| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_no_destination_whatever_its_path_and_nothing_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("deeper")).unwrap();
        fs::write(at("there"), "text").unwrap();
        for (source, same) in [("there", "deeper/../there"), ("new", "deeper/../new")] {
            let refused = check_destination(&at(same), &[at("other"), at(source)]).unwrap_err();
            assert!(refused.to_string().contains("overwritten"), "{refused}");
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(at("there"), at("link")).unwrap();
            check_destination(&at("link"), &[at("there")]).unwrap_err();
            std::os::unix::fs::symlink(at("new"), at("dangling")).unwrap();
            check_destination(&at("dangling"), &[]).unwrap();
            assert!(at("dangling").is_symlink() && !at("new").exists());
        }
        for name in ["there", "new"] {
            check_destination(&at(name), &Some(at("other"))).unwrap();
        }
        assert_eq!(fs::read_to_string(at("there")).unwrap(), "text");
        assert!(!at("new").exists());
        let nowhere = check_destination(&at("no/folder"), &[]).unwrap_err();
        assert_eq!(nowhere.kind(), windrow::ErrorKind::Io);
    }
}

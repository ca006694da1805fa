//! What the interfaces share of backups.
//!
//! Concurrency: as the backups.

use std::time::SystemTime;

use windrow::backup::{BackupInfo, Backups};
use windrow::{Error, ErrorKind, Result};

/// `number`, or that of the newest backup.
///
/// # Errors
/// `NotFound` if there is none; `Io`.
pub fn number_or_newest(backups: &Backups, number: Option<u64>) -> Result<u64> {
    if let Some(number) = number {
        return Ok(number);
    }
    let newest = backups.newest()?;
    newest.ok_or_else(|| Error::new(ErrorKind::NotFound, "there are no backups"))
}

/// When the backup was made, in milliseconds since 1970; 0 for a time before.
pub fn created_milliseconds(backup: &BackupInfo) -> u64 {
    let since = backup.created.duration_since(SystemTime::UNIX_EPOCH);
    let since = since.map_or(0, |since| since.as_millis());
    u64::try_from(since).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use windrow::{Db, Options};

    use super::*;

    #[test]
    fn the_newest_backup_stands_for_no_number() {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(folder.path().join("db"), Options::default()).unwrap();
        let backups = Backups::open(folder.path().join("backups")).unwrap();
        let none = number_or_newest(&backups, None).unwrap_err();
        assert_eq!(none.kind(), ErrorKind::NotFound);
        db.backup(&backups).unwrap();
        db.backup(&backups).unwrap();
        assert_eq!(number_or_newest(&backups, None).unwrap(), 2);
        assert_eq!(number_or_newest(&backups, Some(1)).unwrap(), 1);
        let listed = backups.list().unwrap();
        let info = listed[0].backup.as_ref().unwrap();
        assert!(created_milliseconds(info) > 1_600_000_000_000);
    }
}

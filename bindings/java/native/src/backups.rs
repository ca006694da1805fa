//! The methods of backups in a folder.
//!
//! Concurrency: any thread.

use std::time::Duration;

use jni::objects::JByteArray;
use jni::sys::jlong;
use windrow::backup::{Backups, Purge};
use windrow::{Db, Error};

use crate::arguments::Bytes;
use crate::handles::Handle;
use crate::handles::method;
use crate::packed::texts;

fn number(number: u64) -> Result<jlong, Error> {
    jlong::try_from(number).map_err(|_| Error::invalid_argument("the number is too large"))
}

// The number of the new backup.
method!(Java_io_windrow_Native_backup, env, db: Handle<Db>, folder: JByteArray<'local>, bytes_per_second: jlong; jlong, {
    let folder = Bytes::new(env, &folder)?;
    let rate = u64::try_from(bytes_per_second).map_err(|_| Error::invalid_argument("the rate is negative"))?;
    let backups = Backups::open(folder.text()?)?.with_rate(rate);
    Ok(number(db.backup(&backups)?.number)?)
});

// For each backup six numbers: its own, the time in milliseconds since 1970, files, bytes, its own bytes, and 1 if it can be
// used.
method!(Java_io_windrow_Native_listBackups, env, folder: JByteArray<'local>; JByteArray<'local>, {
    let folder = Bytes::new(env, &folder)?;
    let mut packed = Vec::new();
    for listed in Backups::open_read_only(folder.text()?)?.list()? {
        let fields = match &listed.backup {
            Ok(info) => {
                let created = info.created.duration_since(std::time::SystemTime::UNIX_EPOCH);
                let created = created.unwrap_or_default().as_millis();
                let created = u64::try_from(created).unwrap_or(u64::MAX);
                [listed.number, created, info.files, info.bytes, info.own_bytes, 1]
            }
            Err(_) => [listed.number, 0, 0, 0, 0, 0],
        };
        for field in fields {
            packed.extend_from_slice(&number(field)?.to_le_bytes());
        }
    }
    Ok(env.byte_array_from_slice(&packed)?)
});

// What is damaged, of one backup, or of all for -1.
method!(Java_io_windrow_Native_verifyBackups, env, folder: JByteArray<'local>, backup: jlong; JByteArray<'local>, {
    let folder = Bytes::new(env, &folder)?;
    let checked = Backups::open_read_only(folder.text()?)?.verify(u64::try_from(backup).ok())?;
    let damage = texts(checked.damage.iter().map(|damage| damage.error.to_string()))?;
    Ok(env.byte_array_from_slice(&damage)?)
});

method!(Java_io_windrow_Native_restoreBackup, env, folder: JByteArray<'local>, backup: jlong, target: JByteArray<'local>; (), {
    let (folder, target) = (Bytes::new(env, &folder)?, Bytes::new(env, &target)?);
    let backup = u64::try_from(backup).map_err(|_| Error::invalid_argument("the number is negative"))?;
    Ok(Backups::open_read_only(folder.text()?)?.restore(backup, target.text()?)?)
});

// Keeps the newest ones, removes those that are older than so many milliseconds, or removes one.
method!(Java_io_windrow_Native_purgeBackups, env, folder: JByteArray<'local>, kind: i32, argument: jlong; (), {
    let folder = Bytes::new(env, &folder)?;
    let argument = u64::try_from(argument).map_err(|_| Error::invalid_argument("the number is negative"))?;
    let purge = match kind {
        0 => Purge::KeepNewest(usize::try_from(argument).unwrap_or(usize::MAX)),
        1 => Purge::OlderThan(Duration::from_millis(argument)),
        _ => Purge::Backup(argument),
    };
    drop(Backups::open(folder.text()?)?.purge(purge)?);
    Ok(())
});

//! A database from a backup.
//!
//! 1. Read the manifest, and see that all pieces are there. Nothing is written before.
//! 2. Write each file from its pieces, which are checked on the way, and sync it.
//! 3. Begin a new manifest with the state of the backup, `CURRENT` last.
//!
//! I1. `CURRENT` exists only after all other files are durable. Before that, the folder is no database.
//! I2. If changes follow, the folder has the mark of an unfinished database before `CURRENT`, and no open accepts it.
//!
//! Concurrency: one thread, under the lock of the folder.

use std::path::Path;
use std::sync::Arc;

use super::manifest::BackupManifest;
use super::names::Piece;
use super::objects::get_piece;
use super::store::BackupStore;
use super::transfer::{BackupPhase, Meter, pass_all};
use crate::base::{FileNumber, Result};
use crate::manifest::{ManifestStore, NewFolder, put_mark};
use crate::vfs::{FileWriter, Vfs};

/// Writes backup `number`, which `manifest` describes, to the folder `target`. The folder gets a mark if it `is_unfinished`.
pub(super) fn restore(
    store: &dyn BackupStore,
    number: u64,
    manifest: BackupManifest,
    vfs: &Arc<dyn Vfs>,
    (target, is_unfinished): (&Path, bool),
    meter: &mut Meter<'_>,
) -> Result<()> {
    let folder = NewFolder::take(&**vfs, target, "no backup is restored to")?;
    folder.fill(|| {
        if is_unfinished {
            put_mark(&**vfs, target)?; // I2
        }
        meter.begin(BackupPhase::Restoring, manifest.bytes());
        for (name, pieces) in &manifest.files {
            let path = target.join(name.to_string());
            let mut file = FileWriter::create(&**vfs, path)?;
            for &piece in pieces {
                copy_piece(store, piece, &mut file, meter).map_err(|error| {
                    error.context(format_args!("backup {number} is not restored"))
                })?;
            }
            file.sync()?;
        }
        // This syncs the folder, with the names of all files, before `CURRENT`.
        let next = FileNumber(manifest.state.next_id);
        ManifestStore::start(Arc::clone(vfs), target, next, manifest.state).map(drop)
    })
}

fn copy_piece(
    store: &dyn BackupStore,
    piece: Piece,
    file: &mut FileWriter,
    meter: &mut Meter<'_>,
) -> Result<()> {
    pass_all(&mut get_piece(store, piece, meter)?, |bytes| {
        file.put(bytes)?;
        file.judge(false);
        Ok(())
    })
}

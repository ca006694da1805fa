//! The copies of one file in the backups of a store.
//!
//! Concurrency: the caller keeps others from changing the store.

use super::names::Piece;
use super::objects::{Objects, get_piece};
use super::store::BackupStore;
use super::transfer::{BackupPhase, Meter, pass_all};
use crate::base::Result;
use crate::manifest::names::FileName;

/// A longer copy is not read, because a copy is in memory as a whole.
const COPY_BYTES_MAX: u64 = 1 << 30;

/// The newest backup whose copy of `file` satisfies `is_whole`, of those that can be restored.
///
/// # Errors
/// `Io` if the store cannot be listed.
pub(super) fn newest_copy(
    store: &dyn BackupStore,
    file: FileName,
    is_whole: &dyn Fn(Vec<u8>) -> bool,
    meter: &mut Meter<'_>,
) -> Result<Option<u64>> {
    let objects = Objects::list(store)?;
    let mut refused: Vec<Vec<Piece>> = Vec::new();
    for &number in objects.backups.iter().rev() {
        let Ok(mut manifest) = objects.whole_backup(store, number) else {
            continue;
        };
        let Some(pieces) = manifest.files.remove(&file) else {
            continue;
        };
        let lengths = pieces.iter().map(|piece| piece.length);
        let length = lengths.fold(0, u64::saturating_add);
        if length > COPY_BYTES_MAX || refused.contains(&pieces) {
            continue;
        }
        meter.begin(BackupPhase::Verifying, length);
        if read(store, &pieces, meter).is_ok_and(is_whole) {
            return Ok(Some(number));
        }
        refused.push(pieces);
    }
    Ok(None)
}

/// The bytes of `pieces`, checked.
fn read(store: &dyn BackupStore, pieces: &[Piece], meter: &mut Meter<'_>) -> Result<Vec<u8>> {
    let mut copy = Vec::new();
    for &piece in pieces {
        pass_all(&mut get_piece(store, piece, meter)?, |bytes| {
            copy.extend_from_slice(bytes);
            Ok(())
        })?;
    }
    Ok(copy)
}

//! What a damaged manifest still says, for a repair.
//!
//! Concurrency: one thread.

use std::path::Path;

use crate::base::{Error, ErrorKind, FileNumber, Result};
use crate::log::{LogReader, TailAction};
use crate::vfs::Vfs;

use super::edit::{Edit, Record};
use super::names::FileName;
use super::state::ManifestState;

/// What the edits of a manifest say up to the first fault.
#[derive(Debug)]
pub(crate) struct ReadEdits {
    /// `None` if not even the snapshot is sound.
    pub(crate) state: Option<ManifestState>,
    /// Where the edits end.
    pub(crate) end: u64,
    /// Why they end there, unless the manifest may end there.
    pub(crate) fault: Option<Error>,
}

/// Reads the edits of manifest `number` that begin before `until`. A record of an unknown kind is a fault: it does not hide
/// the edits before it.
///
/// # Errors
/// `Corruption` if the file is missing; `Unsupported` for a newer version of the format; `Io`.
pub(crate) fn read_edits(
    vfs: &dyn Vfs,
    directory: &Path,
    number: FileNumber,
    until: u64,
) -> Result<ReadEdits> {
    let name = FileName::Manifest(number).to_string();
    let mut reader = LogReader::open(vfs, directory, &name, number, None)?;
    let mut state = None;
    while let Some(record) = reader.next()? {
        let (offset, payload_offset) = (record.offset, record.payload_offset());
        if offset >= until {
            break;
        }
        let edit =
            Edit::decode(record.payload).map_err(|error| error.in_file(&name, payload_offset));
        let applied = edit.and_then(|edit| {
            let begins = edit.records.first() == Some(&Record::FormatVersion);
            if state.is_none() && !begins {
                let what = "the first record is not a format version";
                return Err(Error::corruption(&name, payload_offset, what));
            }
            let state = state.get_or_insert_with(ManifestState::default);
            let applied = state.apply(&edit);
            applied.map_err(|contradiction| Error::corruption(&name, payload_offset, contradiction))
        });
        match applied {
            Ok(()) => {}
            Err(error)
                if error.kind() == ErrorKind::Unsupported
                    && !Edit::has_known_format(record.payload, offset) =>
            {
                return Err(error);
            }
            Err(error) => {
                // The state is of no use after an edit that does not fit.
                let before = match offset {
                    0 => None,
                    _ => read_edits(vfs, directory, number, offset)?.state,
                };
                return Ok(ReadEdits {
                    state: before,
                    end: offset,
                    fault: Some(error),
                });
            }
        }
    }
    let end = reader.end()?;
    let is_lost = state.is_none() || end.action(false) == TailAction::Corruption;
    Ok(ReadEdits {
        state,
        end: end.offset,
        fault: is_lost.then(|| lost_edits(number, end.offset)),
    })
}

fn lost_edits(number: FileNumber, offset: u64) -> Error {
    let name = FileName::Manifest(number).to_string();
    Error::corruption(&name, offset, "durable edits are lost")
}

//! The binding of a backup to the history of its database.
//!
//! The place of the consumer is durable in the database, so its past up to there is that of the archive. Behind it, the
//! backup has a digest of the records in the log. So a copy of the folder, which has the consumer and goes on with other
//! changes, cannot pass for the database that was archived.
//!
//! Concurrency: reads logs, beside everything else.

use super::Archive;
use crate::backup::Binding;
use crate::backup::archive::RecordsDigest;
use crate::base::{ErrorKind, Result, SequenceNumber};
use crate::engine::Engine;

impl Engine {
    /// The binding of a backup of everything up to `through`, which is durable. `None` without an archive, or if the logs
    /// behind its place cannot be read: they are of no other use to the backup.
    ///
    /// # Errors
    /// `Closed`; `Io`.
    pub(in crate::engine) fn binding(&self, through: SequenceNumber) -> Result<Option<Binding>> {
        let archive = self
            .catalog
            .with_state(|state| Archive::find(&state.changes));
        // Another archiving may have gone on since.
        let Some(archive) = archive.filter(|archive| archive.place <= through) else {
            return Ok(None);
        };
        match self.digest(archive.place, through) {
            Ok(digest) => Ok(Some(Binding {
                history: archive.history,
                place: archive.place,
                digest,
            })),
            Err(error) if matches!(error.kind(), ErrorKind::FellBehind | ErrorKind::Corruption) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The digest of the records behind `from` up to `through`.
    fn digest(&self, from: SequenceNumber, through: SequenceNumber) -> Result<u128> {
        let mut digest = RecordsDigest::default();
        let mut feed = self.changes(from + 1, None)?;
        while feed.position() <= through {
            self.check_cancelled()?;
            let Some((_, record)) = self.next_record_checksum(&mut feed)? else {
                break;
            };
            digest.add(record);
        }
        Ok(digest.finish())
    }
}

//! A new stretch.
//!
//! 1. Put the pieces as they become full.
//! 2. Put the description. From now on the stretch exists.
//!
//! Concurrency: one thread. At most one piece and one item are in memory.

use std::mem;
use std::time::Duration;

use super::items::{Item, RecordsDigest};
use super::stretch::{Note, STRETCH_BYTES_MAX, Stretch};
use crate::backup::creation::BackupReport;
use crate::backup::names::{Piece, StretchName};
use crate::backup::objects::Bytes;
use crate::backup::store::BackupStore;
use crate::base::{Error, ErrorKind, KeyspaceId, Result, SequenceNumber};
use crate::codec::Compression;
use crate::codec::checksum::ContentChecksum;
use crate::codec::compression::Compressor;
use crate::log::batch;

/// A piece ends behind the item with which it has so many bytes.
const PIECE_FROM_BYTES: usize = 4 << 20;

/// A stretch ends behind the item with which its pieces have so many bytes. An interrupted archiving loses less.
const STRETCH_FROM_BYTES: u64 = 64 << 20;

/// What an archiving has done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ArchiveReport {
    /// The archive has every change up to this sequence number.
    pub sequence: SequenceNumber,
    /// The stretches that were written.
    pub stretches: u64,
    /// Their bytes in the store.
    pub copied_bytes: u64,
    /// The newest backup that had to be made: the first one of a history, or one behind a bulk load.
    pub backup: Option<BackupReport>,
}

/// A stretch that is being written.
pub(crate) struct StretchWriter<'a> {
    store: &'a dyn BackupStore,
    stretch: Stretch,
    digest: RecordsDigest,
    /// The items of the next piece.
    items: Vec<u8>,
    compressor: Compressor,
    scratch: Vec<u8>,
    written: u64,
}

impl<'a> StretchWriter<'a> {
    /// Begins with the change `first` of `history`, at the time `moment`.
    pub(crate) fn new(
        store: &'a dyn BackupStore,
        history: u128,
        first: SequenceNumber,
        moment: Duration,
    ) -> Self {
        let milliseconds = u64::try_from(moment.as_millis()).unwrap_or(u64::MAX);
        Self {
            store,
            stretch: Stretch {
                name: StretchName {
                    history,
                    first,
                    last: first - 1,
                },
                moment: Duration::from_millis(milliseconds),
                digest: 0,
                pieces: Vec::new(),
                notes: Vec::new(),
            },
            digest: RecordsDigest::default(),
            items: Vec::new(),
            compressor: Compressor::new(Compression::Lz4),
            scratch: Vec::new(),
            written: 0,
        }
    }

    /// The sequence number of the next change.
    pub(crate) fn next(&self) -> SequenceNumber {
        self.stretch.name.last + 1
    }

    /// Whether it should end.
    pub(crate) fn is_full(&self) -> bool {
        self.stretch.bytes() + self.items.len() as u64 >= STRETCH_FROM_BYTES
    }

    /// Appends a record with entries, whose numbers end with `last`. Returns its bytes.
    pub(crate) fn add_batch(
        &mut self,
        record: u64,
        mut payload: Vec<u8>,
        last: SequenceNumber,
    ) -> Result<u64> {
        batch::pack(&mut payload, 0, &mut self.compressor, &mut self.scratch);
        self.scratch.shrink_to(PIECE_FROM_BYTES);
        let payload = &payload;
        self.add(&Item::Batch { record, payload }, Some(last))
    }

    /// Appends `item`, the numbers of which end with `last`. Returns its bytes.
    pub(crate) fn add(&mut self, item: &Item<'_>, last: Option<SequenceNumber>) -> Result<u64> {
        let before = self.items.len();
        item.encode(&mut self.items);
        let bytes = self.items.len() - before;
        if let Some(record) = item.record() {
            self.digest.add(record);
        }
        self.stretch.name.last = last.unwrap_or(self.stretch.name.last);
        if self.items.len() >= PIECE_FROM_BYTES {
            self.put_piece()?;
        }
        Ok(bytes as u64)
    }

    /// Notes that writes to `keyspace` are missing in the change that ends at `last`.
    pub(crate) fn leave_out(&mut self, keyspace: KeyspaceId, last: SequenceNumber) {
        for note in &mut self.stretch.notes {
            if let Note::LeftOut {
                keyspace: known,
                last: end,
                ..
            } = note
                && *known == keyspace
            {
                *end = last;
                return;
            }
        }
        self.stretch.notes.push(Note::LeftOut {
            keyspace,
            first: last,
            last,
        });
    }

    /// Notes an event.
    pub(crate) fn note(&mut self, note: Note) {
        self.stretch.notes.push(note);
    }

    /// Puts what is left. Returns the last sequence number of the stretch, and the bytes of its objects.
    pub(crate) fn finish(mut self) -> Result<(SequenceNumber, u64)> {
        self.put_piece()?;
        self.stretch.digest = self.digest.finish();
        let name = self.stretch.name;
        let encoded = self.stretch.encode();
        if encoded.len() > STRETCH_BYTES_MAX {
            let message = "too many keyspaces were dropped for one stretch of the archive";
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        assert!(
            Stretch::decode(name, &encoded).as_ref().ok() == Some(&self.stretch),
            "the description of a stretch reads back as it was written"
        );
        self.store.put(&name.to_string(), &mut Bytes(&encoded))?;
        Ok((name.last, self.written + encoded.len() as u64))
    }

    fn put_piece(&mut self) -> Result<()> {
        if self.items.is_empty() {
            return Ok(());
        }
        let items = mem::take(&mut self.items);
        let mut checksum = ContentChecksum::new();
        checksum.update(&items);
        let piece = Piece {
            checksum: checksum.finish(),
            length: items.len() as u64,
        };
        self.store.put(&piece.to_string(), &mut Bytes(&items))?;
        self.stretch.pieces.push(piece);
        self.written += piece.length;
        Ok(())
    }
}

//! The check of the checksums of a table, piece by piece: what a scrub does.
//!
//! Every block is read as [`verify`](super::verify) reads it, and so are index partitions and lists of references. The open
//! of the table checks the other metadata. Order, counts and filters are left to `verify`: damage of a disk shows in the
//! checksums.
//!
//! Concurrency: none; it belongs to one job.

use std::sync::Arc;

use crate::base::expiry::split_expiring;
use crate::base::{Kind, Result};
use crate::vfs::PassBytes;

use super::read::{Blocks, ReadAhead, Segment, Table};
use super::verify::{CheckValue, each_entry};

impl Table {
    /// Checks the blocks that end behind the offset `from`, as long as `pass` wants it, and gives each pointer in them to a
    /// transient log to `check_value`. Returns the offset to go on from; `None` at the end.
    ///
    /// # Errors
    /// The first damage; `Io`; those of `pass` and `check_value`.
    pub(crate) fn check_checksums(
        self: &Arc<Self>,
        from: u64,
        pass: &mut PassBytes<'_>,
        check_value: &mut CheckValue<'_>,
    ) -> Result<Option<u64>> {
        for (number, segment) in self.segments.iter().enumerate() {
            // A step may have ended with the last block: then the references are left.
            if segment.index.data_end() < from {
                continue;
            }
            let mut blocks = ReadAhead::new(self, number);
            for partition in 0..segment.index.partitions() {
                let data = segment.index.data(partition);
                if data.offset + data.length <= from {
                    continue;
                }
                self.partition(segment, partition)?;
                for block in segment.index.blocks_of(partition) {
                    let place = self.block_place(segment, block)?;
                    if place.end() <= from {
                        continue;
                    }
                    blocks.load(place)?;
                    self.check_pointers(segment, &blocks, place.offset, check_value)?;
                    if !pass(place.length as u64)? {
                        return Ok(Some(place.end()));
                    }
                }
            }
            self.log_references_of(segment)?;
        }
        Ok(None)
    }

    /// Gives each pointer to a transient log in the block at `offset` to `check_value`: only with its key is the checksum of
    /// such a value known.
    fn check_pointers(
        &self,
        segment: &Segment,
        blocks: &ReadAhead,
        offset: u64,
        check_value: &mut CheckValue<'_>,
    ) -> Result<()> {
        let mut checked = Ok(());
        let walked = each_entry(blocks, segment, |key, trailer, value| {
            if checked.is_ok() && trailer.lasting().kind() == Kind::TransientPointer {
                let value = if trailer.is_expiring() {
                    split_expiring(value).1
                } else {
                    value
                };
                checked = check_value(key, value);
            }
            Ok(())
        });
        walked.map_err(|what| self.damaged_block(offset, what))?;
        checked
    }
}

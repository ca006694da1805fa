//! Notices that a scan passes the records of value files in their order, and asks ahead in these files.
//!
//! Transient logs are sorted by key, so a scan passes each from front to back, and several of them in turn. A page has
//! many small values: the first waits for the device, the others do not. Only such cold reads are noted here, so that a
//! scan of values in memory pays nothing. The second cold read that follows another closely makes a sequence. Each
//! further one asks for a range behind it, with twice the bytes of the request before.
//!
//! Invariants:
//! - I1. At most three times the bytes that a scan has passed in a file are asked for in advance, and no request is larger than
//!   [`REQUEST_BYTES_MAX`]. The bound of the cursor cannot be found in the file.
//! - I2. At most [`FILES_MAX`] files are remembered. The longest known one is forgotten first.
//!
//! Concurrency: owned by one cursor.

use std::ops::Range;

use crate::base::FileNumber;

/// The bytes of the first request.
const REQUEST_BYTES_MIN: u64 = 8 << 10;

/// The bytes of the largest request.
const REQUEST_BYTES_MAX: u64 = 1 << 20;

/// The most bytes between two reads of one sequence, before its first request: values of other files are newer.
const GAP_BYTES: u64 = 16 << 10;

/// The most files.
const FILES_MAX: usize = 64;

/// The most memory of all files, in bytes.
pub(super) const MEMORY_BYTES: usize = FILES_MAX * size_of::<Sequence>();

/// The reads of one file.
#[derive(Debug)]
struct Sequence {
    file: FileNumber,
    /// The end of what was read or asked for.
    edge: u64,
    /// The bytes of the last request; 0 before the first.
    request_bytes: u64,
}

/// The files that a cursor reads in order.
#[derive(Debug, Default)]
pub(super) struct ValueSequences {
    sequences: Vec<Sequence>,
    /// The place of the next new file, once there are [`FILES_MAX`].
    oldest: usize,
}

impl ValueSequences {
    /// Notes that the read of `record` in `file`, which has `length` bytes of records, waited for the device. Returns
    /// the range to ask for now.
    pub(super) fn note(
        &mut self,
        file: FileNumber,
        record: &Range<u64>,
        length: u64,
    ) -> Option<Range<u64>> {
        let fresh = Sequence {
            file,
            edge: record.end,
            request_bytes: 0,
        };
        let known = self.sequences.iter_mut().find(|known| known.file == file);
        let Some(known) = known else {
            if self.sequences.len() < FILES_MAX {
                self.sequences.push(fresh);
            } else {
                self.sequences[self.oldest] = fresh;
                self.oldest = (self.oldest + 1) % FILES_MAX;
            }
            return None;
        };
        let reach = known.request_bytes.max(GAP_BYTES);
        // A range is asked for halfway through the one before it, which has half its bytes.
        let passing = known.edge.saturating_sub(2 * reach)..=known.edge + reach;
        if !passing.contains(&record.start) {
            *known = fresh;
            return None;
        }
        if record.start + known.request_bytes / 2 < known.edge {
            // The device has still to deliver what was asked for.
            return None;
        }
        known.request_bytes = (2 * known.request_bytes).clamp(REQUEST_BYTES_MIN, REQUEST_BYTES_MAX);
        let from = known.edge.max(record.end);
        known.edge = (from + known.request_bytes).min(length);
        (from < known.edge).then_some(from..known.edge)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: FileNumber = FileNumber(7);

    /// What reads of `offsets` ask for, in a file of `length` bytes of records of 100 bytes.
    fn asked(offsets: impl IntoIterator<Item = u64>, length: u64) -> Vec<Range<u64>> {
        let mut sequences = ValueSequences::default();
        let note = |at| sequences.note(FILE, &(at..at + 100), length);
        offsets.into_iter().filter_map(note).collect()
    }

    #[test]
    fn requests_double_to_the_end_of_the_file() {
        // Every read waits: the device is behind.
        let requests = asked((0..100_000).map(|number| 100 * number), 10_000_000);
        assert_eq!(requests[0], 200..200 + REQUEST_BYTES_MIN);
        for pair in requests.windows(2) {
            assert_eq!(pair[0].end, pair[1].start);
            let bytes = pair[1].end - pair[1].start;
            assert!(
                bytes == 2 * (pair[0].end - pair[0].start)
                    || bytes >= REQUEST_BYTES_MAX
                    || pair[1].end == 10_000_000
            );
            assert!(bytes <= REQUEST_BYTES_MAX);
            // I1
            assert!(pair[1].end <= 200 + 3 * pair[1].start);
        }
        assert_eq!(requests.last().map(|last| last.end), Some(10_000_000));
    }

    #[test]
    fn single_reads_and_jumps_ask_for_nothing() {
        assert!(asked([0], 10_000_000).is_empty());
        assert!(asked([0, 1_000_000, 50_000, 500_000, 900_000], 10_000_000).is_empty());
        // Backwards as well, once a step is longer than the gap.
        assert!(asked((0..100).rev().map(|page| 20_000 * page), 10_000_000).is_empty());
        assert_eq!(asked([0, 1_000_000, 1_004_096], 10_000_000).len(), 1);
    }

    #[test]
    fn reads_of_many_files_in_turn_are_kept_apart() {
        let mut sequences = ValueSequences::default();
        let files = || (0..FILES_MAX as u64).map(FileNumber);
        for file in files() {
            assert_eq!(sequences.note(file, &(0..100), 1 << 30), None);
        }
        for file in files() {
            assert!(sequences.note(file, &(4096..4196), 1 << 30).is_some());
        }
        // I2
        let more = FileNumber(1000);
        assert_eq!(sequences.note(more, &(0..100), 1 << 30), None);
        assert_eq!(sequences.sequences.len(), FILES_MAX);
        assert_eq!(
            sequences.note(FileNumber(0), &(16_000..16_100), 1 << 30),
            None
        );
        assert!(sequences.note(more, &(4096..4196), 1 << 30).is_some());
    }
}

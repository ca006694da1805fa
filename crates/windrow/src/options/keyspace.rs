//! The options of a keyspace: fields, defaults, presets and their checks.

use std::time::Duration;

use super::check::{faults, report};
use super::choices::{FilterAllocation, MediumInPlace, MediumOrder, Preset, SegmentLimit};
use crate::base::Result;
use crate::base::expiry::DEFAULT_TTL_MAX;
use crate::base::limits::SEGMENTS_MAX;
use crate::codec::Compression;

/// Whether a default time to live is sound.
fn is_recordable(ttl: Duration) -> bool {
    let milliseconds = ttl.as_millis();
    (1..=u128::from(DEFAULT_TTL_MAX)).contains(&milliseconds)
        && Duration::from_millis(milliseconds.try_into().unwrap_or(u64::MAX)) == ttl
}

/// Options of one keyspace.
///
/// The database records them. A keyspace that is opened without options has those that it had last. Each option may
/// change at an open or while the database is open ([`Db::keyspace_with`](crate::Db::keyspace_with)). A change
/// rewrites no existing file.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct KeyspaceOptions {
    /// Memory of one memtable, in bytes, from 4 KiB to 64 GiB. Default 64 MiB. Larger: fewer flushes, less rewriting,
    /// more memory and a longer recovery.
    pub memtable_bytes: usize,
    /// Size ratio T of the last two levels, from 2 to 1000. Default 5. Smaller: less rewriting per level, and more
    /// levels.
    pub size_ratio: f64,
    /// Garnering's c, above 0 and at most 1: ratios grow by 1/c towards the shallow levels. Default 0.8. 1 is plain
    /// leveling. Smaller: fewer levels, and more rewriting in the shallow ones.
    pub scaling: f64,
    /// Capacity of level 1 while it is the only level, in bytes of keys and values; at least `file_bytes`. Default 256
    /// MiB. Keep it at least four times `memtable_bytes`. Larger: fewer levels.
    pub base_bytes: u64,
    /// Size at which a compaction closes a table file, in bytes, from 1 KiB to 64 GiB. Default 16 MiB. If the tree
    /// would have more than about 65,536 files, its files are larger. Larger: fewer files and coarser compactions.
    pub file_bytes: u64,
    /// Size of a data block before compression, in bytes, from 128 to 1 MiB. Default 4 KiB. Larger: better compression
    /// and scans. Smaller: cheaper gets and larger indexes.
    pub block_bytes: usize,
    /// Filter bits per key in memory, averaged over all files, from 0 to 64; may have a fraction. Default 10. Larger:
    /// fewer false-positive reads, and more memory. 0 turns filters off.
    pub bits_per_key: f64,
    /// How files divide the filter bits. Default [`FilterAllocation::Monkey`].
    pub filter_allocation: FilterAllocation,
    /// Compression of data blocks and of values in value files (256 bytes to 16 MiB). Log records of this size are then
    /// compressed with LZ4. A block, value or record stays plain if compression saves less than an eighth. Default
    /// none. Set it if disk space matters more than time.
    pub compression: Compression,
    /// Runs in level 0 before a compaction merges them into level 1, from 1 to 64. Default 4. Larger: fewer, larger
    /// compactions and slower reads.
    pub level0_runs: usize,
    /// The most segments of a table file. A compaction appends a segment to a file that has fewer, instead of
    /// rewriting the file. Default [`SegmentLimit::Scaled`]. Larger: less rewriting, and reads visit more segments.
    pub segment_limit: SegmentLimit,
    /// The bound on space amplification: bytes of tables and value files over bytes of live data. Compactions and
    /// garbage collections aim to stay below it. Above 1.05. Infinity: no bound; a value log is then deleted only
    /// when all its values are garbage. Default 1.6. Smaller: less disk, and more rewriting.
    pub max_space_amp: f64,
    /// A value is medium from this many bytes on, key and value together. A flush writes it to a transient log,
    /// unless keys come in order. Compactions move only its pointer, until the level of `medium_in_place`. So it is
    /// rewritten less. Transient logs take space instead: at rest up to 1/`size_ratio` of the data. Default 120. At
    /// most `large_from`, or `u64::MAX` for never. If both are equal, no value is medium. Values of less than 64
    /// bytes always stay in their tables.
    pub medium_from: u64,
    /// A value is large from this many bytes on, key and value together. Its commit writes it once, to a value log,
    /// and compactions move only its pointer. Default 1024; `u64::MAX` for never. Larger: scans follow fewer
    /// pointers, and compactions write more. Values of more than 1 MiB are always large, even with `u64::MAX`.
    pub large_from: u64,
    /// The level from which on compactions write medium values in place. Default [`MediumInPlace::LastLevel`].
    pub medium_in_place: MediumInPlace,
    /// How flushes order medium values. Default [`MediumOrder::Sorted`].
    pub medium_order: MediumOrder,
    /// How long values live that are written without a time to live of their own, in whole milliseconds, from 1 to 2^47,
    /// which is about 4460 years. Default `None`: for ever. It counts for values that are written from now on. A keyspace with a merge operator
    /// has none.
    pub default_ttl: Option<Duration>,
}

impl Default for KeyspaceOptions {
    fn default() -> Self {
        Self {
            memtable_bytes: 64 << 20,
            size_ratio: 5.0,
            scaling: 0.8,
            base_bytes: 256 << 20,
            file_bytes: 16 << 20,
            block_bytes: 4 << 10,
            bits_per_key: 10.0,
            filter_allocation: FilterAllocation::Monkey,
            compression: Compression::None,
            level0_runs: 4,
            segment_limit: SegmentLimit::Scaled,
            max_space_amp: 1.6,
            medium_from: 120,
            large_from: 1024,
            medium_in_place: MediumInPlace::LastLevel,
            medium_order: MediumOrder::Sorted,
            default_ttl: None,
        }
    }
}

impl KeyspaceOptions {
    /// The options of a preset.
    pub fn preset(preset: Preset) -> Self {
        let options = Self::default();
        let in_place = Self {
            segment_limit: SegmentLimit::Fixed(1),
            max_space_amp: f64::INFINITY,
            medium_from: u64::MAX,
            large_from: u64::MAX,
            ..options.clone()
        };
        match preset {
            Preset::Balanced => options,
            Preset::Leveling => Self {
                size_ratio: 10.0,
                scaling: 1.0,
                filter_allocation: FilterAllocation::Uniform,
                ..in_place
            },
            Preset::Autumn => in_place,
            // With the bound on space: it decides when garbage is collected (PX-M8).
            Preset::Parallax => Self {
                size_ratio: 8.0,
                scaling: 1.0,
                bits_per_key: 0.0,
                segment_limit: SegmentLimit::Fixed(1),
                ..options
            },
            Preset::Lsma => Self {
                size_ratio: 10.0,
                scaling: 1.0,
                file_bytes: 2 << 20,
                bits_per_key: 4.0,
                filter_allocation: FilterAllocation::Uniform,
                segment_limit: SegmentLimit::Fixed(SEGMENTS_MAX),
                ..in_place
            },
        }
    }

    /// Checks every field.
    ///
    /// # Errors
    /// `InvalidArgument` that lists every fault.
    pub fn validate(&self) -> Result<()> {
        report(&self.faults())
    }

    /// All faults of the fields.
    pub(super) fn faults(&self) -> Vec<String> {
        let Self {
            size_ratio,
            scaling,
            bits_per_key,
            block_bytes,
            level0_runs,
            max_space_amp,
            medium_from,
            large_from,
            ..
        } = self;
        let segment_limit = match self.segment_limit {
            SegmentLimit::Fixed(limit) => limit,
            SegmentLimit::Scaled => SEGMENTS_MAX,
        };
        faults([
            (
                (2.0..=1000.0).contains(size_ratio),
                format!("size_ratio must be from 2 to 1000, not {size_ratio}"),
            ),
            (
                *scaling > 0.0 && *scaling <= 1.0,
                format!("scaling must be above 0 and at most 1, not {scaling}"),
            ),
            (
                (0.0..=64.0).contains(bits_per_key),
                format!("bits_per_key must be from 0 to 64, not {bits_per_key}"),
            ),
            (
                (4 << 10..=64 << 30).contains(&(self.memtable_bytes as u64)),
                "memtable_bytes must be from 4 KiB to 64 GiB".to_owned(),
            ),
            (
                (128..=1 << 20).contains(block_bytes),
                format!("block_bytes must be from 128 to 1 MiB, not {block_bytes}"),
            ),
            (
                (1 << 10..=64 << 30).contains(&self.file_bytes),
                "file_bytes must be from 1 KiB to 64 GiB".to_owned(),
            ),
            (
                self.base_bytes >= self.file_bytes,
                "base_bytes must be at least file_bytes".to_owned(),
            ),
            (
                (1..=64).contains(level0_runs),
                format!("level0_runs must be from 1 to 64, not {level0_runs}"),
            ),
            (
                (1..=SEGMENTS_MAX).contains(&segment_limit),
                format!("segment_limit must be from 1 to {SEGMENTS_MAX}, not {segment_limit}"),
            ),
            (
                *max_space_amp > 1.05,
                format!("max_space_amp must be above 1.05, not {max_space_amp}"),
            ),
            (
                medium_from <= large_from || *medium_from == u64::MAX,
                format!("medium_from must be at most large_from, {large_from}, not {medium_from}"),
            ),
            (
                self.default_ttl.is_none_or(is_recordable),
                format!(
                    "default_ttl must be whole milliseconds from 1 to 2^47, not {:?}",
                    self.default_ttl
                ),
            ),
            (
                self.compression.is_available(),
                format!("{:?} compression is not in this build", self.compression),
            ),
        ])
    }
}

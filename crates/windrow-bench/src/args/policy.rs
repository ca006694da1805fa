//! The shape of the tree on the command line: Windrow's policy options, for every program that
//! opens or simulates a tree.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use windrow::{
    Error, FilterAllocation, KeyspaceOptions, MediumInPlace, MediumOrder, Options, Preset, Result,
    SegmentLimit,
};

use super::values::{
    FilterAllocationArg, MediumInPlaceArg, MediumOrderArg, PresetArg, parse_bytes, parse_threshold,
};

/// The shape of the tree, its compactions, and the placement of values.
#[derive(Debug, Clone, Default, Args)]
pub struct PolicyArgs {
    /// Named set of default options
    #[arg(long, value_enum, default_value_t)]
    pub preset: PresetArg,

    /// File of default options instead of a preset: lines such as `size_ratio = 4`, in the form that `windrow
    /// advise` writes
    #[arg(long = "options", value_name = "FILE", conflicts_with = "preset")]
    pub options_file: Option<PathBuf>,

    /// Size ratio T of the last two levels
    #[arg(long, aliases = ["max-bytes-for-level-multiplier", "max_bytes_for_level_multiplier"], value_name = "T")]
    pub size_ratio: Option<f64>,

    /// Scaling c of the size ratios, above 0 and at most 1: ratios grow by 1/c towards the shallow levels
    #[arg(long, value_name = "C")]
    pub scaling: Option<f64>,

    /// Limit on the segments of a table file: scaled, or a number from 1 to 12
    #[arg(long, value_name = "LIMIT")]
    pub segment_limit: Option<SegmentLimit>,

    /// Filter bits per key; 0 turns filters off
    #[arg(long, aliases = ["bloom-bits", "bloom_bits"], value_name = "BITS")]
    pub bits_per_key: Option<f64>,

    /// Allocation of these bits to the files
    #[arg(long, value_enum)]
    pub filter_allocation: Option<FilterAllocationArg>,

    /// Target of compactions and garbage collection for bytes on disk over live bytes; inf for no bound
    #[arg(long, value_name = "RATIO")]
    pub max_space_amp: Option<f64>,

    /// Least total size of key and value of a medium value, or `never`
    #[arg(long, value_name = "BYTES", value_parser = parse_threshold)]
    pub medium_from: Option<u64>,

    /// Least total size of key and value of a large value, or `never`
    #[arg(long, value_name = "BYTES", value_parser = parse_threshold)]
    pub large_from: Option<u64>,

    /// First level in which compactions put medium values in place
    #[arg(long, value_enum)]
    pub medium_in_place: Option<MediumInPlaceArg>,

    /// Order of medium values in transient logs; for measurements
    #[arg(long, value_enum)]
    pub medium_order: Option<MediumOrderArg>,

    /// Memory of one memtable
    #[arg(long, aliases = ["write-buffer-size", "write_buffer_size"], value_name = "BYTES", value_parser = parse_bytes)]
    pub memtable_bytes: Option<u64>,

    /// Size of a table file
    #[arg(long, aliases = ["target-file-size-base", "target_file_size_base"], value_name = "BYTES", value_parser = parse_bytes)]
    pub file_bytes: Option<u64>,

    /// Capacity of level 1 while it is the only level
    #[arg(long, aliases = ["max-bytes-for-level-base", "max_bytes_for_level_base"], value_name = "BYTES", value_parser = parse_bytes)]
    pub base_bytes: Option<u64>,

    /// Runs in level 0 that start a compaction
    #[arg(long, aliases = ["level0-file-num-compaction-trigger", "level0_file_num_compaction_trigger"], value_name = "N")]
    pub level0_runs: Option<usize>,
}

impl PolicyArgs {
    /// The options of the preset or of the file, changed by these arguments. They are not validated.
    ///
    /// # Errors
    /// `InvalidArgument` for a memtable that this machine cannot address, or for an invalid file of options; an
    /// error of reading that file.
    pub fn options(&self) -> Result<Options> {
        let mut options = Options::preset(Preset::from(self.preset));
        if let Some(path) = &self.options_file {
            let text = fs::read_to_string(path).map_err(|error| Error::io("read", path, error))?;
            options.keyspace = text.parse().map_err(|error: Error| {
                Error::invalid_argument(format!("{}: {error}", path.display()))
            })?;
        }
        self.change(&mut options.keyspace)?;
        Ok(options)
    }

    /// Sets the options of `keyspace` that these arguments name. Does not use the preset or the file.
    ///
    /// # Errors
    /// `InvalidArgument` for a memtable that this machine cannot address.
    pub fn change(&self, keyspace: &mut KeyspaceOptions) -> Result<()> {
        set(&mut keyspace.size_ratio, self.size_ratio);
        set(&mut keyspace.scaling, self.scaling);
        set(&mut keyspace.segment_limit, self.segment_limit);
        set(&mut keyspace.bits_per_key, self.bits_per_key);
        set(
            &mut keyspace.filter_allocation,
            self.filter_allocation.map(FilterAllocation::from),
        );
        set(&mut keyspace.max_space_amp, self.max_space_amp);
        set(&mut keyspace.large_from, self.large_from);
        // A lower bound of large values lowers that of medium values, too.
        let medium_from = keyspace.medium_from.min(keyspace.large_from);
        keyspace.medium_from = self.medium_from.unwrap_or(medium_from);
        set(
            &mut keyspace.medium_in_place,
            self.medium_in_place.map(MediumInPlace::from),
        );
        set(
            &mut keyspace.medium_order,
            self.medium_order.map(MediumOrder::from),
        );
        set(&mut keyspace.file_bytes, self.file_bytes);
        set(&mut keyspace.base_bytes, self.base_bytes);
        set(&mut keyspace.level0_runs, self.level0_runs);
        let memtable_bytes = self.memtable_bytes.map(usize::try_from).transpose();
        let memtable_bytes = memtable_bytes.map_err(|_| {
            Error::invalid_argument("--memtable-bytes is more than this machine can address")
        })?;
        set(&mut keyspace.memtable_bytes, memtable_bytes);
        Ok(())
    }
}

/// Sets `field` to `choice`, if any.
pub(crate) fn set<T>(field: &mut T, choice: Option<T>) {
    if let Some(choice) = choice {
        *field = choice;
    }
}

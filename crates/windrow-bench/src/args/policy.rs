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

const PRESET: PresetArg = PresetArg::Balanced;

/// How the tree grows, what merges do, and where values go.
#[derive(Debug, Clone, Args)]
pub struct PolicyArgs {
    /// Named set of options to start from
    #[arg(long, value_enum, default_value_t = PRESET)]
    pub preset: PresetArg,

    /// File of options to start from, in place of a preset: lines such as `size_ratio = 4`, as `windrow
    /// advise` writes them
    #[arg(long = "options", value_name = "FILE", conflicts_with = "preset")]
    pub options_file: Option<PathBuf>,

    /// Size ratio T of the last two levels
    #[arg(long, aliases = ["max-bytes-for-level-multiplier", "max_bytes_for_level_multiplier"], value_name = "T")]
    pub size_ratio: Option<f64>,

    /// How ratios grow towards the shallow levels: c, above 0 and at most 1
    #[arg(long, value_name = "C")]
    pub scaling: Option<f64>,

    /// How many segments a table file may have: scaled, or a number from 1 to 12
    #[arg(long, value_name = "LIMIT")]
    pub segment_limit: Option<SegmentLimit>,

    /// Filter bits per key; 0 turns filters off
    #[arg(long, aliases = ["bloom-bits", "bloom_bits"], value_name = "BITS")]
    pub bits_per_key: Option<f64>,

    /// How these bits are shared out among the files
    #[arg(long, value_enum)]
    pub filter_allocation: Option<FilterAllocationArg>,

    /// Bytes of tables over live bytes that merging aims to stay below; inf for no bound
    #[arg(long, value_name = "RATIO")]
    pub max_space_amp: Option<f64>,

    /// Bytes of key and value from which on a value is medium, or `never`
    #[arg(long, value_name = "BYTES", value_parser = parse_threshold)]
    pub medium_from: Option<u64>,

    /// Bytes of key and value from which on a value is large, or `never`; nothing is medium from there on
    #[arg(long, value_name = "BYTES", value_parser = parse_threshold)]
    pub large_from: Option<u64>,

    /// Level from which on merges write values of medium size in place
    #[arg(long, value_enum)]
    pub medium_in_place: Option<MediumInPlaceArg>,

    /// How flushes order values of medium size; for measurements
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

    /// Flushed runs that level 0 gathers before they are merged
    #[arg(long, aliases = ["level0-file-num-compaction-trigger", "level0_file_num_compaction_trigger"], value_name = "N")]
    pub level0_runs: Option<usize>,
}

impl Default for PolicyArgs {
    fn default() -> Self {
        Self {
            preset: PRESET,
            options_file: None,
            size_ratio: None,
            scaling: None,
            segment_limit: None,
            bits_per_key: None,
            filter_allocation: None,
            max_space_amp: None,
            medium_from: None,
            large_from: None,
            medium_in_place: None,
            medium_order: None,
            memtable_bytes: None,
            file_bytes: None,
            base_bytes: None,
            level0_runs: None,
        }
    }
}

impl PolicyArgs {
    /// The options of the preset or of the file, with what these arguments change in them, not yet validated.
    ///
    /// # Errors
    /// `InvalidArgument` for a memtable that this machine cannot address, or for a file of options that is
    /// wrong; what reading that file meets.
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

    /// Sets in `keyspace` what these arguments name one by one, whatever the preset or the file has.
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
        // Nobody has to say twice from where on nothing is medium.
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

/// Takes `choice` for `field` where there is one.
pub(crate) fn set<T>(field: &mut T, choice: Option<T>) {
    if let Some(choice) = choice {
        *field = choice;
    }
}

//! The options of a tree as arguments, under the names that they have for `bench`.

use clap::Args;
use windrow::{
    Error, FilterAllocation, KeyspaceOptions, MediumInPlace, Preset, Result, SegmentLimit,
};
use windrow_bench::{FilterAllocationArg, MediumInPlaceArg, PresetArg};

use super::quantities::{parse_quantity, parse_threshold};

/// The options of the keyspace.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Options of the tree")]
pub(super) struct TreeArgs {
    /// Named set of options to start from
    #[arg(long, value_enum, default_value_t = PresetArg::Balanced)]
    preset: PresetArg,

    /// Size ratio T of the last two levels
    #[arg(long, value_name = "T")]
    size_ratio: Option<f64>,

    /// How ratios grow towards the shallow levels: c, above 0 and at most 1
    #[arg(long, value_name = "C")]
    scaling: Option<f64>,

    /// How many segments a table file may have: scaled, or a number from 1 to 12
    #[arg(long, value_name = "LIMIT")]
    segment_limit: Option<SegmentLimit>,

    /// Filter bits per key; 0 turns filters off
    #[arg(long, value_name = "BITS")]
    bits_per_key: Option<f64>,

    /// How these bits are shared out among the files
    #[arg(long, value_enum)]
    filter_allocation: Option<FilterAllocationArg>,

    /// Bytes of tables over live bytes that merging aims to stay below; inf for no bound
    #[arg(long, value_name = "RATIO")]
    max_space_amp: Option<f64>,

    /// Bytes of key and value from which on a value is medium, or `never`
    #[arg(long, value_name = "BYTES", value_parser = parse_threshold)]
    medium_from: Option<u64>,

    /// Bytes of key and value from which on a value is large, or `never`; nothing is medium from there on
    #[arg(long, value_name = "BYTES", value_parser = parse_threshold)]
    large_from: Option<u64>,

    /// Level from which on merges write values of medium size in place
    #[arg(long, value_enum)]
    medium_in_place: Option<MediumInPlaceArg>,

    /// Memory of one memtable
    #[arg(long, value_name = "BYTES", value_parser = parse_quantity)]
    memtable_bytes: Option<u64>,

    /// Size of a table file
    #[arg(long, value_name = "BYTES", value_parser = parse_quantity)]
    file_bytes: Option<u64>,

    /// Bytes of a data block
    #[arg(long, value_name = "BYTES", value_parser = parse_quantity)]
    block_bytes: Option<u64>,

    /// Capacity of level 1 while it is the only level
    #[arg(long, value_name = "BYTES", value_parser = parse_quantity)]
    base_bytes: Option<u64>,

    /// Flushed runs that level 0 gathers before they are merged
    #[arg(long, value_name = "N")]
    level0_runs: Option<usize>,
}

impl TreeArgs {
    /// # Errors
    /// `InvalidArgument` that lists everything contradictory.
    pub(super) fn options(&self) -> Result<KeyspaceOptions> {
        let mut options = KeyspaceOptions::preset(match self.preset {
            PresetArg::Balanced => Preset::Balanced,
            PresetArg::Leveling => Preset::Leveling,
            PresetArg::Autumn => Preset::Autumn,
            PresetArg::Parallax => Preset::Parallax,
            PresetArg::Lsma => Preset::Lsma,
        });
        let addressable = |bytes: u64| {
            usize::try_from(bytes).map_err(|_| {
                Error::invalid_argument(format!("{bytes} bytes are more than can be addressed"))
            })
        };
        set(&mut options.size_ratio, self.size_ratio);
        set(&mut options.scaling, self.scaling);
        set(&mut options.segment_limit, self.segment_limit);
        set(&mut options.bits_per_key, self.bits_per_key);
        let allocation = self.filter_allocation.map(FilterAllocation::from);
        set(&mut options.filter_allocation, allocation);
        set(&mut options.max_space_amp, self.max_space_amp);
        set(&mut options.large_from, self.large_from);
        // Nobody has to say twice from where on nothing is medium.
        let medium_from = options.medium_from.min(options.large_from);
        options.medium_from = self.medium_from.unwrap_or(medium_from);
        let in_place = self.medium_in_place.map(MediumInPlace::from);
        set(&mut options.medium_in_place, in_place);
        set(&mut options.file_bytes, self.file_bytes);
        set(&mut options.base_bytes, self.base_bytes);
        set(&mut options.level0_runs, self.level0_runs);
        let memtable_bytes = self.memtable_bytes.map(addressable).transpose()?;
        set(&mut options.memtable_bytes, memtable_bytes);
        let block_bytes = self.block_bytes.map(addressable).transpose()?;
        set(&mut options.block_bytes, block_bytes);
        options.validate()?;
        Ok(options)
    }
}

fn set<T>(field: &mut T, choice: Option<T>) {
    if let Some(choice) = choice {
        *field = choice;
    }
}

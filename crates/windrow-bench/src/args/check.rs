//! The checks of arguments before anything is opened, created or removed.

use std::fs;

use windrow::{Error, Result};

use super::{BenchArgs, CompressionArg};
use crate::data::trace::Trace;
use crate::load::job::Bound;
use crate::load::kinds::{Kind, Work};
use crate::load::numbers::NUMBER_BYTES;
use crate::measure::memory::check_left;
use crate::{DataSet, Load, MergeOperator, Mixture};

impl BenchArgs {
    /// Checks a run on `data` before it begins.
    ///
    /// # Errors
    /// `InvalidArgument` names the missing or contradictory argument; an error of reading the trace.
    pub fn check(&self, data: &DataSet) -> Result<()> {
        for &load in self.loads() {
            self.check_load(load, data)?;
        }
        self.check_contents()?;
        self.check_records(data)?;
        if let Some(left) = self.memory {
            check_left(left)?;
        }
        if self.drop_caches && !cfg!(target_os = "linux") {
            return refuse("--drop-caches needs Linux");
        }
        self.windrow_options().map(drop)
    }

    /// Checks the needs of `load` alone.
    fn check_load(&self, load: Load, data: &DataSet) -> Result<()> {
        let name = load.name();
        if load.is_ycsb() && !data.holds_generations() {
            return refuse(format!(
                "{name} needs values of at least 8 bytes, which identify their write"
            ));
        }
        if load.contents() == Kind::Counters && !data.holds_generations() {
            return refuse(format!(
                "{name} needs values of at least {NUMBER_BYTES} bytes, which hold a number"
            ));
        }
        if load.merge_operator() == Some(MergeOperator::Add)
            && !(data.has_one_size() && data.value_size(&[], 0) == NUMBER_BYTES)
        {
            return refuse(format!("{name} needs --value-size {NUMBER_BYTES}"));
        }
        if load.work().is_on_pairs() && self.indexes(load) < 2 {
            return refuse(format!("{name} needs two keys at least"));
        }
        if load.is_fill() && self.use_existing_db {
            return refuse(format!("{name} would remove the existing store"));
        }
        let is_mixed = matches!(
            load.work(),
            Work::ReadOrWrite | Work::MixGraph | Work::Replay | Work::Records(_)
        );
        if is_mixed && load.changes() && self.write_limit(1).is_some() {
            return refuse(format!(
                "--benchmark-write-rate-limit bounds loads that only write, but {name} also reads; use --rate"
            ));
        }
        match load {
            Load::Replay => self.check_trace(),
            Load::MixGraph => self.check_mixture(),
            Load::Compress | Load::Uncompress if self.compression == Some(CompressionArg::Zstd) => {
                refuse(format!("{name} measures LZ4 only"))
            }
            _ => Ok(()),
        }
    }

    /// Checks that the trace exists and that it can be read more than once.
    fn check_trace(&self) -> Result<()> {
        let Some(path) = &self.trace else {
            return refuse("replay needs --trace FILE");
        };
        let file = fs::metadata(path).map_err(|error| Error::io("open", path, error))?;
        if !file.is_file() {
            return refuse(format!(
                "{} is not a regular file, but replay reads the trace more than once",
                path.display()
            ));
        }
        Trace::open(path)?.next().map(drop)
    }

    fn check_mixture(&self) -> Result<()> {
        Mixture::new(&self.mixgraph, self.num, self.seed)?;
        match self.mixgraph.wave() {
            Some(_) if self.rate.is_some() => {
                refuse("--rate and --sine-mix-rate exclude each other")
            }
            Some(wave) if !wave.is_rate() => {
                refuse("--sine-a to --sine-d must be numbers that give a rate above 0")
            }
            _ => Ok(()),
        }
    }

    /// Checks that loads on counters and on postings have stores of their own, and that the loads need one merge operator
    /// at most.
    fn check_contents(&self) -> Result<()> {
        let mut holds = None;
        for &load in self.loads() {
            if load.is_fill() {
                holds = Some(load);
            }
            let has_own = |load: Load| matches!(load.contents(), Kind::Counters | Kind::Postings);
            let is_other = |fill: &Load| {
                fill.contents() != load.contents() && (has_own(*fill) || has_own(load))
            };
            if let Some(fill) = holds.filter(|fill| !load.takes_anything() && is_other(fill)) {
                return refuse(format!(
                    "{} does not know the values of {}; put {} before it",
                    load.name(),
                    fill.name(),
                    load.contents().fills()
                ));
            }
            let operator = load.merge_operator();
            if operator.is_some() && operator != self.merge_operator() {
                return refuse(
                    "a run has counters or postings: they need different merge operators",
                );
            }
        }
        Ok(())
    }

    /// Checks that YCSB's loads find records, and that the keys are long enough for the records that they insert.
    fn check_records(&self, data: &DataSet) -> Result<()> {
        // The least number of records in the store, if this run writes them.
        let mut present = None;
        let mut other = None;
        for &load in self.loads() {
            if load == Load::YcsbLoad {
                (present, other) = (Some(self.num), None);
            } else if load.puts_indexes() {
                other = Some(load);
            }
            let Some(workload) = load.workload() else {
                continue;
            };
            if let Some(other) = other {
                return refuse(format!(
                    "{} needs a store of records only, but {} writes other entries; put ycsb-load between them",
                    load.name(),
                    other.name()
                ));
            }
            if let (Some(present), Some(total)) = (&mut present, Bound::of(load, self).total) {
                let more = workload.insertions_most(total);
                data.check_records(present.saturating_add(more))?;
                if !Bound::of(load, self).is_timed() {
                    *present += more;
                }
            }
        }
        Ok(())
    }
}

fn refuse<T>(message: impl Into<String>) -> Result<T> {
    Err(Error::invalid_argument(message))
}

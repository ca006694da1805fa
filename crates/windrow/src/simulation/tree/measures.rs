//! What a simulated tree costs readers and disks.

use super::files::Tree;
use crate::policy::FileSummary;
use crate::simulation::key_space::Segment;
use crate::simulation::outcome::Spread;
use crate::simulation::transient_logs::TransientLogs;

impl Tree<'_> {
    /// Bytes of filters in memory, and the false-positive reads of a get of an absent key on average.
    pub(crate) fn filters(&self) -> (u64, f64) {
        let (mut bytes, mut reads) = (0, 0.0);
        let Some(filters) = &self.filters else {
            return (bytes, reads);
        };
        for file in self.summary.levels.iter().flatten() {
            let own = &self.contents[&file.number].segments;
            for ((loaded, rate), own) in filters.loaded(file).zip(own) {
                bytes += loaded;
                reads += own.span.width() * rate;
            }
        }
        (bytes, reads)
    }

    /// How the entries of each level are spread over runs.
    pub(crate) fn spreads(&self) -> Vec<Spread> {
        let of = |file: &FileSummary<u64>| {
            let own = &self.contents[&file.number].segments;
            let segments = file.segments.iter().zip(own);
            let spreads = segments
                .map(|(segment, own)| Spread::segment(segment.entries as f64, own.span.width()));
            spreads.fold(Spread::default(), Spread::and)
        };
        let levels = self.summary.levels.iter();
        levels
            .map(|files| files.iter().map(of).fold(Spread::default(), Spread::and))
            .collect()
    }

    /// The kinds of transient logs that a level refers to.
    pub(crate) fn transient_logs(&self, level: usize) -> Vec<TransientLogs> {
        let files = self.summary.level(level).iter();
        let segments = files.flat_map(|file| &self.contents[&file.number].segments);
        self.values.kinds(segments)
    }

    /// For each level, the number of segments whose range a key is in, on average over the key space.
    pub(crate) fn runs(&self) -> Vec<f64> {
        let width = |file: &FileSummary<u64>| -> f64 {
            let segments = self.contents[&file.number].segments.iter();
            segments.map(|segment| segment.span.width()).sum()
        };
        let levels = self.summary.levels.iter();
        levels.map(|files| files.iter().map(width).sum()).collect()
    }

    /// The runs of level 0, and for each deeper level the most segments of a file.
    pub(crate) fn runs_max(&self) -> Vec<usize> {
        let segments = |file: &FileSummary<u64>| file.segments.len();
        let levels = self.summary.levels.iter().enumerate();
        levels
            .map(|(level, files)| match level {
                0 => files.len(),
                _ => files.iter().map(segments).max().unwrap_or(0),
            })
            .collect()
    }

    /// All bytes on disk.
    pub(crate) fn bytes(&self) -> u64 {
        let files = self.summary.levels.iter().flatten();
        let values = self.values.space();
        files.map(|file| file.bytes).sum::<u64>() + values.transient_log_bytes + values.log_bytes
    }

    /// Bytes of this many values in tables and value logs.
    pub(crate) fn value_bytes(&self, values: f64) -> f64 {
        (self.sizes.value + self.classes.in_value_logs()) * values
    }

    /// The sum over the segments of a level.
    pub(crate) fn sum(&self, level: usize, of: impl Fn(&Segment) -> f64) -> f64 {
        let files = self.summary.level(level).iter();
        let segments = files.flat_map(|file| &self.contents[&file.number].segments);
        segments.map(of).sum()
    }
}

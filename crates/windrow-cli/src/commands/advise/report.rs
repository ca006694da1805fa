//! What `advise` reports, for programs and for people, and the files that it writes.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use comfy_table::{Cell, Table};
use serde::Serialize;
use windrow::{Error, KeyspaceOptions, Result};
use windrow_bench::check_destination;

use super::sweep::{Advice, Candidate, WORTHWHILE};
use crate::amounts::whole;
use crate::commands::cost::Demand;
use crate::tables::{plain_table, right};
use crate::text::{human_bytes, human_count};

/// What the names of files of options end in, and that of what is recommended.
const OPTIONS: &str = "options";
const RECOMMENDED: &str = "recommended";

/// The note on the default device.
const ALL_IN_MEMORY: &str = "assumed: all data is in the page cache, so that the device costs nothing; if it does not \
    fit, give --memory, and --device or --calibration";

/// The most rows of the frontier that people are shown.
const ROWS_MAX: usize = 14;

/// A column of a table: its name, and what it says of a candidate.
type Column<'a> = (&'static str, Box<dyn Fn(&Candidate) -> Cell + 'a>);

/// A row of a table: its name, whether it is shown, and what it says of a candidate.
type Row = (&'static str, bool, fn(&Candidate) -> String);

/// A column of numbers.
fn number(of: fn(&Candidate) -> f64) -> Box<dyn Fn(&Candidate) -> Cell> {
    Box::new(move |candidate| right(&format!("{:.2}", of(candidate))))
}

/// The demand, and the advice for it.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    demand: Demand,
    /// Whether reads and writes of a device are taken to cost nothing.
    assumes_all_in_memory: bool,
    #[serde(flatten)]
    advice: Advice,
}

impl Report {
    pub(super) fn new(demand: Demand, advice: Advice) -> Self {
        Self {
            assumes_all_in_memory: demand.device.is_free(),
            demand,
            advice,
        }
    }

    /// The demand, on one line.
    fn asked(&self) -> String {
        let demand = &self.demand;
        let fractions = demand.fractions;
        let kinds = [
            (fractions.inserts, "inserts"),
            (fractions.updates, "updates"),
            (fractions.deletes, "deletes"),
            (fractions.merges, "merges"),
            (fractions.range_deletes, "range deletes"),
            (fractions.gets, "gets"),
            (fractions.missing, "gets of absent keys"),
            (fractions.scans, "scans"),
        ];
        let kinds = kinds.iter().filter(|(fraction, _)| *fraction > 0.0);
        let kinds: Vec<String> = kinds
            .map(|(fraction, name)| format!("{:.1} % {name}", fraction * 100.0))
            .collect();
        let memory = match demand.memory {
            None => "all in the page cache".to_owned(),
            Some(bytes) => format!("{} of memory", human_bytes(bytes)),
        };
        format!(
            "{} keys, {} in all, {:.0} bytes each; {}; {memory}",
            human_count(demand.keys),
            human_bytes(whole(demand.bytes())),
            demand.entry_bytes(),
            kinds.join(", "),
        )
    }

    fn frontier(&self) -> Table {
        let mut table = plain_table();
        let columns = self.columns();
        table.set_header(columns.iter().map(|(name, _)| right(name)));
        let advice = &self.advice;
        let mut shown: Vec<&Candidate> = Vec::new();
        let step = advice.frontier.len().div_ceil(ROWS_MAX).max(1);
        shown.extend(advice.frontier.iter().step_by(step));
        // What is marked is shown in any case.
        let marked = [
            Some(&advice.recommended),
            Some(&advice.default),
            advice.now.as_ref(),
        ];
        for own in marked.into_iter().flatten() {
            if !shown.iter().any(|it| it.options == own.options) {
                shown.push(own);
            }
        }
        shown.sort_by(|one, other| one.costs.write.total_cmp(&other.costs.write));
        for candidate in shown {
            table.add_row(columns.iter().map(|(_, cell)| cell(candidate)));
        }
        table
    }

    /// The columns of the frontier, without operations that nobody asks for.
    fn columns(&self) -> Vec<Column<'_>> {
        let option = |name| move |it: &Candidate| right(&field(&it.options, name));
        let fractions = self.demand.fractions;
        let all: [(bool, Column<'_>); 15] = [
            (true, ("", Box::new(|it| Cell::new(self.marks(it))))),
            (true, ("T", Box::new(option("size_ratio")))),
            (true, ("c", Box::new(option("scaling")))),
            (true, ("segments", Box::new(option("segment_limit")))),
            (true, ("medium", Box::new(option("medium_from")))),
            (true, ("large", Box::new(option("large_from")))),
            (true, ("bits", Box::new(option("bits_per_key")))),
            (
                fractions.writes() > 0.0,
                ("write", number(|it| it.costs.write)),
            ),
            (fractions.gets > 0.0, ("get", number(|it| it.costs.get))),
            (
                fractions.missing > 0.0,
                ("absent", number(|it| it.costs.missing)),
            ),
            (fractions.scans > 0.0, ("scan", number(|it| it.costs.scan))),
            (true, ("mean", number(|it| it.costs.operation))),
            (
                fractions.writes() > 0.0,
                ("written", number(|it| it.write_amplification)),
            ),
            (true, ("runs", number(|it| it.costs.runs_per_seek))),
            (true, ("space", number(|it| it.space_amplification))),
        ];
        let shown = all.into_iter().filter(|(is_shown, _)| *is_shown);
        shown.map(|(_, column)| column).collect()
    }

    fn marks(&self, candidate: &Candidate) -> String {
        let advice = &self.advice;
        let is_own = |it: &Candidate| it.options == candidate.options;
        let marks = [
            (is_own(&advice.recommended), "recommended"),
            (is_own(&advice.default), "default"),
            (advice.now.as_ref().is_some_and(is_own), "now"),
        ];
        let marks = marks.into_iter().filter(|(is_marked, _)| *is_marked);
        let names: Vec<&str> = marks.map(|(_, name)| name).collect();
        names.join(", ")
    }

    /// What is recommended beside the default.
    fn costs(&self) -> Table {
        let advice = &self.advice;
        let mut table = plain_table();
        let mut columns = vec![Cell::new(""), right(&"recommended")];
        let mut candidates = vec![&advice.recommended];
        if !advice.keep_default {
            columns.push(right(&"default"));
            candidates.push(&advice.default);
        }
        if let Some(now) = &advice.now {
            columns.push(right(&"now"));
            candidates.push(now);
        }
        table.set_header(columns);
        let fractions = self.demand.fractions;
        let reads_device = !self.demand.device.is_free();
        let rows: [Row; 17] = [
            ("write, us", fractions.writes() > 0.0, |it| {
                format!("{:.2}", it.costs.write)
            }),
            ("get, us", fractions.gets > 0.0, |it| {
                format!("{:.2}", it.costs.get)
            }),
            ("get of an absent key, us", fractions.missing > 0.0, |it| {
                format!("{:.2}", it.costs.missing)
            }),
            ("scan, us", fractions.scans > 0.0, |it| {
                format!("{:.2}", it.costs.scan)
            }),
            (
                "gets a second, one thread",
                reads_device && fractions.gets > 0.0,
                |it| human_count(whole(1e6 / it.costs.get)),
            ),
            (
                "scans a second, one thread",
                reads_device && fractions.scans > 0.0,
                |it| human_count(whole(1e6 / it.costs.scan)),
            ),
            (
                "requests of a get to the device",
                reads_device && fractions.gets > 0.0,
                |it| format!("{:.2}", it.costs.get_requests),
            ),
            (
                "requests of a scan as it opens",
                reads_device && fractions.scans > 0.0,
                |it| format!("{:.2}", it.costs.scan_requests),
            ),
            ("the average operation, us", true, |it| {
                format!("{:.2}", it.costs.operation)
            }),
            ("operations a second and core, at most", true, |it| {
                human_count(whole(1e6 / it.costs.operation))
            }),
            (
                "written for each byte given",
                fractions.writes() > 0.0,
                |it| format!("{:.2}", it.write_amplification),
            ),
            ("levels with data", true, |it| it.levels.to_string()),
            ("runs that a seek visits", true, |it| {
                format!("{:.2}", it.costs.runs_per_seek)
            }),
            ("blocks read for an absent key", true, |it| {
                format!("{:.4}", it.costs.false_positive_reads)
            }),
            ("memory of filters", true, |it| {
                human_bytes(whole(it.costs.filter_bytes))
            }),
            ("disk / live entries alone", true, |it| {
                format!("{:.2}", it.space_amplification)
            }),
            (
                "reads that memory answers",
                self.demand.memory.is_some(),
                |it| format!("{:.0} %", it.costs.hit_fraction * 100.0),
            ),
        ];
        for (name, _, text) in rows.into_iter().filter(|(_, is_shown, _)| *is_shown) {
            let mut row = vec![Cell::new(name)];
            row.extend(candidates.iter().map(|it| right(&text(it))));
            table.add_row(row);
        }
        table
    }

    /// The recommendation, in a sentence.
    fn verdict(&self) -> String {
        let advice = &self.advice;
        let saving = advice.saving * 100.0;
        let worthwhile = WORTHWHILE * 100.0;
        if advice.keep_default && saving <= 0.0 {
            return "nothing is better than the default: keep it".to_owned();
        }
        if advice.keep_default {
            return format!(
                "the default is within {worthwhile:.0} % of the best ({saving:.1} %): keep it"
            );
        }
        let changes = changes(&advice.default.options, &advice.recommended.options);
        let changes = changes.join(", ");
        if advice.default_is_allowed {
            format!("{changes}: costs {saving:.1} % less than the default")
        } else {
            format!("{changes}: the default does not keep to the bounds")
        }
    }

    /// Writes what is recommended to a file.
    pub(super) fn write(&self, path: &Path) -> Result<()> {
        let costs = &self.advice.recommended.costs;
        let heading = format!(
            "# windrow advise: {}\n# {}\n# about {:.2} us of one processor and the device for each operation\n",
            self.asked(),
            self.verdict(),
            costs.operation,
        );
        write(
            path,
            &(heading + &self.advice.recommended.options.to_file()),
        )
    }

    /// Writes what is recommended, the default, and what is one step away, to a file each in a folder.
    pub(super) fn write_neighbours(&self, folder: &Path) -> Result<()> {
        let advice = &self.advice;
        let mut files = vec![
            (RECOMMENDED.to_owned(), &advice.recommended),
            ("default".to_owned(), &advice.default),
        ];
        for (name, candidate) in &advice.neighbours {
            let own = match *name {
                "placement" => format!(
                    "{}-{}-{}",
                    field(&candidate.options, "medium_from"),
                    field(&candidate.options, "large_from"),
                    field(&candidate.options, "medium_in_place"),
                ),
                name => field(&candidate.options, name),
            };
            files.push((format!("{name}-{own}"), candidate));
        }
        for (name, candidate) in files {
            let costs = &candidate.costs;
            let heading = format!("# windrow advise: {:.3} us\n", costs.operation);
            write(
                &file_in(folder, &name),
                &(heading + &candidate.options.to_file()),
            )?;
        }
        Ok(())
    }
}

/// Makes the folder of the neighbours, in which nothing but them is to be measured.
///
/// # Errors
/// `InvalidArgument` where it holds files of options; what the file system reports.
pub(super) fn make_folder(folder: &Path) -> Result<()> {
    let failed = |operation| move |error| Error::io(operation, folder, error);
    fs::create_dir_all(folder).map_err(failed("create"))?;
    for entry in fs::read_dir(folder).map_err(failed("list"))? {
        let path = entry.map_err(failed("list"))?.path();
        if path.extension().is_some_and(|end| end == OPTIONS) {
            return Err(Error::invalid_argument(format!(
                "{} is there already, and would be measured as well: give a folder without files of options",
                path.display()
            )));
        }
    }
    check_destination(&file_in(folder, RECOMMENDED), None)
}

fn file_in(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.{OPTIONS}"))
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).map_err(|error| Error::io("write", path, error))
}

/// An option as text.
fn field(options: &KeyspaceOptions, name: &str) -> String {
    let mut fields = options.fields().into_iter();
    fields
        .find(|(own, _)| *own == name)
        .map_or_else(String::new, |(_, text)| text)
}

/// What is other than in `from`.
fn changes(from: &KeyspaceOptions, to: &KeyspaceOptions) -> Vec<String> {
    let both = from.fields().into_iter().zip(to.fields());
    both.filter(|(from, to)| from != to)
        .map(|(_, (name, text))| format!("{name} = {text}"))
        .collect()
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let advice = &self.advice;
        writeln!(formatter, "{}\n", self.asked())?;
        if self.assumes_all_in_memory {
            writeln!(formatter, "{ALL_IN_MEMORY}\n")?;
        }
        writeln!(formatter, "What nothing beats in writes, reads and space:")?;
        writeln!(formatter, "{}\n", self.frontier())?;
        writeln!(formatter, "{}\n", self.costs())?;
        if advice.left_out > 0 {
            writeln!(
                formatter,
                "{} of {} settings do not keep to the bounds\n",
                human_count(advice.left_out as u64),
                human_count(advice.compared as u64),
            )?;
        }
        for note in &self.demand.notes {
            writeln!(formatter, "note: {note}\n")?;
        }
        write!(formatter, "{}", self.verdict())
    }
}

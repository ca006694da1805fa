//! Trees and plans as text, for tables of cases.
//!
//! A tree is a list of its levels from level 0 on, separated by `|`. A file is `number:smallest-largest/KiB`, and has
//! ten entries. Properties follow, each after a `+`: `busy`, `sealed`, `tombstones` (five of them), `hides=N` (entries
//! that its range tombstones hide), `newest=N` (the
//! largest sequence number), `visits=N`, `apart=KIB` (the logical bytes in transient logs), `logs=N` (transient log files), `segments=N` (of
//! equal size), `overwrites=N` (keys of each later segment that older ones have).
//!
//! A case is `name [option] :: tree => plan` on one line, or more if the others are indented.

use crate::base::FileNumber;
use crate::base::limits::TABLE_FILES_MAX;
use crate::options::KeyspaceOptions;
use crate::policy::{Claim, Compaction, FileSummary, Plan, Purpose, TreeSummary, plan};

pub(crate) const KIB: u64 = 1 << 10;

/// A file of ten entries over the keys from `smallest` to `largest`.
pub(crate) fn file(number: u64, smallest: u32, largest: u32, kib: u64) -> FileSummary<u32> {
    let keys = (smallest, largest);
    FileSummary::new(FileNumber(number), keys, kib * KIB, 10)
}

pub(crate) fn tree(level_count: usize, levels: Vec<Vec<FileSummary<u32>>>) -> TreeSummary<u32> {
    TreeSummary::new(level_count, levels, TABLE_FILES_MAX)
}

pub(crate) fn claim(level: usize, smallest: u32, largest: u32) -> Claim<u32> {
    Claim {
        level,
        smallest,
        largest,
    }
}

pub(crate) fn numbers(numbers: &[u64]) -> Vec<FileNumber> {
    numbers.iter().copied().map(FileNumber).collect()
}

pub(crate) fn parse_tree(text: &str) -> TreeSummary<u32> {
    let levels = text.split('|');
    let levels: Vec<Vec<_>> = levels
        .map(|level| level.split_whitespace().map(parse_file).collect())
        .collect();
    tree((levels.len() - 1).max(1), levels)
}

pub(crate) fn parse_file(text: &str) -> FileSummary<u32> {
    let mut parts = text.split('+');
    let ends: Vec<u32> = parts
        .next()
        .unwrap()
        .split([':', '-', '/'])
        .map(|number| number.parse().unwrap())
        .collect();
    let [number, smallest, largest, kib] = ends[..] else {
        panic!("{text} is no file");
    };
    let mut file = file(number.into(), smallest, largest, kib.into());
    for property in parts {
        let (name, value) = property.split_once('=').unwrap_or((property, "0"));
        let value: u32 = value.parse().unwrap();
        match name {
            "busy" => file.busy = true,
            "sealed" => file.sealed = true,
            "tombstones" => file.tombstones = 5,
            "hides" => file.hidden_below = value.into(),
            "newest" => file.sequence_max = value.into(),
            "expired" => {
                file.expired_bytes = u64::from(value) * KIB;
                file.is_expired = file.expired_bytes >= file.bytes;
            }
            "valuelogs" => file.log_bytes = u64::from(value) * KIB,
            "visits" => file.visits = value.into(),
            "apart" => {
                file.transient_bytes = u64::from(value) * KIB;
                file.pinned_bytes = file.transient_bytes;
                file.bytes = file.logical_bytes - file.transient_bytes;
            }
            "logs" => file.transient_files = value,
            "segments" => {
                file.segments[0].bytes = file.bytes / u64::from(value);
                file.segments = vec![file.segments[0]; value as usize];
            }
            "overwrites" => {
                for segment in &mut file.segments[1..] {
                    segment.overwrites = value.into();
                }
            }
            _ => panic!("no file is {name}"),
        }
    }
    file
}

pub(crate) fn show(plan: &Plan<u32>) -> String {
    let Compaction {
        level,
        upper,
        lower,
        targets,
        claim,
        purpose,
    } = match plan {
        Plan::Idle => return "idle".to_owned(),
        Plan::Resize { level_count } => return format!("resize to {level_count}"),
        Plan::TrivialMove {
            level,
            upper,
            claim,
        } => {
            assert_eq!(claim.level, level + 1);
            let (smallest, largest) = (claim.smallest, claim.largest);
            return format!("move L{level} {} over {smallest}-{largest}", upper.0);
        }
        Plan::Drop { level, files } => {
            let files: Vec<String> = files.iter().map(|file| file.0.to_string()).collect();
            return format!("drop L{level}: {}", files.join(" "));
        }
        Plan::Compact(compaction) => compaction,
    };
    let verb = match purpose {
        Purpose::Tree if claim.level == *level => "rewrite",
        Purpose::Tree => "compact",
        Purpose::PointerRewrite => "rewrite pointers of",
        Purpose::Consolidation => "consolidate",
        Purpose::Expiry => "rewrite expired of",
    };
    let is_inside = *purpose != Purpose::Tree || claim.level == *level;
    assert_eq!(claim.level, level + usize::from(!is_inside));
    let list = |name: &str, files: &[FileNumber]| {
        let files: Vec<String> = files.iter().map(|number| number.0.to_string()).collect();
        if files.is_empty() {
            String::new()
        } else {
            format!(" {name} {}", files.join(" "))
        }
    };
    let files =
        list(&format!("L{level}"), upper) + &list("with", lower) + &list("append to", targets);
    format!("{verb}{files} over {}-{}", claim.smallest, claim.largest)
}

/// Compares the plan of each of the `cases`, under the `options` of its option.
pub(crate) fn check_plans(cases: &str, options: impl Fn(&str) -> KeyspaceOptions) {
    check_trees(cases, options, |_, _| ());
}

/// The same, with trees to which their option does what `change` says.
pub(crate) fn check_trees(
    cases: &str,
    options: impl Fn(&str) -> KeyspaceOptions,
    change: impl Fn(&mut TreeSummary<u32>, &str),
) {
    let mut count = 0;
    for case in cases.trim().replace("\n    ", " ").lines() {
        let (name, case) = case.split_once(" :: ").unwrap();
        let (tree, expected) = case.split_once("=>").unwrap();
        let option = name.split_once(" [").map_or("", |(_, option)| option);
        let option = option.trim_end_matches(']');
        let mut tree = parse_tree(tree);
        change(&mut tree, option);
        let plan = plan(&tree, &options(option), &[]);
        assert_eq!(show(&plan), expected.trim(), "{name}");
        count += 1;
    }
    assert!(count > 1, "{cases}");
}

//! In which source files the instructions of an operation are.
//!
//! Callgrind counts each instruction at its address. For an address, the debug information names the functions that are inlined
//! there: the instruction belongs to the innermost one of the engine. Others belong to the crate or the library of their function.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "reads what other programs write"
)]

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What paths of the engine's files contain.
const ENGINE: &str = "crates/windrow/src/";

/// Programs that read debug information; the first one is faster.
const READERS: [&str; 2] = ["llvm-addr2line", "addr2line"];

/// Counts of instructions by program or library, and address, each with its function.
type Counts = HashMap<(String, u64), (String, i64)>;

/// Arguments of callgrind with which each line of its output says all.
pub(crate) const FORM: [&str; 3] = [
    "--dump-instr=yes",
    "--compress-pos=no",
    "--compress-strings=no",
];

/// Reads what callgrind has written in this [form](FORM).
fn read(path: &Path) -> io::Result<Counts> {
    let text = fs::read(path)?;
    let text = String::from_utf8_lossy(&text);
    let (mut function, mut object) = ("", "");
    let mut counts = Counts::new();
    let mut is_call = false;
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("fn=") {
            function = name;
        } else if let Some(name) = line.strip_prefix("ob=") {
            object = name;
        } else if line.starts_with("calls=") {
            is_call = true;
        } else if let Some(digits) = line.strip_prefix("0x") {
            // The address, the line of the source, the count.
            let mut fields = digits.split_ascii_whitespace();
            let at = fields.next().map(|at| u64::from_str_radix(at, 16));
            let count = fields.nth(1).map(str::parse::<i64>);
            let (Some(Ok(at)), Some(Ok(count))) = (at, count) else {
                continue;
            };
            // What a call costs is counted in the called function.
            if !std::mem::take(&mut is_call) {
                let key = (object.to_owned(), at);
                counts.entry(key).or_insert((function.to_owned(), 0)).1 += count;
            }
        }
    }
    Ok(counts)
}

/// The crate of a function, or the library that is its `object`.
fn library(object: &str, function: &str, program: &Path) -> String {
    let object = Path::new(object);
    if object == program {
        let name = function.trim_start_matches('<');
        return name.split("::").next().unwrap_or(name).to_owned();
    }
    let name = object.file_name().unwrap_or(object.as_os_str());
    name.to_string_lossy().into_owned()
}

/// Asks for the functions at these addresses of `program`.
fn look_up(program: &Path, addresses: &Path) -> Result<Output, Box<dyn Error>> {
    let mut failed = None;
    for reader in READERS {
        let done = Command::new(reader)
            .args(["--inlines", "--functions", "--addresses", "--exe"])
            .arg(program)
            .stdin(File::open(addresses)?)
            .output();
        match done {
            Ok(done) if done.status.success() => return Ok(done),
            Ok(done) => {
                let why = String::from_utf8_lossy(&done.stderr);
                return Err(format!("{reader} fails: {why}").into());
            }
            Err(error) => failed = Some(error),
        }
    }
    Err(format!("neither of {READERS:?} can be started: {failed:?}").into())
}

/// The engine's source file at each of `addresses` that has one. `folder` gets a file.
fn files(
    program: &Path,
    addresses: &[u64],
    folder: &Path,
) -> Result<HashMap<u64, String>, Box<dyn Error>> {
    let asked = folder.join("addresses");
    let mut lines = String::new();
    for address in addresses {
        writeln!(lines, "{address:#x}")?;
    }
    fs::write(&asked, lines)?;
    let done = look_up(program, &asked)?;
    let mut files = HashMap::new();
    let mut at = 0;
    for line in String::from_utf8_lossy(&done.stdout).lines() {
        let digits = line.strip_prefix("0x");
        if let Some(asked) = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok()) {
            at = asked;
        } else if let Some((_, place)) = line.split_once(ENGINE) {
            let file = place.split(':').next().unwrap_or(place);
            files.entry(at).or_insert_with(|| file.to_owned());
        }
    }
    if files.is_empty() {
        return Err("this build has no debug information of the engine".into());
    }
    Ok(files)
}

/// What callgrind has counted.
#[derive(Debug)]
pub(crate) struct Counted {
    /// All instructions.
    pub(crate) total: u64,
    /// Its file, in the [form](FORM) that names places.
    pub(crate) output: PathBuf,
}

/// The instructions of one of `repeat` operations in each source file, most first: those of `with` that are not in
/// `without`. `folder` gets a file.
///
/// # Errors
/// No program reads the debug information, or there is none; the parts are not the whole.
pub(crate) fn instructions(
    with: &Counted,
    without: Option<&Counted>,
    repeat: u64,
    folder: &Path,
) -> Result<Vec<(String, f64)>, Box<dyn Error>> {
    let program = std::env::current_exe()?;
    let mut counts = read(&with.output)?;
    let mut total = i64::try_from(with.total)?;
    if let Some(without) = without {
        for (key, (function, count)) in read(&without.output)? {
            counts.entry(key).or_insert((function, 0)).1 -= count;
        }
        total -= i64::try_from(without.total)?;
    }
    let sum: i64 = counts.values().map(|(_, count)| count).sum();
    if sum != total {
        return Err(format!("the places have {sum} instructions of {total}").into());
    }
    let own = counts
        .keys()
        .filter(|(object, _)| Path::new(object) == program);
    let addresses: Vec<u64> = own.map(|(_, at)| *at).collect();
    let files = files(&program, &addresses, folder)?;
    let mut sums: BTreeMap<String, i64> = BTreeMap::new();
    for ((object, at), (function, count)) in &counts {
        let file = files.get(at).filter(|_| Path::new(object) == program);
        let name = file.map_or_else(|| library(object, function, &program), String::clone);
        *sums.entry(name).or_default() += count;
    }
    let each = |count: i64| count as f64 / repeat as f64;
    let mut sums: Vec<(String, f64)> = sums
        .into_iter()
        .map(|(name, it)| (name, each(it)))
        .collect();
    sums.sort_by(|left, right| right.1.total_cmp(&left.1));
    Ok(sums)
}

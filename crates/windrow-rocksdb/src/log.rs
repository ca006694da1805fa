//! What an open says about options without an effect: to the logger of the program, or, without one, to the file `LOG` in
//! the folder of the database or of the secondary instance, where RocksDB has its log. Each open writes the file anew.
//!
//! Concurrency: a logger may be called by any thread.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The file of an open without a logger.
pub(crate) const FILE: &str = "LOG";

/// The logger of a program.
pub(crate) struct Logger(Box<dyn Fn(&str) + Send + Sync>);

impl Logger {
    pub(crate) fn new(write: Box<dyn Fn(&str) + Send + Sync>) -> Self {
        Self(write)
    }
}

/// Says which of the options have no effect. The folder is made if it is missing.
#[expect(
    clippy::disallowed_methods,
    reason = "the file is not one of the engine"
)]
pub(crate) fn write(folder: &Path, logger: Option<&Logger>, ignored: &BTreeSet<&'static str>) {
    if let Some(logger) = logger {
        for line in lines(ignored) {
            (logger.0)(&line);
        }
        return;
    }
    let text: String = lines(ignored).map(|line| line + "\n").collect();
    // A database without its log is as good as one with it.
    drop(fs::create_dir_all(folder).and_then(|()| fs::write(folder.join(FILE), text)));
}

fn lines<'a>(ignored: &'a BTreeSet<&'static str>) -> impl Iterator<Item = String> + 'a {
    let head = "RocksDB's interface on Windrow. The options below have no effect:".to_owned();
    let names = ignored.iter().map(|setter| {
        let name = setter.trim_start_matches("rocksdb_");
        format!("ignored: {}", name.replacen("_set_", "_", 1))
    });
    std::iter::once(head).chain(names)
}
